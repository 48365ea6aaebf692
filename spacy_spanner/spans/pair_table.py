"""A table with a cell for each candidate span: all pairs of tokens, or a band of near ones.

Axes: B rows, C labels, L tokens, X columns, N gold cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import pad

from .bands import all_known, band_mask, pairs_of_band

N_WIDTHS, EXACT = 32, 16  # classes of widths, of which the first have one width each


@dataclass
class GoldCells:
    """The cells of the gold spans in a table (B, C, L, X)."""

    row: Tensor  # (N,)
    label: Tensor  # (N,)
    first: Tensor  # (N,)
    column: Tensor  # (N,) in range, also where `inside` is False
    inside: Tensor  # (N,) bool: False for gold that the table cannot hold

    def index(self, table: Tensor) -> Tensor:
        """Index of each cell in the flattened table.  (N,)"""
        _, labels, length, columns = table.shape
        return ((self.row * labels + self.label) * length + self.first) * columns + self.column

    def logits(self, table: Tensor) -> Tensor:
        """Values of the cells.  (N,)"""
        return table.flatten().index_select(0, self.index(table))

    def as_mask(self, table: Tensor) -> Tensor:
        """The gold cells of the table.  (B, C, L, X) bool"""
        rows, labels, length, columns = table.shape
        # What is not inside goes to a column that is then cut off: no boolean indexing, no sync.
        mask = torch.zeros(
            (rows, labels, length, columns + 1), dtype=torch.bool, device=table.device
        )
        column = torch.where(self.inside, self.column, columns)
        mask[self.row, self.label, self.first, column] = True
        return mask[..., :columns]


class PairTable:
    """Cells for the spans of rows of one length: all pairs of tokens (X = L), or a band of the
    pairs that are near enough (X = W) where that is far smaller.

    widest: Widest span that counts; no more than the length.
    """

    def __init__(self, length: int, widest: int):
        self.length, self.widest = length, widest
        # A band of a quarter takes as long as one large product.
        self.band: Optional[int] = widest if 4 * widest < length else None
        self.columns = self.band or length

    @classmethod
    def bounded(cls, length: int, *max_widths: Optional[int]) -> PairTable:
        """The table for spans up to the smallest of these widths; None is no bound."""
        return cls(length, min([length, *(width for width in max_widths if width is not None)]))

    def spans(self, mask: Tensor) -> Tensor:
        """Which cells are spans of unpadded tokens; `mask` is (B, L).  (B, L, X)"""
        if self.band is not None:
            return band_mask(mask, self.band)
        near = torch.ones((self.length, self.length), dtype=torch.bool, device=mask.device)
        near = near.triu().tril(self.widest - 1)
        return mask[:, None, :] & near  # tokens are a prefix: with the last, the first is one

    def known(self, known: Tensor) -> Tensor:
        """Which cells touch annotated tokens only; `known` is (B, L).  (B, L, X)"""
        if self.band is not None:
            return all_known(known, self.band)
        unknown = (~known).cumsum(1)  # (B, L): unknown tokens up to and with each
        return unknown[:, None, :] == (unknown - (~known).long())[:, :, None]

    def widths(self, device: torch.device) -> Tensor:
        """Widths of the spans of cells, under 1 where there is none.  (L, X) or, of a band, (1, X)"""
        column = torch.arange(self.columns, device=device)
        if self.band is not None:
            return column[None] + 1
        return column - column[:, None] + 1

    def of_band(self, values: Tensor) -> Tensor:
        """Values of the spans of the first widths (..., L, W) in this table; undefined where there is
        no span, 0 for wider ones.  (..., L, X)"""
        if self.band is None:
            return pairs_of_band(values)
        return pad(values, (0, self.columns - values.shape[-1]))

    def end(self, start: Tensor, column: Tensor) -> Tensor:
        """Ends (exclusive) of the spans of cells.  (N,), (N,) -> (N,)"""
        return (column if self.band is None else start + column) + 1

    def gold(self, spans: Tensor) -> GoldCells:
        """The cells of a span table (N, 4)."""
        row, start, end, label = spans.unbind(1)
        shift = end - 1 - start
        inside = shift < self.widest
        if self.band is None:
            return GoldCells(row, label, start, end - 1, inside)
        return GoldCells(row, label, start, shift.clamp(max=self.band - 1), inside)


def width_class(widths: Tensor) -> Tensor:
    """Small widths one by one, larger ones by quarters of a power of two."""
    beyond = (widths.clamp(min=EXACT) / EXACT).log2().mul(4).long()
    return (widths.clamp(1, EXACT) - 1 + beyond).clamp(max=N_WIDTHS - 1)
