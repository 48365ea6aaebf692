"""Labels of entities as features of the links between them.

Axes: N spans, each as often as it has labels, K positions, E labels, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..label_axes import LABELS, mark


class EndLabels(nn.Module):
    """A learned vector of each entity label."""

    def __init__(self, n_labels: int, width: int):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(n_labels, width) * width**-0.5)  # (E, D)
        mark(self.vectors, LABELS)

    def forward(self, position: Tensor, label: Tensor, n_positions: int) -> Tensor:
        """The sum of the vectors of the labels (N,) at each position (N,); label -1 has none.  (K, D)"""
        vectors = self.vectors[label.clamp(min=0)] * (label >= 0)[:, None]  # (N, D)
        return vectors.new_zeros((n_positions, vectors.shape[1])).index_add(0, position, vectors)
