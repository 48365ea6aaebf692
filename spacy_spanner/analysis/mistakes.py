"""Kinds of errors (Ji et al. 2022, section 4.3.2, eq 24), and which labels are taken for which."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, List, NamedTuple, Tuple

import numpy

from .tables import DOC, END, LABEL, START, System

CORRECT, TYPE, BOUNDARY, SPURIOUS = range(4)
KINDS = ("correct", "type", "boundary", "spurious")


class ErrorCounts(NamedTuple):
    """False alarms by kind, misses, and the rates of eq 24."""

    type: int  # same offsets as a gold entity, other label
    boundary: int  # shares tokens with a gold entity, offsets of none
    spurious: int  # touches no gold entity
    misses: int
    untouched: int  # misses that no prediction touches

    @property
    def total(self) -> int:
        """FP + FN"""
        return self.type + self.boundary + self.spurious + self.misses

    @property
    def boundary_rate(self) -> float:
        return self.boundary / max(self.total, 1)

    @property
    def type_rate(self) -> float:
        return self.type / max(self.total, 1)


def error_counts(system: System) -> ErrorCounts:
    kinds = numpy.bincount(prediction_kinds(system), minlength=4)
    missed = system.corpus.gold.spans[~system.found]
    untouched = ~overlaps_any(missed, system.pred.spans, len(system.corpus.docs))
    return ErrorCounts(
        int(kinds[TYPE]),
        int(kinds[BOUNDARY]),
        int(kinds[SPURIOUS]),
        len(missed),
        int(untouched.sum()),
    )


def prediction_kinds(system: System) -> numpy.ndarray:
    """CORRECT, TYPE, BOUNDARY or SPURIOUS for each predicted span.  (P,)"""
    gold, pred = system.corpus.gold.spans, system.pred.spans
    offsets = set(map(tuple, gold[:, :LABEL].tolist()))
    same = numpy.array([tuple(row) in offsets for row in pred[:, :LABEL].tolist()], dtype=bool)
    touching = overlaps_any(pred, gold, len(system.corpus.docs))
    kinds = numpy.where(same, TYPE, numpy.where(touching, BOUNDARY, SPURIOUS))
    return numpy.where(system.correct, CORRECT, kinds)


def overlaps_any(rows: numpy.ndarray, others: numpy.ndarray, n_docs: int) -> numpy.ndarray:
    """Which spans share characters with any of the others; both sorted by document.  (N,) bool"""
    steps = numpy.arange(n_docs + 1)
    own = numpy.searchsorted(rows[:, DOC], steps)
    bounds = numpy.searchsorted(others[:, DOC], steps)
    result = numpy.zeros(len(rows), dtype=bool)
    for doc in range(n_docs):
        part, rest = rows[own[doc] : own[doc + 1]], others[bounds[doc] : bounds[doc + 1]]
        meets = part[:, START, None] < rest[:, END]  # (n, m)
        meets &= rest[:, START] < part[:, END, None]
        result[own[doc] : own[doc + 1]] = meets.any(axis=1)
    return result


def confusion(system: System) -> numpy.ndarray:
    """How often a gold label (row) was predicted as a label (column) at the same offsets; the last
    row and column are "nothing". Rows sum to the gold, columns to the predictions.  (C + 1, C + 1)

    Where several labels are wrong at the same offsets they are paired in the order of the labels.
    """
    n_labels = len(system.corpus.labels)
    counts = numpy.zeros((n_labels + 1, n_labels + 1), dtype="int64")
    gold, pred = system.corpus.gold.spans, system.pred.spans
    hits = gold[system.found][:, LABEL]
    numpy.add.at(counts, (hits, hits), 1)
    wrong: Dict[Tuple[int, ...], Tuple[List[int], List[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((gold[~system.found], pred[~system.correct])):
        for *place, label in rows.tolist():
            wrong[tuple(place)][side].append(label)
    for missed, alarms in wrong.values():
        n_pairs = max(len(missed), len(alarms))
        nothing = [n_labels] * n_pairs
        pairs = ((missed + nothing)[:n_pairs], (alarms + nothing)[:n_pairs])
        numpy.add.at(counts, pairs, 1)
    return counts
