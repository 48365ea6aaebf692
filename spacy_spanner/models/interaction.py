"""Interaction Mechanism of the Modularized Interaction Network (Li et al. 2021, section 3.4).

Axes: B rows, L tokens, D width, M labels of a sub-task, A attention heads.
"""

from __future__ import annotations

from typing import Tuple

import torch
from torch import Tensor, nn

from ..decoders.crf import FORBIDDEN
from .boundary_pointer import BiaffineScores
from .information import Information


def mean_label(x: Tensor, table: Tensor) -> Information:
    """The mean label of each word as seen from its state (B, L, D), by dot product with the labels
    (M, D): softmax(H E') E (Qin et al. 2021)."""
    return Information.mixture((x @ table.T).softmax(2), table)


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
        of_boundary = with_labels(boundary, labels)
        of_types = with_labels(types, classifier)
        to_types = scores_between(of_boundary, of_types, self.boundary_scores)  # (B, L, L)
        to_boundary = scores_between(of_types, of_boundary, self.type_scores)
        from_types = of_types.seen_by(attend(to_types, mask))
        from_boundary = of_boundary.seen_by(attend(to_boundary, mask))
        return (
            Information.join([of_boundary, from_types]),
            Information.join([of_types, from_boundary]),
        )


def with_labels(x: Tensor, table: Tensor) -> Information:
    """States (B, L, D) and the mean label of each."""
    return Information.join([Information.of(x), mean_label(x, table)])


def scores_between(queries: Information, keys: Information, scores: BiaffineScores) -> Tensor:
    """As the scores of the vectors, but nothing is multiplied at full width: the weights take the
    tables of both sides.  (B, L, L)"""
    layer = scores.query
    of_keys = torch.cat([layer.weight, layer.bias[:, None]], dim=1).T  # (D + 1, E)
    folded = keys.weights(of_keys).T  # (S, D + 1)
    query = queries.project(folded[:, :-1], folded[:, -1])  # (B, L, S)
    return query @ keys.shares.transpose(1, 2)


def attend(logits: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the unpadded words of each row.  (B, L, L)"""
    return logits.masked_fill(~mask[:, None, :], FORBIDDEN).softmax(2)
