"""Interaction Mechanism of the Modularized Interaction Network (Li et al. 2021, section 3.4).

Axes: B rows, L tokens, D width, M labels of a sub-task, A attention heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..decoders.crf import FORBIDDEN
from .boundary_pointer import BiaffineScores


@dataclass
class Mixture:
    """Each word's sum of the rows of a table, which has far fewer rows than columns; without a
    table, vectors as they are."""

    shares: Tensor  # (B, L, M), or (B, L, D) without a table
    table: Optional[Tensor] = None  # (M, D)

    @property
    def width(self) -> int:
        return (self.shares if self.table is None else self.table).shape[-1]

    def vectors(self) -> Tensor:
        return self.shares if self.table is None else self.shares @ self.table  # (B, L, D)

    def weight(self, weight: Tensor) -> Tensor:
        """The weight (O, D) of the vectors as that of the shares.  (O, M)"""
        return weight if self.table is None else weight @ self.table.T


@dataclass
class Information:
    """Vectors side by side, (B, L, D) each."""

    parts: List[Mixture]

    @classmethod
    def of(cls, vectors: Tensor) -> Information:
        return cls([Mixture(vectors)])

    def vectors(self) -> Tensor:
        """(B, L, all widths)"""
        return torch.cat([part.vectors() for part in self.parts], dim=2)

    def project(self, weight: Tensor) -> Tensor:
        """The vectors times a weight (O, all widths): of a mixture, its few shares are multiplied
        instead.  (B, L, O)"""
        columns = weight.split([part.width for part in self.parts], dim=1)
        weights = [part.weight(own) for part, own in zip(self.parts, columns, strict=True)]
        return F.linear(
            torch.cat([part.shares for part in self.parts], dim=2), torch.cat(weights, dim=1)
        )

    def seen_by(self, attention: Tensor) -> List[Mixture]:
        """What each word finds by its attention (B, L, L)."""
        return [Mixture(attention @ part.shares, part.table) for part in self.parts]


class QinLabels(nn.Module):
    """Labels met by dot product (Qin et al. 2021): softmax(H E') E.

    The rows of E are those of the sub-task's own classifier, where it has one; else a free table.
    """

    def __init__(self, *, width: int, n_labels: int, own_table: bool):
        super().__init__()
        self.table: Optional[nn.Parameter] = None
        if own_table:
            self.table = nn.Parameter(torch.randn(n_labels, width) * width**-0.5)

    def forward(self, x: Tensor, classifier: Optional[Tensor] = None) -> Mixture:
        """The mean label of each word as seen from its state (B, L, D)."""
        table = classifier if self.table is None else self.table  # (M, D)
        assert table is not None
        return Mixture((x @ table.T).softmax(2), table)


class LanLabels(nn.Module):
    """Labels met by scaled dot product in several heads (Cui and Zhang 2019), added to the state.

    Queries, keys and values pass a linear layer and a ReLU; the label vectors are a free table.
    """

    def __init__(self, *, width: int, n_labels: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.table = nn.Parameter(torch.empty(n_labels, width).uniform_(-0.0025, 0.0025))
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: Tensor, classifier: Optional[Tensor] = None) -> Mixture:
        """(B, L, D)"""
        heads = (self.n_heads, -1)
        queries = self.query(x).relu().unflatten(2, heads)  # (B, L, A, D / A)
        keys = self.key(self.table).relu().unflatten(1, heads)  # (M, A, D / A)
        values = self.value(self.table).relu().unflatten(1, heads)
        logits = torch.einsum("blad,mad->blam", queries, keys) * keys.shape[2] ** -0.5
        return Mixture(x + torch.einsum("blam,mad->blad", logits.softmax(3), values).flatten(2))


class Interaction(nn.Module):
    """Boundary and type states, each with its labels and with what it finds in the other."""

    def __init__(self, *, width: int, n_types: int, label_attention: str, n_heads: int):
        super().__init__()
        n_boundaries = 5  # O, B, I, E, S: the pointer has no labels of its own
        self.boundary_labels: Optional[nn.Module] = None
        self.type_labels: Optional[nn.Module] = None
        if label_attention == "qin":
            self.boundary_labels = QinLabels(width=width, n_labels=n_boundaries, own_table=True)
            self.type_labels = QinLabels(width=width, n_labels=n_types, own_table=False)
        elif label_attention == "lan":
            self.boundary_labels = LanLabels(width=width, n_labels=n_boundaries, n_heads=n_heads)
            self.type_labels = LanLabels(width=width, n_labels=n_types, n_heads=n_heads)
        enhanced = width if label_attention == "none" else 2 * width
        self.output_width = 2 * enhanced
        self.boundary_scores = BiaffineScores(query_width=enhanced, key_width=enhanced)
        self.type_scores = BiaffineScores(query_width=enhanced, key_width=enhanced)

    def forward(
        self, boundary: Tensor, types: Tensor, mask: Tensor, classifier: Tensor
    ) -> Tuple[Information, Information]:
        """Both after the interaction.  (B, L, D) each -> 2 or 4 vectors of each word, each"""
        of_boundary, of_types = Information.of(boundary), Information.of(types)
        if self.boundary_labels is not None and self.type_labels is not None:
            of_boundary.parts.append(self.boundary_labels(boundary))
            of_types.parts.append(self.type_labels(types, classifier))
        boundary, types = of_boundary.vectors(), of_types.vectors()  # (B, L, D or 2 D)
        from_types = of_types.seen_by(attend(self.boundary_scores(boundary, types), mask))
        from_boundary = of_boundary.seen_by(attend(self.type_scores(types, boundary), mask))
        return (
            Information([*of_boundary.parts, *from_types]),
            Information([*of_types.parts, *from_boundary]),
        )


def attend(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the real words of each row.  (B, L, L)"""
    return logits.masked_fill(~mask[:, None, :], FORBIDDEN).softmax(2)
