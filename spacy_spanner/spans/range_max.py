"""Max over any stretch of a row in constant time: a table of windows of 1, 2, 4, ... tokens.

B rows, L tokens, D width, N spans, P powers of two up to L.
"""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class RangeMax:
    """Max-pooled vectors of arbitrary spans of (B, L, D) token vectors.

    Where a gradient is wanted, a second table tells which token each maximum came from. The
    backward pass is then one scatter instead of the derivatives of every window."""

    def __init__(self, x: Tensor):
        self.n_rows, self.n_tokens, self.width = x.shape
        self.x = x.flatten(0, 1)  # (B * L, D)
        self.traced = x.requires_grad and torch.is_grad_enabled()
        self.n_levels = max(self.n_tokens, 1).bit_length()  # windows of 1, 2, 4, ... up to L tokens
        self.n_built = 1
        # The largest power of two in each length is found by counting: no float rounds it.
        self.powers = 1 << torch.arange(self.n_levels, device=x.device)  # (P,)
        with torch.no_grad():
            # Windows that would leave their row are never asked for: nothing stands there.
            self.values = x.new_empty((self.n_levels, *x.shape))
            self.values[0] = x
            shape = self.values.shape if self.traced else (1, 1, 1, 1)
            self.sources = torch.empty(shape, dtype=torch.int32, device=x.device)
            if self.traced:
                place = torch.arange(len(self.x), device=x.device, dtype=torch.int32)  # (B * L,)
                self.sources[0] = place.view(self.n_rows, self.n_tokens, 1)

    @torch.no_grad()
    def _build(self, n_levels: int) -> None:
        """Fill the tables up to this many levels."""
        for level in range(self.n_built, n_levels):
            step = 1 << (level - 1)
            left, right = self.values[level - 1, :, :-step], self.values[level - 1, :, step:]
            torch.maximum(left, right, out=self.values[level, :, :-step])  # (B, L - step, D)
            if self.traced:
                source = self.sources[level - 1]
                winner = torch.where(right > left, source[:, step:], source[:, :-step])
                self.sources[level, :, :-step] = winner
        self.n_built = max(self.n_built, n_levels)

    def __call__(self, row: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Max over [start, end) of each row; no span may be empty.  (N,) each -> (N, D)"""
        level = (self.powers <= (end - start)[:, None]).sum(dim=1) - 1  # (N,)
        # The longest spans are far shorter than the row, but a GPU would have to be waited for.
        is_known = level.device.type == "cpu" and len(level) > 0
        self._build(int(level.max()) + 1 if is_known else self.n_levels)
        values = self.values.view(-1, self.width)  # (P * B * L, D)
        sources = self.sources.view(-1, self.sources.shape[-1])  # (P * B * L, D) if traced
        base = (level * self.n_rows + row) * self.n_tokens  # (N,)
        # Two windows, which may overlap, cover the span.
        first, second = base + start, base + end - self.powers[level]
        left, right = values.index_select(0, first), values.index_select(0, second)
        if not self.traced:
            return torch.maximum(left, right)
        winner = torch.where(
            right > left, sources.index_select(0, second), sources.index_select(0, first)
        )  # (N, D)
        return _Maxima.apply(self.x, torch.maximum(left, right), winner)


class _Maxima(torch.autograd.Function):
    """Maxima (N, D) that are known already, and the rows of x they came from."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, maxima: Tensor, winner: Tensor) -> Tensor:
        ctx.save_for_backward(winner)
        ctx.shape = x.shape
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maxima: Tensor) -> Tuple[Tensor, None, None]:
        (winner,) = ctx.saved_tensors
        d_x = d_maxima.new_zeros(ctx.shape)
        return d_x.scatter_add_(0, winner.long(), d_maxima), None, None
