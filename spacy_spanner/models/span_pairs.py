"""Which spans of a batch of rows may be linked: all ordered pairs of one row, or of one sentence.

Axes: N spans, P pairs. All is on the host, so that the number of pairs is known without a device read.
"""

from __future__ import annotations

import numpy

from ..contract import Tokens


def span_pairs(ends: numpy.ndarray, tokens: Tokens) -> numpy.ndarray:
    """Pairs of spans (N, 3), which must be sorted, by their numbers; a span also with itself. Where
    links keep to sentences, spans that leave one have no partner.  (P, 2), sorted"""
    row, start, end = ends.T
    group = row
    if tokens.sentences is not None:
        number = tokens.sentences.numbers
        group = numpy.where(number[row, start] == number[row, end - 1], number[row, start], -1)
    linked = numpy.flatnonzero(group >= 0)  # (n,)
    group = group[linked]
    first = numpy.searchsorted(group, group, side="left")  # (n,) of the first span of its group
    n_tails = numpy.searchsorted(group, group, side="right") - first  # (n,)
    head = numpy.repeat(numpy.arange(len(linked)), n_tails)  # (P,)
    tail = numpy.arange(len(head)) - (n_tails.cumsum() - n_tails - first)[head]
    return numpy.column_stack([linked[head], linked[tail]])
