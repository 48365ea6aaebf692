"""Rows read from their last token to their first.

Axes: B rows, L tokens, D width, K positions.
"""

from __future__ import annotations

import torch
from torch import Tensor


def reverse_rows(mask: Tensor) -> Tensor:
    """Positions that reverse each row and leave its padding in place; their own inverse.  (B, L)"""
    position = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position)


def take_tokens(x: Tensor, index: Tensor) -> Tensor:
    """The token vectors at the given positions of their rows.  (B, L, D), (B, K) -> (B, K, D)"""
    base = torch.arange(x.shape[0], device=x.device)[:, None] * x.shape[1]  # (B, 1)
    taken = x.flatten(0, 1).index_select(0, (base + index).flatten())
    return taken.view(*index.shape, x.shape[2])
