"""Interaction Mechanism of the Modularized Interaction Network (Li et al. 2021, section 3.4).

Axes: B rows, L tokens, D width, M labels of a sub-task, A attention heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..decoders.crf import FORBIDDEN
from .boundary_pointer import BiaffineScores


@dataclass
class Mixture:
    """Each word's sum of the rows of a table, which has far fewer rows than columns; without a
    table, vectors as they are. Words are padded (B, L) or not (T,)."""

    shares: Tensor  # (B, L, M), or (B, L, D) without a table
    table: Optional[Tensor] = None  # (M, D)

    @property
    def width(self) -> int:
        """D of the vectors."""
        return (self.shares if self.table is None else self.table).shape[-1]

    def vectors(self) -> Tensor:
        """The sums themselves.  (B, L, D)"""
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
        """Vectors (B, L, D) without a table."""
        return cls([Mixture(vectors)])

    def vectors(self) -> Tensor:
        """(B, L, all widths)"""
        return torch.cat([part.vectors() for part in self.parts], dim=-1)

    def project(self, weight: Tensor) -> Tensor:
        """The vectors times a weight (O, all widths): of a mixture, its few shares are multiplied
        instead.  (B, L, O)"""
        columns = weight.split([part.width for part in self.parts], dim=1)
        weights = [part.weight(own) for part, own in zip(self.parts, columns, strict=True)]
        return F.linear(
            torch.cat([part.shares for part in self.parts], dim=-1), torch.cat(weights, dim=1)
        )

    def each(self, change: Callable[[Tensor], Tensor]) -> Information:
        """The same of other words: what `change` makes of the shares of each part."""
        return Information([Mixture(change(part.shares), part.table) for part in self.parts])

    def seen_by(self, attention: Tensor) -> List[Mixture]:
        """The values weighted by the attention of each word (B, L, L)."""
        return self.each(lambda shares: attention @ shares).parts


def mean_label(x: Tensor, table: Tensor) -> Mixture:
    """The mean label of each word as seen from its state (B, L, D), by dot product with the labels
    (M, D): softmax(H E') E (Qin et al. 2021)."""
    return Mixture((x @ table.T).softmax(2), table)


class Interaction(nn.Module):
    """Boundary and type states, each with its labels and with what it finds in the other."""

    def __init__(self, *, width: int):
        super().__init__()
        # Vectors of O, B, I, E and S: the pointer has no classifier whose rows would be its labels.
        labels = nn.Parameter(torch.empty(5, width).normal_(std=width**-0.5))
        self.boundary_labels = nn.ParameterDict({"table": labels})
        self.output_width = 4 * width
        self.boundary_scores = BiaffineScores(query_width=2 * width, key_width=2 * width)
        self.type_scores = BiaffineScores(query_width=2 * width, key_width=2 * width)

    def forward(
        self, boundary: Tensor, types: Tensor, mask: Tensor, classifier: Tensor
    ) -> Tuple[Information, Information]:
        """Both after the interaction, 4 vectors of each word.  (B, L, D) each

        classifier: The rows (M, D) of the layer that scores types."""
        labels = self.boundary_labels["table"]
        of_boundary = Information([Mixture(boundary), mean_label(boundary, labels)])
        of_types = Information([Mixture(types), mean_label(types, classifier)])
        to_types = scores_between(of_boundary, of_types, self.boundary_scores)  # (B, L, L)
        to_boundary = scores_between(of_types, of_boundary, self.type_scores)
        from_types = of_types.seen_by(attend(to_types, mask))
        from_boundary = of_boundary.seen_by(attend(to_boundary, mask))
        return (
            Information([*of_boundary.parts, *from_types]),
            Information([*of_types.parts, *from_boundary]),
        )


def scores_between(queries: Information, keys: Information, scores: BiaffineScores) -> Tensor:
    """As the scores of the vectors, but mixtures are not multiplied at full width.  (B, L, L)"""
    query = queries.project(scores.query.weight) + scores.query.bias
    return query @ keys.vectors().transpose(1, 2)


def attend(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the unpadded words of each row.  (B, L, L)"""
    return logits.masked_fill(~mask[:, None, :], FORBIDDEN).softmax(2)
