"""What the modules of the Modularized Interaction Network tell each other: wide vectors of words, held as the
fewer numbers that they are made of.

Axes: B rows, L tokens, S numbers of a word that are held, D width, O outputs. Words are padded (B, L)
or not (T,).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, List, Optional, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

Held = TypeVar("Held", bound="Information")


@dataclass
class Information:
    """Vectors side by side. Those that are sums of the rows of a table, which has far fewer rows than
    columns, are held as the shares of the rows; the others as they are."""

    shares: Tensor  # (B, L, S)
    tables: List[Optional[Tensor]]  # of each vector (M, D), or None
    sizes: List[int]  # how many numbers of each vector are held

    @classmethod
    def of(cls, vectors: Tensor) -> Information:
        """Vectors (B, L, D) as they are."""
        return Information(vectors, [None], [vectors.shape[-1]])

    @classmethod
    def mixture(cls, shares: Tensor, table: Tensor) -> Information:
        """Sums of the rows of a table (M, D) by these shares (B, L, M)."""
        return Information(shares, [table], [len(table)])

    @classmethod
    def join(cls, parts: List[Information]) -> Information:
        """All of them side by side."""
        return Information(
            torch.cat([part.shares for part in parts], dim=-1),
            [table for part in parts for table in part.tables],
            [size for part in parts for size in part.sizes],
        )

    def vectors(self) -> Tensor:
        """(B, L, all widths)"""
        held = self.shares.split(self.sizes, dim=-1)
        made = [
            own if table is None else own @ table
            for own, table in zip(held, self.tables, strict=True)
        ]
        return torch.cat(made, dim=-1) if len(made) > 1 else made[0]

    def weights(self, weight: Tensor) -> Tensor:
        """The weight (O, all widths) of the vectors as that of what is held.  (O, S)"""
        widths = [
            size if table is None else table.shape[1]
            for size, table in zip(self.sizes, self.tables, strict=True)
        ]
        columns = weight.split(widths, dim=1)
        folded = [
            own if table is None else own @ table.T
            for own, table in zip(columns, self.tables, strict=True)
        ]
        return torch.cat(folded, dim=1) if len(folded) > 1 else folded[0]

    def project(self, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        """The vectors times a weight (O, all widths).  (B, L, O)"""
        return F.linear(self.shares, self.weights(weight), bias)

    def each(self: Held, change: Callable[[Tensor], Tensor]) -> Held:
        """The same of other words: what `change` makes of what is held."""
        return replace(self, shares=change(self.shares))

    def seen_by(self, attention: Tensor) -> Information:
        """The vectors weighted by the attention of each word (B, L, L)."""
        return self.each(lambda shares: attention @ shares)


@dataclass
class Segments(Information):
    """[first; last; last - first; product] of segments: the difference is not held."""

    @classmethod
    def made_of(cls, first: Tensor, last: Tensor, product: Tensor) -> Segments:
        """(B, L, D) each."""
        parts = [first, last, product]
        sizes = [part.shape[-1] for part in parts]
        return cls(torch.cat(parts, dim=-1), [None] * 3, sizes)

    def vectors(self) -> Tensor:
        """(B, L, 4 D)"""
        first, last, product = self.shares.split(self.sizes, dim=-1)
        return torch.cat([first, last, last - first, product], dim=-1)

    def weights(self, weight: Tensor) -> Tensor:
        """(O, 3 D)"""
        first, last, difference, product = weight.chunk(4, dim=1)
        return torch.cat([first - difference, last + difference, product], dim=1)
