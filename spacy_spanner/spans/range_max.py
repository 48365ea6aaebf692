"""Max over any stretch of a row in constant time: a table of windows of 1, 2, 4, ... tokens.

B rows, L tokens, D width, N spans, P powers of two up to L.
"""

from __future__ import annotations

from typing import List

import torch
from torch import Tensor


class RangeMax:
    """Max-pooled vectors of arbitrary spans of (B, L, D) token vectors.

    Where a gradient is wanted, a second table tells which token each maximum came from. The result
    is then gathered from the tokens, so that the backward pass is one scatter instead of the
    derivatives of every window."""

    def __init__(self, x: Tensor):
        self.n_rows, self.n_tokens, self.width = x.shape
        self.x = x.flatten(0, 1)  # (B * L, D)
        self.traced = x.requires_grad and torch.is_grad_enabled()
        with torch.no_grad():
            self._build(x)

    def _build(self, x: Tensor) -> None:
        place = torch.arange(len(self.x), device=x.device, dtype=torch.int32)  # (B * L,)
        values: List[Tensor] = [x]
        sources: List[Tensor] = [place.view(self.n_rows, self.n_tokens, 1).expand_as(x)]
        step = 1
        while 2 * step <= self.n_tokens:
            left, right = values[-1][:, :-step], values[-1][:, step:]  # (B, L - step, D)
            # The tail is never asked for: its windows would leave the row.
            values.append(torch.cat([torch.maximum(left, right), values[-1][:, -step:]], dim=1))
            if self.traced:
                source = sources[-1]
                winner = torch.where(right > left, source[:, step:], source[:, :-step])
                sources.append(torch.cat([winner, source[:, -step:]], dim=1))
            step *= 2
        # The largest power of two in each length is found by counting: no float rounds it.
        self.powers = 1 << torch.arange(len(values), device=x.device)  # (P,)
        self.values = torch.stack(values).view(-1, self.width)  # (P * B * L, D)
        self.sources = torch.stack(sources).view(-1, self.width)  # (P * B * L, D) if traced

    def __call__(self, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Max over [start, end) of each row; no span may be empty.  (N,) each -> (N, D)"""
        level = (self.powers <= (end - start)[:, None]).sum(dim=1) - 1  # (N,)
        base = (level * self.n_rows + row) * self.n_tokens  # (N,)
        # Two windows, which may overlap, cover the span.
        first, second = base + start, base + end - self.powers[level]
        left, right = self.values.index_select(0, first), self.values.index_select(0, second)
        if not self.traced:
            return torch.maximum(left, right)
        winner = torch.where(
            right > left, self.sources.index_select(0, second), self.sources.index_select(0, first)
        )  # (N, D)
        return self.x.gather(0, winner.long())
