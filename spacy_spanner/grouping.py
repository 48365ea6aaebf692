"""Which rows of a batch are scored together: as many as memory and padding allow."""

from __future__ import annotations

from typing import Callable, Iterator

import numpy

from .batch import END, START, SpanBatch
from .contract import SpanModule


def group_rows(module: SpanModule, batch: SpanBatch) -> Iterator[numpy.ndarray]:
    """Row numbers in groups of similar length, none of which needs more cells than the budget."""

    def most_rows(longest: int) -> int:
        return batch.max_cells // max(1, module.cells(longest, batch.max_width))

    lengths = batch.rows.table[:, END] - batch.rows.table[:, START]
    yield from like_lengths(lengths, most_rows, lambda longest: padding_budget(module, longest))


def like_lengths(
    lengths: numpy.ndarray, most_rows: Callable[[int], int], padding: Callable[[int], int]
) -> Iterator[numpy.ndarray]:
    """Numbers of rows in groups, longest first. A group has no more rows than `most_rows`, and no
    more padding than `padding`, of its longest row."""
    order = numpy.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        longest = int(lengths[order[first]])
        group = order[first : first + max(1, most_rows(longest))]
        # A group ends early where all its padding would cost more than another group.
        group = group[(longest - lengths[group]).cumsum() <= padding(longest)]
        yield group
        first += len(group)


def padding_budget(module: SpanModule, longest: int) -> int:
    """Padding budget of a group, in tokens; beyond it a new group is cheaper."""
    cost = module.cost()
    # Measured on a CPU: 250 tokens for small encoders, 62 for a small transformer.
    return int(24_000 / (max(module.width, 1) * cost.token) + cost.step * longest)
