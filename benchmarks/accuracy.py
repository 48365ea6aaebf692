"""One training run, in a process of its own: same encoder, same steps, scored on all gold spans."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional

import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str
from thinc.api import Config

from spacy_spanner.acceleration import remember_codecs, use_fastest_ops
from spacy_spanner.analysis.attributes import training_facts
from spacy_spanner.analysis.report import make_report
from spacy_spanner.analysis.systems import load_systems
from spacy_spanner.corpus.stats import Stats

from .data import DATASETS, TRANSFORMERS, corpus, read_docs, stats_of
from .documents import running_text
from .fast_heads import mark_heads
from .scoring import fitted_scores, score
from .systems import SYSTEMS, make_config, system_of

# Encoders that read static vectors.
STATIC = ("vectors", "tuned", "tuned_intnet", "lstm_vectors", "lstm_large")


@dataclass(frozen=True)
class Run:
    """What identifies a run: two runs with the same fields are the same measurement."""

    dataset: str
    encoder: str
    system: str
    learn_rate: float
    seed: int
    steps: int
    recipe: str = "decay"  # a learning rate that rises and falls; none in runs with a constant one


class OutOfTime(BaseException):
    """Ends a training that has used up its budget; what is saved by then counts."""


def execute(
    run: Run,
    *,
    data: Path,
    vectors: Optional[Path],
    transformer: Optional[str],
    minutes: float,
    brief: bool = False,
) -> List[Dict[str, Any]]:
    """Train and score; gives the record of the run, and one for each other reading of its weights.

    brief: Without analysis, running text and documents whose sentences are not marked, which together
        take as long as a short training.
    """
    torch.set_num_threads(1)
    use_fastest_ops()
    remember_codecs()
    dataset = DATASETS[run.dataset]
    paths = {part: corpus(run.dataset, part, data) for part in ("train", "dev")}
    train_docs = read_docs(paths["train"], dataset.lang)
    stats = stats_of(train_docs)
    budget = dataset.budgets[run.encoder]
    n_words = sum(map(len, train_docs[: budget.train_limit or None]))
    config = training_config(run, paths, stats, n_words, transformer=transformer)
    config["paths"]["vectors"] = str(vectors) if vectors and run.encoder in STATIC else None
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v3", "console_output": False}
    clock = Clock(minutes)
    with TemporaryDirectory() as folder:
        nlp = init_nlp(load_config_from_str(config.to_str()))
        mark_heads(nlp)
        clock.watch(nlp)
        try:
            with open(os.devnull, "w") as nowhere:
                train(nlp, Path(folder), stdout=nowhere, stderr=nowhere)
        except OutOfTime:
            pass
        best = spacy.load(Path(folder) / "model-best")
        size = sum(
            f.stat().st_size for f in (Path(folder) / "model-best").rglob("*") if f.is_file()
        )
        dev_docs = read_docs(paths["dev"], dataset.lang)
        scores = score(best, dev_docs, brief=brief)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # without what follows
        scores.update(fitted_scores(best, dev_docs))
        long_texts = dataset.running_text and run.encoder not in TRANSFORMERS
        if run.seed == 0 and long_texts and not brief:
            scores["running_text"] = running_text(best, train_docs, docs=100, tokens=5000)
        # An analysis of `ner` on nested entities would be of the outer ones.
        if not brief and not (dataset.nested and run.system == "ner"):
            scores["analysis"] = analysis(Path(folder) / "model-best", paths["dev"], train_docs)
            proposals = scores["analysis"]["proposals"]
            if proposals is not None:
                scores["proposals_per_gold"] = round(proposals["per_gold"], 1)
        readings = {
            name: read_again(Path(folder) / "model-best", name, dev_docs, brief=brief)
            for name in system_of(run.system).readings
        }
    facts = {
        "steps_done": clock.steps,
        "epochs": round(clock.words / n_words, 1),
        "seconds_per_epoch": round(clock.busy * n_words / max(clock.words, 1), 1),
        "seconds": round(clock.seconds(), 1),
        "train_words_per_second": round(clock.words_per_second()),
        "peak_mb": peak,
        "size_mb": round(size / 1e6, 1),
        "max_width": stats.width_for(99),
        "batch_words": config["training"]["batcher"]["size"],
    }
    own = {**asdict(run), **scores, **facts}
    others = [
        {**asdict(run), "system": name, "weights_of": run.system, **found, **facts}
        for name, found in readings.items()
    ]
    return [own, *others]


def read_again(model: Path, name: str, docs: List[Doc], *, brief: bool) -> Dict[str, Any]:
    """The scores of a row that reads weights that were trained, and chosen, for another one."""
    system = system_of(name)
    prefix = f"components.{system.overlay}.model"
    nlp = spacy.load(model, config={f"{prefix}.{key}": v for key, v in system.model.items()})
    pipe: Any = nlp.get_pipe(system.overlay)
    pipe.threshold = pipe.model.attrs["threshold"]  # not the one that was stored for the other row
    return {**score(nlp, docs, brief=brief), **fitted_scores(nlp, docs)}


def training_config(
    run: Run, paths: Dict[str, Path], stats: Stats, words: int, *, transformer: Optional[str]
) -> Config:
    """The config of a run within the budget of its corpus."""
    dataset = DATASETS[run.dataset]
    config = make_config(
        run.system,
        run.encoder,
        lang=dataset.lang,
        nested=dataset.nested,
        max_width=stats.width_for(99),
        levels=stats.levels_for(99),
        transformer=transformer,
        words=words,
    )
    config["paths"].update({part: str(path) for part, path in paths.items()})
    config["paths"]["vectors"] = None
    config["system"]["seed"] = run.seed
    budget = dataset.budgets[run.encoder]
    config["corpora"]["train"]["limit"] = budget.train_limit
    config["training"].update(max_steps=run.steps, patience=0, eval_frequency=budget.eval_frequency)
    config["training"]["accumulate_gradient"] = 1  # few sentences: more updates from them
    if budget.batch_words:
        config["training"]["batcher"]["size"] = budget.batch_words
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] = run.learn_rate
    # Thresholds fitted on the development part would be judged by the same part.
    config["training"].pop("before_to_disk", None)
    return config


def analysis(model: Path, gold: Path, train_docs: List[Doc]) -> Dict[str, Any]:
    """The groups, kinds of errors and proposals of the papers' tables, as `spacy spanner analyze`
    counts them."""
    systems, output = load_systems([str(model)], str(gold), output="auto", spans_key="sc", limit=0)
    facts = training_facts(train_docs, output=output, spans_key="sc")
    part = make_report(systems, train=facts, resamples=1)["systems"][0]
    counts = ("hits", "misses", "alarms")
    groups = {
        key: [[own["name"], round(100 * own["f"], 2)] for own in split["buckets"]]
        for key, split in part["buckets"].items()
    }
    errors = {kind: round(100 * part["errors"][f"{kind}_rate"], 2) for kind in ("boundary", "type")}
    lengths = {own["length"]: [own[name] for name in counts] for own in part["lengths"]}
    parts = {"lengths": lengths, "groups": groups, "errors": errors}
    return {**parts, "proposals": part["proposals"]}


class Clock:
    """Counts steps and the words and seconds spent in updates, and ends what takes too long. Seconds
    of the processor, as all is one thread: other work on the machine does not count."""

    def __init__(self, minutes: float):
        self.minutes, self.steps, self.words, self.busy = minutes, 0, 0, 0.0
        self.start = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def words_per_second(self) -> float:
        return self.words / max(self.busy, 1e-9)

    def watch(self, nlp: Any) -> None:
        update = nlp.update

        def timed(examples: List[Example], **kwargs: Any) -> Any:
            if self.seconds() > 60 * self.minutes:
                raise OutOfTime
            before = time.process_time()
            result = update(examples, **kwargs)
            self.busy += time.process_time() - before
            self.steps += 1
            self.words += sum(len(eg.predicted) for eg in examples)
            return result

        nlp.update = timed


def plan(
    datasets: List[str],
    systems: List[str],
    encoder: Optional[str],
    seeds: List[int],
    steps: int,
    rates: Optional[List[float]] = None,
) -> List[List[Run]]:
    """Runs in stages: learning rates with the first seed; the others follow from their results.

    rates: Instead of those of the encoder."""
    from .systems import LEARN_RATES

    grid = []
    for name in datasets:
        chosen = encoder or DATASETS[name].encoder
        if chosen not in DATASETS[name].budgets:
            raise ValueError(
                f"There is no budget for {name} with the encoder {chosen}. Choose another encoder, or "
                "give it one in benchmarks/data.py."
            )
        for system in systems:
            if chosen in SYSTEMS[system].encoders:
                budget = DATASETS[name].budgets[chosen].steps * SYSTEMS[system].more_steps
                n_steps = steps or budget
                grid.append(
                    [
                        Run(name, chosen, system, lr, seeds[0], n_steps)
                        for lr in rates or LEARN_RATES[chosen]
                    ]
                )
    return grid
