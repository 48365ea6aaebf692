"""Which rows of a batch are scored together: as many as memory and padding allow."""

from __future__ import annotations

from typing import Iterator

import numpy

from .batch import END, START, SpanBatch
from .contract import SpanModule


def group_rows(module: SpanModule, batch: SpanBatch) -> Iterator[numpy.ndarray]:
    """Row numbers in groups of like length, none of which needs more cells than the budget."""
    lengths = batch.rows.table[:, END] - batch.rows.table[:, START]
    order = numpy.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        longest = int(lengths[order[first]])
        n_rows = max(1, batch.max_cells // max(1, module.cells(longest, batch.max_width)))
        # A group ends early where all its padding would cost more than another group.
        padding = (longest - lengths[order[first : first + n_rows]]).cumsum()
        n_rows = int((padding <= padding_budget(module, longest)).sum())
        yield order[first : first + n_rows]
        first += n_rows


def padding_budget(module: SpanModule, longest: int) -> int:
    """Padding budget of a group, in tokens; beyond it a new group is cheaper."""
    cost = module.cost()
    # Measured on a CPU: 250 tokens for small encoders, 62 for a small transformer.
    return int(24_000 / (max(module.width, 1) * cost.token) + cost.step * longest)
