"""Max over any stretch of tokens in constant time: a table of windows of 1, 2, 4, ... tokens.

T tokens, D width, N spans, P powers of two up to the longest span.
"""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class RangeMax:
    """Max-pooled vectors of arbitrary spans of (T, D) token vectors.

    longest: Length of the longest span of any query.

    Where a gradient is wanted, a second table holds the index of each maximum in the
    flattened x. The backward pass is then one scatter instead of the derivatives
    of every window."""

    def __init__(self, x: Tensor, longest: int):
        self.x = x
        self.traced = x.requires_grad and torch.is_grad_enabled()
        self.n_levels = max(longest, 1).bit_length()  # windows of 1, 2, 4, ... tokens
        self.n_built = 1
        # The largest power of two in each length is found by counting: no float rounds it.
        self.powers = 1 << torch.arange(self.n_levels, device=x.device)  # (P,)
        with torch.no_grad():
            # Windows that would leave the tensor are never read: left uninitialized.
            self.values = x.new_empty((self.n_levels, *x.shape))
            self.values[0] = x
            shape = self.values.shape if self.traced else (1, 1, 1)
            self.sources = torch.empty(shape, dtype=torch.int32, device=x.device)
            if self.traced:
                place = torch.arange(x.numel(), device=x.device, dtype=torch.int32)
                self.sources[0] = place.view_as(x)

    @torch.no_grad()
    def _build(self, n_levels: int) -> None:
        """Fill the tables up to this many levels."""
        for level in range(self.n_built, n_levels):
            step = 1 << (level - 1)
            left, right = self.values[level - 1, :-step], self.values[level - 1, step:]
            peak = torch.maximum(left, right, out=self.values[level, :-step])  # (T - step, D)
            if self.traced:
                source = self.sources[level - 1]
                self.sources[level, :-step] = winners(left, peak, source[:-step], source[step:])
        self.n_built = max(self.n_built, n_levels)

    def __call__(self, start: Tensor, end: Tensor) -> Tensor:
        """Max over the tokens [start, end); no span may be empty.  (N,) each -> (N, D)"""
        level = (self.powers <= (end - start)[:, None]).sum(dim=1) - 1  # (N,)
        # Most spans are far shorter than they may be, but a GPU would have to be waited for.
        is_known = level.device.type == "cpu" and len(level) > 0
        self._build(int(level.max()) + 1 if is_known else self.n_levels)
        values = self.values.flatten(0, 1)  # (P * T, D)
        sources = self.sources.flatten(0, 1)  # (P * T, D) if traced
        base = level * len(self.x)  # (N,)
        # Two windows, which may overlap, cover the span.
        first, second = base + start, base + end - self.powers[level]
        left, right = values.index_select(0, first), values.index_select(0, second)
        peak = torch.maximum(left, right)  # (N, D)
        if not self.traced:
            return peak
        source = winners(
            left, peak, sources.index_select(0, first), sources.index_select(0, second)
        )
        return _Maxima.apply(self.x, peak, source)


@torch.no_grad()
def winners(left: Tensor, peak: Tensor, from_left: Tensor, from_right: Tensor) -> Tensor:
    """Sources of the maxima of two tables: those of the right one where it raised the left one's."""
    # Numbers, not masks: on a CPU a choice by mask takes several times as long as all of this.
    raised = (peak - left).sign_().to(from_left.dtype)  # 1 or 0
    return (from_right - from_left).mul_(raised).add_(from_left)


class _Maxima(torch.autograd.Function):
    """Maxima (N, D) that are known already, and their indices in the flattened x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, maxima: Tensor, source: Tensor) -> Tensor:
        ctx.save_for_backward(source)
        ctx.shape = x.shape
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maxima: Tensor) -> Tuple[Tensor, None, None]:
        (source,) = ctx.saved_tensors
        d_x = d_maxima.new_zeros(ctx.shape)
        d_x.view(-1).scatter_add_(0, source.view(-1).long(), d_maxima.reshape(-1))
        return d_x, None, None
