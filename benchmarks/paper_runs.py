"""The runs of a paper's table: where it was measured, by which runs, and what came out of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List

from .data import DATASETS
from .paper_measures import values_of
from .papers import ENCODER, LEARN_RATE, PaperTable
from .results import quality
from .tables import by_corpus

Record = Dict[str, Any]
AS_PUBLISHED, OPPOSITE, UNCLEAR, MIXED, ONE_SEED = (
    *("as published", "opposite", "unclear", "mixed in the paper", "one seed"),
)


@dataclass(frozen=True)
class Place:
    """A corpus and what a training may use."""

    corpus: str
    encoder: str
    steps: int

    def text(self) -> str:
        """Readable, for the head of a table."""
        limit = DATASETS[self.corpus].budgets[self.encoder].train_limit
        sentences = f", {limit:,} sentences" if limit else ""
        return f"{self.corpus}, `{self.encoder}`, {self.steps:,} steps{sentences}"


@dataclass(frozen=True)
class Measured:
    """What was measured of a table at one place."""

    own: PaperTable
    place: Place
    runs: Dict[str, List[Record]]  # of the rows that were run, one for each seed

    @property
    def by_command(self) -> bool:
        """Whether the command of the table runs it there."""
        return self.place.encoder == ENCODER and self.place.corpus in self.own.corpora

    def seeds(self) -> List[int]:
        return sorted({len(runs) for runs in self.runs.values()})

    def rates(self) -> List[float]:
        return sorted({run["learn_rate"] for runs in self.runs.values() for run in runs})

    def values(self, row: str, measure: str) -> Dict[str, List[float]]:
        """The values of all seeds by column."""
        base = {run["seed"]: run["f"] for run in self.runs.get("base", [])}
        found: Dict[str, List[float]] = {}
        for run in self.runs.get(row, []):
            own = values_of(measure, run, self.own.lengths, base.get(run["seed"], 0.0))
            for column, value in own.items():
                found.setdefault(column, []).append(value or 0.0)
        return found

    def changes(self, row: str) -> List[float]:
        """F minus that of the row it is compared with, of the seeds that both have."""
        full = {run["seed"]: run["f"] for run in self.runs.get(self.own.reference(row), [])}
        return [
            run["f"] - full[run["seed"]] for run in self.runs.get(row, []) if run["seed"] in full
        ]

    def sign(self, row: str) -> str:
        """Whether the change has the sign of the paper; "unclear" where seeds do not agree."""
        changes = self.changes(row)
        if len(changes) < 2:
            return ONE_SEED if changes else ""
        published = published_changes(self.own, row)
        if min(published) < 0 < max(published):
            return MIXED
        same = {change * published[0] > 0 for change in changes}
        return UNCLEAR if len(same) > 1 else AS_PUBLISHED if same.pop() else OPPOSITE


def published_changes(own: PaperTable, row: str) -> List[float]:
    """The same of the published figures, by corpus. Figures without numbers: the paper says that the
    row compared with is best."""
    cells = [own.rows[name][1].split("/") for name in (row, own.reference(row))]
    pairs = zip(*cells, strict=False)
    numbers = [[float(c) for c in pair] for pair in pairs if all(re.search(r"\d", c) for c in pair)]
    return [a - b for a, b in numbers if a != b] or [-1.0]


def measured_at(own: PaperTable, runs: List[Record]) -> List[Measured]:
    """The places where what the table is about was measured: where its command runs it, of rows that
    can be compared; elsewhere, by other benchmarks, of all of several, and of the first with two
    seeds."""
    names, found = own.systems, []
    for corpus, encoder, steps, newest in by_corpus(runs):
        chosen: Dict[str, List[Record]] = {}
        for group in own.groups:  # only rows that are compared need the same rate
            runs_of = {row: [r for r in newest if r["system"] == names[row]] for row in group}
            chosen.update(one_rate(runs_of))
        own_place = Measured(own, Place(corpus, encoder, steps), chosen)
        wanted = [measure for measure in own.measures if measure != "F"] or ["F"]
        enough = any(own_place.values(row, measure) for row in chosen for measure in wanted)
        if own_place.by_command:
            enough &= len(chosen) >= min(2, len(names))
            enough &= not own.against or any(map(own_place.changes, chosen))
        else:
            first = next(iter(chosen.values()), [])
            enough &= len(chosen) == len(names) > 1 and len(first) > 1
        if corpus != "demo" and enough:
            found.append(own_place)
    return sorted(found, key=lambda at: not at.by_command)


def one_rate(runs: Dict[str, List[Record]]) -> Dict[str, List[Record]]:
    """The runs of rows, one for each seed, at a learning rate that all of them have two seeds of (or
    one, where a row has no more), that of the command first; else each row at the rate that was best
    with its first seed."""
    runs = {row: own for row, own in runs.items() if own}
    by_rate: Dict[str, Dict[float, Dict[int, Record]]] = {row: {} for row in runs}
    for row, own in runs.items():
        for run in own:
            by_rate[row].setdefault(run["learn_rate"], {})[run["seed"]] = run
    counts = [{rate: len(own) for rate, own in rates.items()} for rates in by_rate.values()]
    shared = sorted(
        rate
        for rate in {rate for own in counts for rate in own}
        if all(own.get(rate, 0) >= min(2, max(own.values())) for own in counts)
        and any(own[rate] > 1 for own in counts)
    )
    chosen = {}
    for row, rates in by_rate.items():
        first = [run for run in runs[row] if run["seed"] == runs[row][0]["seed"]]
        best = max(first, key=quality)["learn_rate"]
        rate = LEARN_RATE if LEARN_RATE in shared else shared[0] if shared else best
        chosen[row] = list(rates[rate].values())
    return chosen
