"""Pairing of candidate spans with gold spans by IoU (Locate and Label, 2.2).

B rows, L tokens, W widths, M candidates of a row, N gold spans.
"""

from __future__ import annotations

from typing import Optional, Tuple

import torch
from torch import Tensor

from .geometry import iou


def band(widths: Tensor, n_tokens: int) -> Tuple[Tensor, Tensor]:
    """Starts and ends of the spans of the given widths (W,) at each token.  (L * W,) each

    Spans that leave the row are among them: `inside` says which to use."""
    starts = torch.arange(n_tokens, device=widths.device)[:, None].expand(-1, len(widths))
    return starts.reshape(-1), (starts + widths).reshape(-1)


def inside(ends: Tensor, mask: Tensor) -> Tensor:
    """Which candidate ends (M,) lie within each row of the token mask (B, L).  (B, M) bool"""
    return ends <= mask.sum(dim=1)[:, None]


def touches(flags: Tensor, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Whether a token of [start, end) is flagged in (B, L); ends past the row are cut there."""
    n_tokens = flags.shape[1]
    seen = torch.nn.functional.pad(flags.long().cumsum(dim=1), (1, 0)).reshape(-1)  # (B * (L + 1),)
    base = row * (n_tokens + 1)
    return seen[base + end.clamp(max=n_tokens)] > seen[base + start.clamp(max=n_tokens)]


def pair(starts: Tensor, ends: Tensor, gold: Tensor, n_rows: int) -> Tuple[Tensor, Tensor]:
    """For each candidate (M,) and row the gold span (N, 4) of the largest IoU.

    Gives the IoU (B, M) and the number of the gold span (B, M), which is N where no gold span
    shares a token with it. Labels play no part; on a tie the first in the table is taken."""
    n_gold, n_candidates = len(gold), len(starts)
    overlap = iou(starts, ends, gold[:, 1:2], gold[:, 2:3])  # (N, M), each in its own row only
    rows = gold[:, :1].expand(-1, n_candidates)  # (N, M)
    best = overlap.new_zeros((n_rows, n_candidates))  # (B, M)
    best = best.scatter_reduce(0, rows, overlap, "amax")
    # As floats, which hold any number of gold spans: of integers, the minimum takes ten times as long.
    number = torch.arange(n_gold, device=gold.device, dtype=overlap.dtype)[:, None]  # (N, 1)
    is_best = (overlap > 0) & (overlap == best.index_select(0, gold[:, 0]))  # (N, M)
    first = torch.where(is_best, number, float(n_gold))  # (N, M)
    partner = overlap.new_full((n_rows, n_candidates), n_gold)
    return best, partner.scatter_reduce(0, rows, first, "amin").long()


def first_of_span(gold: Tensor) -> Tensor:
    """False for a gold span that is earlier in the table with another label.  (N,) bool"""
    same = (gold[:, None, :3] == gold[None, :, :3]).all(dim=-1)  # (N, N)
    return same.tril(diagonal=-1).sum(dim=1) == 0


def negatives(
    overlap: Tensor,
    valid: Tensor,
    starts: Tensor,
    ends: Tensor,
    *,
    threshold: float,
    known: Optional[Tensor],
) -> Tensor:
    """Candidates that may serve as negatives: valid, IoU (B, M) under the threshold and free of
    unannotated tokens (`known` (B, L)).  (B, M) bool"""
    allowed = valid & (overlap < threshold)
    if known is None:
        return allowed
    rows = torch.arange(len(overlap), device=overlap.device)[:, None]  # (B, 1)
    return allowed & ~touches(~known, rows, starts, ends)
