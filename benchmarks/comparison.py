"""Which of spaCy's components and which of our systems is better on each corpus, and by how much."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Dict, List

from .data import DATASETS
from .systems import BASELINES
from .tables import Record, best_runs, by_corpus, spread, table

NESTED = ("global_pointer", "locate_and_label")  # that have to beat spancat where entities nest

TEXT = """## In short

F of the better one of spaCy's two and of the best of ours, from the tables below. "Clear" is a distance
larger than the spread (standard deviation) over seeds of either; where one of the two has a single seed,
nothing is said.
"""


def comparison_section(runs: List[Record]) -> str:
    lines = comparison_table(runs)
    return "\n".join([TEXT, *lines, ""]) if lines else ""


def comparison_table(runs: List[Record]) -> List[str]:
    rows = []
    for dataset, encoder, _, own in by_corpus(runs):
        scores = {name: [run["f"] for run in best] for name, best in best_runs(own).items()}
        peers = {name: values for name, values in scores.items() if name in BASELINES}
        ours = {name: values for name, values in scores.items() if name not in BASELINES}
        if not peers or not ours:
            continue
        first = best_of(peers), best_of(ours)
        rows.append([f"{dataset}, `{encoder}`", *compared(*first, scores)])
        if DATASETS[dataset].nested and "spancat" in peers:
            others = [("spancat", name) for name in NESTED if name in ours]
            rows += [["", *compared(*pair, scores)] for pair in others if pair != first]
    head = ["corpus, encoder", "spaCy", "F", "ours", "F", "distance", "clear"]
    return table(head, rows) if rows else []


def best_of(scores: Dict[str, List[float]]) -> str:
    return max(scores, key=lambda name: mean(scores[name]))


def compared(peer: str, ours: str, scores: Dict[str, List[float]]) -> List[str]:
    """The cells of a row, from the F of every seed of every system."""
    distance = mean(scores[ours]) - mean(scores[peer])
    cells = [f"`{peer}`", spread(scores[peer]), f"`{ours}`", spread(scores[ours])]
    return [*cells, f"{distance:+.1f}", clear(distance, scores[peer], scores[ours])]


def clear(distance: float, *values: List[float]) -> str:
    if min(map(len, values)) < 2:
        return ""
    return "yes" if distance > max(map(stdev, values)) else "no"
