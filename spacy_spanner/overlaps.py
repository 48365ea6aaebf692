"""Choosing non-overlapping spans. Half-open spans, numpy only.

All choices look at clusters: maximal runs of spans, in order of their start, that hang together by
overlaps. A span alone in its cluster is kept at no cost, so the loops see only conflicts.
"""

from __future__ import annotations

from typing import Callable, Iterator, List, Tuple

import numpy

Choice = Callable[[numpy.ndarray, numpy.ndarray, numpy.ndarray], List[int]]


def clusters(starts: numpy.ndarray, ends: numpy.ndarray) -> Iterator[numpy.ndarray]:
    """Indices of the spans of each cluster of two or more."""
    order = numpy.lexsort((ends, starts))
    reach = numpy.maximum.accumulate(ends[order])
    begins = numpy.flatnonzero(numpy.r_[True, starts[order][1:] >= reach[:-1]])
    sizes = numpy.diff(numpy.r_[begins, len(order)])
    for begin, size in zip(begins[sizes > 1], sizes[sizes > 1]):
        yield order[begin : begin + size]


def choose(
    starts: numpy.ndarray, ends: numpy.ndarray, weights: numpy.ndarray, rule: Choice
) -> numpy.ndarray:
    """Which spans to keep so that no two overlap, by `rule` within each cluster.  (N,) bool"""
    keep = numpy.ones(len(starts), dtype=bool)
    if len(starts) < 2:
        return keep
    for members in clusters(starts, ends):
        keep[members] = False
        keep[members[rule(starts[members], ends[members], weights[members])]] = True
    return keep


def best_set(starts: numpy.ndarray, ends: numpy.ndarray, weights: numpy.ndarray) -> List[int]:
    """The non-overlapping set of the largest summed weight. Weights must be positive.

    Ties: fewer spans win, then the spans that come first by (end, start, position in the table)."""
    order = numpy.lexsort((numpy.arange(len(starts)), starts, ends))
    sorted_ends = ends[order]
    best: List[Tuple[float, int]] = [(0.0, 0)]  # value of the first i spans: weight, minus count
    taken: List[bool] = []
    before = numpy.searchsorted(sorted_ends, starts[order], side="right")
    for i, span in enumerate(order):
        total, count = best[before[i]]
        with_span = (total + float(weights[span]), count - 1)
        taken.append(with_span > best[i])
        best.append(max(with_span, best[i]))
    chosen, i = [], len(order)
    while i > 0:
        if taken[i - 1]:
            chosen.append(int(order[i - 1]))
            i = int(before[i - 1])
        else:
            i -= 1
    return chosen


def greedy_set(starts: numpy.ndarray, ends: numpy.ndarray, weights: numpy.ndarray) -> List[int]:
    """Heaviest span first, each kept if it overlaps none kept before it.

    Ties: the longer span, then the earlier one, then position in the table."""
    order = numpy.lexsort((numpy.arange(len(starts)), starts, starts - ends, -weights))
    return first_come(starts, ends, order)


def outermost_set(starts: numpy.ndarray, ends: numpy.ndarray, weights: numpy.ndarray) -> List[int]:
    """Longest span first, each kept if it overlaps none kept before it.

    Ties: the heavier span, then the earlier one, then position in the table."""
    order = numpy.lexsort((numpy.arange(len(starts)), starts, -weights, starts - ends))
    return first_come(starts, ends, order)


def first_come(starts: numpy.ndarray, ends: numpy.ndarray, order: numpy.ndarray) -> List[int]:
    """Spans in this order, each kept if it overlaps none kept before it."""
    chosen: List[int] = []
    for span in order:
        if all(ends[span] <= starts[other] or ends[other] <= starts[span] for other in chosen):
            chosen.append(int(span))
    return chosen


def outermost(starts: numpy.ndarray, ends: numpy.ndarray) -> numpy.ndarray:
    """The outermost spans; of crossing ones the longer, then the earlier.  (N,) bool"""
    return choose(starts, ends, numpy.zeros(len(starts)), outermost_set)


def nesting_levels(starts: numpy.ndarray, ends: numpy.ndarray) -> numpy.ndarray:
    """0 for the outermost spans, 1 for the outermost of the rest, and so on: no two spans of a level
    share a token.  (N,) int64"""
    levels = numpy.zeros(len(starts), dtype="int64")
    rest = numpy.arange(len(starts))
    while len(rest):
        rest = rest[~outermost(starts[rest], ends[rest])]
        levels[rest] += 1
    return levels


RULES = {"best": best_set, "greedy": greedy_set, "outermost": outermost_set}
