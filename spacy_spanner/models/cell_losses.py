"""Losses over the cells of a pair table, few of which are gold (Su et al. 2022, section 3.4).

Axes: B rows, C labels, L tokens, X columns, N gold cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus


@dataclass
class GoldCells:
    """Where the gold is in a table (B, C, L, X)."""

    row: Tensor  # (N,)
    label: Tensor  # (N,)
    first: Tensor  # (N,)
    column: Tensor  # (N,) in range, also where `inside` is False
    inside: Tensor  # (N,) bool: False for gold that the table cannot hold

    def logits(self, table: Tensor) -> Tensor:
        return table[self.row, self.label, self.first, self.column]  # (N,)

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


def multilabel_loss(
    logits: Tensor, gold: GoldCells, candidates: Tensor, *, sum_labels: bool = False
) -> Tensor:
    """log(1 + sum over negatives e^s) + log(1 + sum over gold e^-s), for each row and label.

    candidates: Cells that exist and are annotated, broadcast to (B, C, L, X); gold always counts.
    sum_labels: Sum over labels, as for relations, instead of the mean.
    """
    lowest = torch.finfo(logits.dtype).min  # unlike -inf it gives no NaN for a row with no cell
    negatives = candidates & ~gold.as_mask(logits)
    negative = softplus(torch.where(negatives, logits, lowest).flatten(2).logsumexp(-1))  # (B, C)
    loss = negative + _positive_term(logits, gold)  # (B, C)
    return loss.sum(1).mean() if sum_labels else loss.mean()


def _positive_term(logits: Tensor, gold: GoldCells) -> Tensor:
    """log(1 + sum over gold e^-s) for each row and label.  (B, C)"""
    rows, labels = logits.shape[:2]
    group = gold.row * labels + gold.label  # (N,)
    lowest = torch.finfo(logits.dtype).min
    opposite = torch.where(gold.inside, -gold.logits(logits), lowest)  # (N,)
    with torch.no_grad():  # the largest term, taken out of the sum so that no exponent overflows
        largest = logits.new_zeros(rows * labels).scatter_reduce(0, group, opposite, "amax")
    terms = (opposite - largest[group]).exp()
    summed = (-largest).exp().index_add(0, group, terms)
    return (summed.log() + largest).view(rows, labels)


def binary_loss(logits: Tensor, gold: GoldCells, candidates: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over all cells that exist and are annotated."""
    counted = (candidates | gold.as_mask(logits)).expand_as(logits)  # (B, C, L, X)
    positive = torch.where(gold.inside, gold.logits(logits), 0.0).sum()
    total = torch.where(counted, softplus(logits), 0.0).sum() - positive
    return total / counted.sum().clamp(min=1)
