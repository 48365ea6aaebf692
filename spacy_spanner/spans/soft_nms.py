"""Soft-NMS over spans, all rows at once (Locate and Label, Algorithm 1 and eq 18).

B rows, M candidates of a row, N spans.
"""

from __future__ import annotations

from typing import Tuple

import torch
from torch import Tensor

from .geometry import iou


def pad_by_row(row: Tensor, n_rows: int) -> Tuple[Tensor, Tensor]:
    """Place spans, sorted by row (N,), into a padded table: which span is in each slot (B, M), and
    which slots are filled (B, M). Reads M from the device, so it is for decoding only."""
    counts = torch.bincount(row, minlength=n_rows)  # (B,)
    slots = torch.arange(int(counts.max()), device=row.device)  # (M,)
    filled = slots < counts[:, None]  # (B, M)
    first = counts.cumsum(dim=0) - counts  # (B,)
    return (first[:, None] + slots).masked_fill(~filled, 0), filled


def soft_nms(
    start: Tensor, end: Tensor, scores: Tensor, filled: Tensor, *, decay: float, overlap: float
) -> Tensor:
    """Scores after Soft-NMS, blind to labels; (B, M) each, 0 in empty slots.

    Candidates are taken by falling score, the first slot on a tie; each one taken multiplies the
    score of those still waiting whose IoU with it is at least `overlap` by `decay`."""
    waiting = filled
    scores = scores.masked_fill(~filled, 0.0)
    for _ in range(scores.shape[1]):
        taken = scores.masked_fill(~waiting, -1.0).argmax(dim=1, keepdim=True)  # (B, 1)
        waiting = waiting.scatter(1, taken, False)
        near = iou(start, end, start.gather(1, taken), end.gather(1, taken)) >= overlap  # (B, M)
        scores = torch.where(waiting & near, scores * decay, scores)
    return scores
