"""Losses over the cells of a pair table, few of which are gold (Su et al. 2022, section 3.4).

Axes: B rows, C labels, L tokens, X columns, N gold cells.
"""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

from ..spans.pair_table import GoldCells

SMALLEST_EXPONENT = -80.0  # of a float32 that is not yet denormal


def multilabel_loss(
    logits: Tensor, gold: GoldCells, candidates: Tensor, *, sum_labels: bool = False
) -> Tensor:
    """log(1 + sum over negatives e^s) + log(1 + sum over gold e^-s), for each row and label.

    candidates: Cells that exist and are annotated, broadcast to (B, C, L, X); gold always counts.
    sum_labels: Sum over labels, as for relations, instead of the mean.
    """
    losses = loss_of_rows(logits, gold, candidates)  # (B, C)
    return losses.sum(1).mean() if sum_labels else losses.mean()


def multilabel_loss_of_starts(logits: Tensor, gold: GoldCells, candidates: Tensor) -> Tensor:
    """The same for each first token and label, summed over labels, mean over the tokens that begin a
    candidate. In a long row, the loss of the row is mostly that of its few worst cells; this one
    depends on how sentences are joined only by the spans that reach from one into the next.

    candidates: (B, 1, L, X)
    """
    rows, labels, length, columns = logits.shape
    by_start = logits.transpose(1, 2).reshape(rows * length, labels, 1, columns)
    row, first = gold.row * length + gold.first, torch.zeros_like(gold.first)
    moved = GoldCells(row, gold.label, first, gold.column, gold.inside)
    counted = candidates.reshape(rows * length, 1, 1, columns)
    losses = loss_of_rows(by_start, moved, counted)  # (B * L, C)
    return losses.sum() / counted.any(3).sum().clamp(min=1)


def loss_of_rows(logits: Tensor, gold: GoldCells, candidates: Tensor) -> Tensor:
    """Both terms for each row and label.  (B, C)"""
    group = gold.row * logits.shape[1] + gold.label  # (N,)
    return _MultilabelLoss.apply(logits, candidates, gold.index(logits), group, gold.inside)


class _MultilabelLoss(torch.autograd.Function):
    """Both terms for each row and label (B, C). Left to autograd, exponentials would be computed
    twice and the few gold cells get a table of gradients of their own.

    Sums are made with numbers 1 and 0 and not with masks, which take a CPU several times as long to
    use; exponents are cut where results would be denormal, which takes longer still."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, candidates: Tensor, place: Tensor, group: Tensor, inside: Tensor
    ) -> Tensor:
        counted = candidates.view(torch.int8).to(logits.dtype)  # (B, 1, L, X)
        barred = 1 - counted.reciprocal()  # (B, 1, L, X): 0, or -inf where nothing is counted
        cells = (logits + barred).contiguous()
        lower_(cells, place, inside, -torch.inf)
        # Taken out of the sum; -inf, where there is no negative, would give NaN.
        peak = cells.amax((2, 3), keepdim=True).clamp_(min=torch.finfo(logits.dtype).min)
        # The sum is at least 1: what is cut is far below its last digit.
        terms = cells.sub_(peak).clamp_(min=SMALLEST_EXPONENT).exp_().mul_(counted)
        lower_(terms, place, inside, 0.0)
        total = terms.sum((2, 3), keepdim=True)  # (B, C, 1, 1)
        negative = softplus(total.log() + peak)  # 0 where there is none

        gold = logits.flatten().index_select(0, place)  # (N,)
        opposite = torch.where(inside, -gold, -torch.inf)  # (N,)
        largest = logits.new_zeros(peak.numel()).scatter_reduce_(0, group, opposite, "amax")
        gold_terms = (opposite - largest[group]).exp_()  # (N,)
        gold_total = (-largest).exp_().index_add_(0, group, gold_terms)  # (B C,)

        share = torch.where(total > 0, torch.sigmoid(total.log() + peak) / total, 0.0)
        ctx.save_for_backward(terms, share, place, group, gold_terms / gold_total[group])
        return negative[..., 0, 0] + (gold_total.log() + largest).view(peak.shape[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> Tuple[Tensor, None, None, None, None]:
        terms, share, place, group, gold_share = ctx.saved_tensors
        d_logits = terms * (share * d_loss[..., None, None])  # (B, C, L, X)
        d_gold = -gold_share * d_loss.flatten()[group]  # (N,)
        d_logits.view(-1).index_add_(0, place, d_gold)
        return d_logits, None, None, None, None


def lower_(table: Tensor, place: Tensor, inside: Tensor, value: float) -> None:
    """Lower the cells at the given indices (N,) to the value. Those that are not inside, whose index
    may be that of another cell, are left unchanged."""
    values = torch.where(inside, value, torch.inf).to(table.dtype)  # (N,)
    table.view(-1).scatter_reduce_(0, place, values, "amin")


def binary_loss(logits: Tensor, gold: GoldCells, candidates: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over all cells that exist and are annotated."""
    counted = (candidates | gold.as_mask(logits)).expand_as(logits)  # (B, C, L, X)
    positive = torch.where(gold.inside, gold.logits(logits), 0.0).sum()
    total = torch.where(counted, softplus(logits), 0.0).sum() - positive
    return total / counted.sum().clamp(min=1)
