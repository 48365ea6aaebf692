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
        with torch.no_grad():
            self._build(x)

    def _build(self, x: Tensor) -> None:
        n_levels = max(self.n_tokens, 1).bit_length()  # windows of 1, 2, 4, ... up to L tokens
        # Windows that would leave their row are never asked for: nothing stands there.
        values = x.new_empty((n_levels, *x.shape))
        values[0] = x
        shape = values.shape if self.traced else (1, 1, 1, 1)
        sources = torch.empty(shape, dtype=torch.int32, device=x.device)
        if self.traced:
            place = torch.arange(len(self.x), device=x.device, dtype=torch.int32)  # (B * L,)
            sources[0] = place.view(self.n_rows, self.n_tokens, 1)
        for level in range(1, n_levels):
            step = 1 << (level - 1)
            left, right = values[level - 1, :, :-step], values[level - 1, :, step:]
            torch.maximum(left, right, out=values[level, :, :-step])  # (B, L - step, D)
            if self.traced:
                source = sources[level - 1]
                winner = torch.where(right > left, source[:, step:], source[:, :-step])
                sources[level, :, :-step] = winner
        # The largest power of two in each length is found by counting: no float rounds it.
        self.powers = 1 << torch.arange(n_levels, device=x.device)  # (P,)
        self.values = values.view(-1, self.width)  # (P * B * L, D)
        self.sources = sources.view(-1, sources.shape[-1])  # (P * B * L, D) if traced

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
