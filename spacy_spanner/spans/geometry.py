"""Geometry of half-open spans: IoU, boundary offsets and their inverse (Locate and Label, 2.2-2.5).

Any shapes that broadcast. `start` and `end` are int64 unless said otherwise.
"""

from __future__ import annotations

from typing import Tuple

import torch
from torch import Tensor


def iou(start: Tensor, end: Tensor, other_start: Tensor, other_end: Tensor) -> Tensor:
    """Shared tokens over covered tokens, float32 in 0..1. Not both may be empty."""
    shared = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0)
    covered = (end - start) + (other_end - other_start) - shared
    return shared.float() / covered.float()


def covered(spans: Tensor, counted: Tensor, shape: Tuple[int, int]) -> Tensor:
    """Which tokens lie in a span of a table (N, 4) that is counted (N,) bool.  (B, L) bool"""
    steps = spans.new_zeros((shape[0], shape[1] + 1))
    row, start, end, _ = spans.unbind(1)
    steps.index_put_((row, start), counted.long(), accumulate=True)
    steps.index_put_((row, end), -counted.long(), accumulate=True)
    return steps.cumsum(1)[:, :-1] > 0


def crosses(start: Tensor, end: Tensor, other_start: Tensor, other_end: Tensor) -> Tensor:
    """True where two spans share tokens and neither holds the other."""
    left_first = (start < other_start) & (other_start < end) & (end < other_end)
    right_first = (other_start < start) & (start < other_end) & (other_end < end)
    return left_first | right_first


def encode_offsets(start: Tensor, end: Tensor, gold_start: Tensor, gold_end: Tensor) -> Tensor:
    """Offsets from each boundary to that of the gold span.  (..., 2)"""
    return torch.stack([gold_start - start, gold_end - end], dim=-1)


def apply_offsets(start: Tensor, end: Tensor, offsets: Tensor) -> Tuple[Tensor, Tensor]:
    """Move the boundaries, unrounded and unbounded: the inverse of `encode_offsets`."""
    return start + offsets[..., 0], end + offsets[..., 1]


def adjust(
    start: Tensor, end: Tensor, offsets: Tensor, length: Tensor
) -> Tuple[Tensor, Tensor, Tensor]:
    """Spans after regression: offsets (..., 2) rounded by floor(t + 1/2), boundaries cut at the
    row (eq 6-7), and whether the result is legal, that is not empty. Illegal ones stay in place."""
    # Beyond the row nothing changes any more; the bound keeps the cast to integers defined.
    bound = length[..., None].to(offsets.dtype)
    steps = torch.floor(offsets + 0.5).clamp(-bound, bound).long()  # (..., 2)
    new_start, new_end = apply_offsets(start, end, steps)
    new_start, new_end = new_start.clamp(min=0), torch.minimum(new_end, length)
    legal = new_start < new_end
    return torch.where(legal, new_start, start), torch.where(legal, new_end, end), legal


def soft_weights(overlap: Tensor, *, threshold: float, eta: float) -> Tensor:
    """Eq 11: a span counts by how clearly it is a positive (IoU >= threshold) or a negative one.

    >>> soft_weights(torch.tensor([1.0, 0.75, 0.25, 0.0]), threshold=0.7, eta=1.0)
    tensor([1.0000, 0.7500, 0.7500, 1.0000])
    """
    return torch.where(overlap >= threshold, overlap, 1 - overlap).pow(eta)
