"""Max over any stretch of a row in constant time: a table of windows of 1, 2, 4, ... tokens.

B rows, L tokens, D width, N spans, P powers of two up to L.
"""

from __future__ import annotations

from typing import List

import torch
from torch import Tensor


class RangeMax:
    """Max-pooled vectors of arbitrary spans of (B, L, D) token vectors."""

    def __init__(self, x: Tensor):
        self.n_rows, self.n_tokens, self.width = x.shape
        levels: List[Tensor] = [x]
        step = 1
        while 2 * step <= self.n_tokens:
            last = levels[-1]
            reached = torch.maximum(last[:, :-step], last[:, step:])  # (B, L - step, D)
            # The tail is never asked for: its windows would leave the row.
            levels.append(torch.cat([reached, last[:, -step:]], dim=1))
            step *= 2
        self.table = torch.stack(levels).view(-1, self.width)  # (P * B * L, D)
        # The largest power of two in each length, found by counting so that no float rounds it.
        self.powers = 2 ** torch.arange(len(levels), device=x.device)  # (P,)

    def __call__(self, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Max over [start, end) of each row; no span may be empty.  (N,) each -> (N, D)"""
        level = (self.powers <= (end - start)[:, None]).sum(dim=1) - 1  # (N,)
        base = (level * self.n_rows + row) * self.n_tokens  # (N,)
        second = end - 2**level  # (N,) two windows that overlap cover the span
        return torch.maximum(
            self.table.index_select(0, base + start), self.table.index_select(0, base + second)
        )
