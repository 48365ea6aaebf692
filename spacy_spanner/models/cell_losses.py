"""Losses over the cells of a pair table, few of which are gold (Su et al. 2022, section 3.4).

Axes: B rows, C labels, L tokens, X columns, N gold cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

SMALLEST_EXPONENT = -80.0  # of a float32 that is not yet denormal


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
    negatives = candidates & ~gold.as_mask(logits)
    negative = softplus(masked_logsumexp(logits.flatten(2), negatives.flatten(2)))  # (B, C)
    loss = negative + _positive_term(logits, gold)  # (B, C)
    return loss.sum(1).mean() if sum_labels else loss.mean()


def masked_logsumexp(x: Tensor, counted: Tensor) -> Tensor:
    """log of the sum of e^x over the last axis, of the counted numbers alone; the lowest number
    that there is where none is counted."""
    return _MaskedLogSumExp.apply(x, counted)


class _MaskedLogSumExp(torch.autograd.Function):
    """Left to autograd, the exponentials would be computed twice, and those of the very low numbers
    that stand for what is not counted take a CPU many times as long as others."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counted: Tensor) -> Tensor:
        # Unlike -inf the lowest number gives no NaN for a row with no cell.
        shifted = torch.where(counted, x, torch.finfo(x.dtype).min)
        peak = shifted.amax(-1, keepdim=True)
        # The sum is at least 1: what is clamped is far below its last digit.
        terms = shifted.sub_(peak).clamp_(min=SMALLEST_EXPONENT).exp_().mul_(counted)
        total = terms.sum(-1, keepdim=True)
        ctx.save_for_backward(terms, total)
        return torch.where(total > 0, total.log() + peak, peak).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> Tuple[Tensor, None]:
        terms, total = ctx.saved_tensors
        share = torch.where(total > 0, d_output[..., None] / total, 0.0)
        return terms * share, None


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
