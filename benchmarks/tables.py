"""What all pages of measurements share: runs grouped and averaged, and tables of Markdown."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, stdev
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from .results import quality
from .systems import SYSTEMS

Record = Dict[str, Any]


def by_corpus(runs: List[Record]) -> List[Tuple[str, str, int, List[Record]]]:
    """Runs by corpus, encoder and steps; those of an earlier recipe where there are no others."""
    groups: Dict[tuple, List[Record]] = defaultdict(list)
    for run in runs:
        groups[run["dataset"], run["encoder"], run["steps"]].append(run)
    newest = {
        key: [run for run in own if run.get("recipe") == own[-1].get("recipe")]
        for key, own in groups.items()
    }
    return [(*key, newest[key]) for key in sorted(newest)]


def best_runs(runs: List[Record]) -> Dict[str, List[Record]]:
    """The runs of each system with its best learning rate, one for each seed. Of rates that were run with
    several seeds the mean decides: one seed may flatter or wrong a rate."""
    chosen: Dict[str, List[Record]] = {}
    for system in SYSTEMS:
        by_rate: Dict[float, List[Record]] = defaultdict(list)
        for run in runs:
            if run["system"] == system:
                by_rate[run["learn_rate"]].append(run)
        if by_rate:
            chosen[system] = max(
                by_rate.values(), key=lambda own: (len(own), mean(map(quality, own)))
            )
    return chosen


def spread(values: List[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def known_spread(records: Iterable[Mapping[str, Any]], key: str) -> str:
    """Of the records that have a value; nothing where none has."""
    known = [record[key] for record in records if record.get(key) is not None]
    return spread(known) if known else ""


def average(runs: List[Record], key: str) -> float:
    return mean(run[key] for run in runs)


def table(head: List[str], rows: List[List[str]]) -> List[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]
