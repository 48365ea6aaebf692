"""A BiLSTM over rows of any lengths without a padded cell.

Axes: B rows, T steps of all rows together, D width, H width per direction.
"""

from __future__ import annotations

from typing import Tuple

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence


def packed_order(lengths: numpy.ndarray) -> Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """How steps that lie row after row are put in packed order: all first steps, then all second
    steps, longer rows first. Every row has at least one step.

    RETURNS: The place of each packed step among the flat ones (T,), how many rows have each step,
        and the rank of each row by length (B,).
    """
    rank = numpy.empty(len(lengths), dtype="int64")
    rank[numpy.argsort(-lengths, kind="stable")] = numpy.arange(len(lengths))
    starts = numpy.cumsum(lengths) - lengths
    step = numpy.arange(int(lengths.sum())) - numpy.repeat(starts, lengths)  # (T,)
    order = numpy.lexsort((numpy.repeat(rank, lengths), step))  # (T,)
    return order, numpy.bincount(step), rank


class PackedBiLSTM(nn.Module):
    """Memory grows with the number of steps, also where one row is much longer than the others."""

    def __init__(self, *, width: int, hidden: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        self.lstm = nn.LSTM(
            width,
            hidden,
            num_layers=layers,
            bidirectional=True,
            dropout=dropout if layers > 1 else 0.0,
        )

    def forward(self, x: Tensor, lengths: numpy.ndarray) -> Tuple[Tensor, Tensor]:
        """x: The steps of all rows, row after row.  (T, D)
        RETURNS: The states in the same order (T, 2H) and the last state of both directions of each
            row (B, 2H).
        """
        order, sizes, rank = packed_order(lengths)
        inverse = numpy.empty_like(order)
        inverse[order] = numpy.arange(len(order))
        packed = PackedSequence(
            F.embedding(torch.from_numpy(order).to(x.device), x), torch.from_numpy(sizes)
        )
        states, (last, _) = self.lstm(packed)  # last: (layers * 2, B, H)
        flat = F.embedding(torch.from_numpy(inverse).to(x.device), states.data)  # (T, 2H)
        both = torch.cat([last[-2], last[-1]], dim=1)  # (B, 2H)
        return flat, F.embedding(torch.from_numpy(rank).to(x.device), both)
