"""`spacy train` on several ranks: each takes its share of every batch, all take the same step."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path
from timeit import default_timer as timer
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import (
    clean_output_dir,
    create_before_to_disk_callback,
    create_evaluation_callback,
    create_train_batches,
    subdivide_batch,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import constant, fix_random_seed

from ..errors import Errors, UserError
from .checkpoints import LAST, STATE, Progress, load_state, restore, save_checkpoint
from .parameters import (
    Parameter,
    add_gradients,
    copy_weights,
    parameters_of,
    share_overflow,
    trained_pipes,
)
from .ranks import RankLost, Ranks

Batch = Tuple[int, List[Example]]  # epoch, examples


class Stopped(UserError):
    """Training ended before its time; the message says where it can go on."""


class Trainer:
    """One training run as this rank sees it."""

    def __init__(self, nlp: Language, output: Optional[Path], ranks: Ranks):
        self.nlp = nlp
        self.output = output
        self.ranks = ranks
        config = nlp.config.interpolate()
        self.settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        names = [self.settings["train_corpus"], self.settings["dev_corpus"]]
        self.train_corpus, dev_corpus = resolve_dot_names(config, names)
        self.optimizer = self.settings["optimizer"]
        self.frozen: List[str] = self.settings["frozen_components"]
        self.pipes = trained_pipes(nlp, self.frozen)
        self.parameters: List[Parameter] = parameters_of(self.pipes)
        self.progress = Progress()
        weights = self.settings["score_weights"]
        self._evaluate = create_evaluation_callback(nlp, dev_corpus, weights)
        self._to_disk = create_before_to_disk_callback(self.settings["before_to_disk"])
        self._terminated = False

    def train(self, *, resume: bool = False) -> None:
        """Train to the end. If another rank is lost, save what there is and raise `Stopped`."""
        handler = signal.signal(signal.SIGTERM, self._note_signal)
        if self.settings["seed"] is not None:
            fix_random_seed(self.settings["seed"])
        if resume:
            self._load()
        elif self.ranks.is_first:
            clean_output_dir(self.output)
        log_step, finish_log = self._logger()
        try:
            copy_weights(self.parameters, self.ranks)
            for info, is_best in self._steps():
                if is_best is not None and self.ranks.is_first:
                    with self.nlp.select_pipes(disable=self.frozen):
                        update_meta(self.settings, self.nlp, info)
                    self._save(is_best)
                log_step(info if is_best is not None else None)
        except RankLost as error:
            self._save(False)
            raise Stopped(self._stop_message(error)) from error
        finally:
            finish_log()
            signal.signal(signal.SIGTERM, handler)
        self._save(False)

    def _steps(self) -> Iterator[Tuple[Dict[str, Any], Optional[bool]]]:
        settings, progress = self.settings, self.progress
        drop = settings["dropout"]
        dropouts = iter(constant(drop) if isinstance(drop, float) else drop)
        losses: Dict[str, float] = {}
        begin = timer()
        for step, (epoch, batch) in enumerate(self._batches()):
            rate = next(dropouts)
            if step <= progress.step:  # taken before the run was stopped
                self.optimizer.step_schedules()
                continue
            if settings["before_update"]:
                settings["before_update"](self.nlp, {"step": step, "epoch": epoch})
            self._step(batch, rate, losses)
            progress.step = step
            progress.words += sum(len(example) for example in batch)
            is_best, score, others = None, None, None
            if step % settings["eval_frequency"] == 0:
                score, others = self._score()
                progress.results.append((score, step))
                is_best = score == max(progress.results)[0]
                losses = self._mean_losses(losses)
            yield (
                {
                    "epoch": epoch,
                    "step": step,
                    "score": score,
                    "other_scores": others,
                    "losses": losses,
                    "checkpoints": progress.results,
                    "seconds": int(timer() - begin),
                    "words": progress.words,
                },
                is_best,
            )
            losses = {} if is_best is not None else losses
            if self._is_over(step):
                break

    def _step(self, batch: List[Example], drop: float, losses: Dict[str, float]) -> None:
        """One step of all ranks; each learns from every `size`-th example of the batch."""
        if self._terminated:
            raise RankLost("this process was told to end")
        own = batch[self.ranks.rank :: self.ranks.size]
        for part in subdivide_batch(own, self.settings["accumulate_gradient"]):
            self.nlp.update(
                part,
                drop=drop,
                losses=losses,
                sgd=False,  # type: ignore[arg-type]
                exclude=self.frozen,
                annotates=self.settings["annotating_components"],
            )
        if self.ranks.size > 1:
            share_overflow(self.pipes, self.ranks)
            add_gradients(self.parameters, self.ranks, share=len(own) / len(batch))
        for pipe in self.pipes:
            pipe.finish_update(self.optimizer)
        self.optimizer.step_schedules()

    def _batches(self) -> Iterator[Batch]:
        """The batches of all ranks together. They are the same on each: the random numbers that
        shuffle and augment are kept apart from those that differ between ranks."""
        batches = create_train_batches(
            self.nlp, self.train_corpus, self.settings["batcher"], self.settings["max_epochs"]
        )
        state = self.ranks.of_first(random.getstate())
        if self.settings["seed"] is not None and self.ranks.size > 1:
            fix_random_seed(self.settings["seed"] + self.ranks.rank)  # dropout differs
        joined = join_batches(batches, self.ranks.size)
        while True:
            others = random.getstate()
            random.setstate(state)
            found = next(joined, None)
            state = random.getstate()
            random.setstate(others)
            if found is None:
                return
            yield found

    def _score(self) -> Tuple[float, Dict[str, Any]]:
        """Rank 0 evaluates; the others wait for the score."""
        result = None
        if self.ranks.is_first:
            with self.nlp.use_params(self.optimizer.averages or {}):
                result = self._evaluate()
        return self.ranks.of_first(result)

    def _mean_losses(self, losses: Dict[str, float]) -> Dict[str, float]:
        every = self.ranks.of_all(losses)
        names = {name for own in every for name in own}
        return {name: sum(own.get(name, 0.0) for own in every) / len(every) for name in names}

    def _is_over(self, step: int) -> bool:
        patience, max_steps = self.settings["patience"], self.settings["max_steps"]
        best = -max((score, -at) for score, at in self.progress.results)[1]
        return bool((patience and step - best >= patience) or (max_steps and step >= max_steps))

    def _logger(self) -> Tuple[Callable, Callable]:
        if not self.ranks.is_first:
            return (lambda info: None), (lambda: None)
        with self.nlp.select_pipes(disable=self.frozen):
            return self.settings["logger"](self.nlp, sys.stdout, sys.stderr)

    def _save(self, is_best: bool) -> None:
        if self.output is None or not self.ranks.is_first:
            return
        with self.nlp.use_params(self.optimizer.averages or {}):
            save_checkpoint(
                self._to_disk(self.nlp),
                self.output,
                progress=self.progress,
                optimizer=self.optimizer,
                parameters=self.parameters,
                is_best=is_best,
            )

    def _stop_message(self, error: RankLost) -> str:
        folder = "nothing" if self.output is None else str(self.output / LAST)
        message = Errors.S058 if self.ranks.is_first else Errors.S060
        return message.format(
            rank=self.ranks.rank, step=self.progress.step, path=folder, reason=error
        )

    def _load(self) -> None:
        assert self.output is not None
        folder = self.output / LAST
        if self.ranks.is_first:
            restore(folder)
        self.ranks.of_first(None)  # the others read what rank 0 may have mended
        if not folder.exists():
            raise UserError(Errors.S059.format(path=folder))
        self.nlp.from_disk(folder)
        self.parameters = parameters_of(self.pipes)  # loading makes new ones
        self.progress = load_state(folder / STATE, self.optimizer, self.parameters)

    def _note_signal(self, number: int, frame: Any) -> None:
        # Only noted: in the middle of a step or of saving nothing may be cut off.
        self._terminated = True


def join_batches(batches: Iterable[Batch], count: int) -> Iterator[Batch]:
    """`count` batches of an epoch as one; the last of an epoch may hold fewer."""
    epoch, held = 0, 0
    joined: List[Example] = []
    for epoch_of, batch in batches:
        if held and (held == count or epoch_of != epoch):
            yield epoch, joined
            joined, held = [], 0
        epoch, held = epoch_of, held + 1
        joined = [*joined, *batch]
    if held:
        yield epoch, joined
