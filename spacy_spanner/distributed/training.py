"""`spacy train` on several ranks: each takes its share of every batch, all take the same step.

spaCy's own loop (`train_while_improving`) decides on steps, evaluation and the end. Its caller,
`spacy.training.train`, cannot be used: it empties the output folder and writes checkpoints in place.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import (
    clean_output_dir,
    create_before_to_disk_callback,
    create_evaluation_callback,
    create_train_batches,
    train_while_improving,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Optimizer, fix_random_seed

from ..errors import Errors, UserError
from .checkpoints import LAST, load_checkpoint, save_checkpoint
from .parameters import (
    Parameter,
    add_gradients,
    copy_weights,
    parameters_of,
    share_overflow,
    trained_pipes,
)
from .ranks import RankLost, Ranks
from .signals import Interrupted, SignalNote, handled

Batch = Tuple[int, List[Example]]  # epoch, examples


class Stopped(UserError):
    """Training ended before its time; the message says how to resume."""

    def __init__(self, message: str, *, exit_code: int = 1):
        super().__init__(message)
        self.exit_code = exit_code


class SharedPipeline:
    """The pipeline as spaCy's loop sees it: one component, which all ranks update together.

    Steps that were taken before training was stopped are counted, not taken again. So the loop itself
    brings schedules, batches and epochs to where they were.
    """

    is_trainable = True
    model = "all"  # the loop only asks whether there is one

    def __init__(self, nlp: Language, ranks: Ranks, frozen: List[str]):
        self.nlp = nlp
        self.ranks = ranks
        self.pipes = trained_pipes(nlp, frozen)
        self.parameters: List[Parameter] = parameters_of(self.pipes)
        self.signal = SignalNote()
        self.step = -1  # the last one that the loop has finished
        self.replayed = -1  # up to this one, steps were taken before training was stopped
        self._seen, self._own = 0, 0  # examples of this step: of all ranks, of this one

    @property
    def pipeline(self) -> List[Tuple[str, SharedPipeline]]:
        return [("shared", self)]

    @property
    def is_replay(self) -> bool:
        """Was the step that begins now taken before training was stopped?"""
        return self.step < self.replayed

    @property
    def taken(self) -> int:
        """The last step whose update is in the weights."""
        return max(self.step, self.replayed)

    def use_params(self, params: Dict[Any, Any]) -> ContextManager[None]:
        return self.nlp.use_params(params)

    def update(self, examples: List[Example], **options: Any) -> None:
        """Gradients of every `size`-th example, on this rank."""
        if self.is_replay:
            return
        if self.signal.number:  # looked at here, where nothing is cut off
            raise Interrupted(self.signal.number)
        share = examples[self.ranks.rank :: self.ranks.size]
        self._seen, self._own = self._seen + len(examples), self._own + len(share)
        self.nlp.update(share, **options)

    def finish_update(self, optimizer: Optimizer) -> None:
        """The step of all ranks, from the gradients of all."""
        if not self.is_replay:
            if self.ranks.size > 1:
                share_overflow(self.pipes, self.ranks)
                add_gradients(self.parameters, self.ranks, share=self._own / self._seen)
            for pipe in self.pipes:
                pipe.finish_update(optimizer)
        self.step += 1
        self._seen, self._own = 0, 0


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
        self.shared = SharedPipeline(nlp, ranks, self.frozen)
        self.results: List[Tuple[float, int]] = []  # score and step of every evaluation
        weights = self.settings["score_weights"]
        self._evaluate = create_evaluation_callback(nlp, dev_corpus, weights)
        self._to_disk = create_before_to_disk_callback(self.settings["before_to_disk"])

    def train(self, *, resume: bool = False) -> None:
        """Train to the end. If a rank is lost or a signal comes, save what there is and raise
        `Stopped`."""
        if self.settings["seed"] is not None:
            fix_random_seed(self.settings["seed"])
        if resume:
            self._load()
        elif self.ranks.is_first:
            clean_output_dir(self.output)
        log_step, finish_log = self._logger()
        with handled(self.shared.signal):
            try:
                copy_weights(self.shared.parameters, self.ranks)
                for info, is_best in self._steps():
                    if is_best is not None and self.ranks.is_first:
                        with self.nlp.select_pipes(disable=self.frozen):
                            update_meta(self.settings, self.nlp, info)
                        self._save(is_best)
                    log_step(info if is_best is not None else None)
            except (RankLost, Interrupted) as error:
                self._save(False)
                raise self._stopped(error) from error
            finally:
                finish_log()
            self._save(False)

    def _steps(self) -> Iterator[Tuple[Dict[str, Any], Optional[bool]]]:
        """The steps of spaCy's loop that are taken now, with the information it yields about each."""
        settings = self.settings
        before_update = settings["before_update"]

        def call_before_update(_: Any, info: Dict[str, Any]) -> None:
            if not self.shared.is_replay:
                before_update(self.nlp, info)

        steps = train_while_improving(
            self.shared,  # type: ignore[arg-type]
            self.optimizer,
            self._batches(),
            self._score,
            dropout=settings["dropout"],
            accumulate_gradient=settings["accumulate_gradient"],
            patience=settings["patience"],
            max_steps=settings["max_steps"],
            eval_frequency=settings["eval_frequency"],
            exclude=self.frozen,
            annotating_components=settings["annotating_components"],
            before_update=call_before_update if before_update else None,
        )
        for _, info, is_best in steps:
            if info["step"] > self.shared.replayed:
                if is_best is not None:
                    info.update(losses=self._mean(info["losses"]), checkpoints=self.results)
                yield info, is_best

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
        """Rank 0 evaluates; the others wait for the score. Of steps that were taken before, the best
        score so far is enough for the loop to decide what is best and when to end."""
        step = self.shared.step
        if step <= self.shared.replayed:
            known = (score for score, at in self.results if at <= step)
            return max(known, default=float("-inf")), {}
        result = self.ranks.of_first(self._evaluate() if self.ranks.is_first else None)
        self.results.append((result[0], step))
        return result

    def _mean(self, losses: Dict[str, float]) -> Dict[str, float]:
        every = self.ranks.of_all(losses)
        names = {name for rank in every for name in rank}
        return {name: sum(rank.get(name, 0.0) for rank in every) / len(every) for name in names}

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
                progress=(self.shared.taken, self.results),
                optimizer=self.optimizer,
                parameters=self.shared.parameters,
                is_best=is_best,
            )

    def _load(self) -> None:
        assert self.output is not None
        self.shared.replayed, self.results = load_checkpoint(
            self.nlp, self.output, self.optimizer, self.shared.pipes, self.ranks
        )
        self.shared.parameters = parameters_of(self.shared.pipes)  # loading makes new ones

    def _stopped(self, error: BaseException) -> Stopped:
        folder = "nothing" if self.output is None else str(self.output / LAST)
        facts = {"rank": self.ranks.rank, "step": self.shared.taken, "path": folder}
        number = self.shared.signal.number
        if number:  # torchrun sends SIGTERM, too, to those that outlive a rank
            stop = Interrupted(number)
            lost = f"; another rank was lost ({error})" if isinstance(error, RankLost) else ""
            message = Errors.S122.format(signal=stop, lost=lost, **facts)
            return Stopped(message, exit_code=stop.exit_code)
        message = Errors.S058 if self.ranks.is_first else Errors.S060
        return Stopped(message.format(reason=error, **facts))


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
