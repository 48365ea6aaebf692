"""Max-pooled vectors of all spans up to a width, projected without being kept side by side.

Axes: B rows, L tokens, W widths, D width, K outputs. Cell (b, i, w): the w + 1 tokens from i.
"""

from __future__ import annotations

from typing import Any, List, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def project_band_max(x: Tensor, weight: Tensor, n_widths: int) -> Tuple[Tensor, Tensor]:
    """weight (K, D) times max(x[i], ..., x[i + w]) for all cells (B, L, W, K), and the maxima of
    the widest spans (B, L, D). x is padded with zeros, so cells that leave it are undefined."""
    x = x.to(weight.dtype)  # under autocast it may be narrower
    return _ProjectBandMax.apply(x, weight, n_widths, torch.is_grad_enabled())


class _ProjectBandMax(torch.autograd.Function):
    """A running max over widths. Left to autograd, each step back would cost several times more:
    it shares out ties, selects by masks and pads every shifted slice to full length."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, n_widths: int, keep: bool
    ) -> Tuple[Tensor, Tensor]:
        n_tokens = x.shape[1]
        beyond = F.pad(x, (0, 0, 0, n_widths - 1))
        peak = beyond[:, :n_tokens].clone()  # (B, L, D)
        peaks: List[Tensor] = []
        outputs = [F.linear(peak, weight)]
        for w in range(1, n_widths):
            if keep:
                peaks.append(peak)
            target = torch.empty_like(peak) if keep else peak
            peak = torch.maximum(peak, beyond[:, w : w + n_tokens], out=target)
            outputs.append(F.linear(peak, weight))
        if keep:
            ctx.save_for_backward(weight, *peaks, peak)
        return torch.stack(outputs, 2), peak

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor, d_widest: Tensor) -> Tuple:
        weight, *peaks = ctx.saved_tensors
        d_outputs = d_outputs.to(weight.dtype)
        n_rows, n_tokens, width = peaks[0].shape
        d_beyond = weight.new_zeros((n_rows, n_tokens + len(peaks) - 1, width))
        d_weight = torch.zeros_like(weight)
        d_peak = d_widest.clone(memory_format=torch.contiguous_format)
        raised = torch.empty_like(d_peak)  # fresh memory for each width costs more than the sums
        for w in reversed(range(len(peaks))):
            d_output = d_outputs[:, :, w].flatten(0, 1)  # (B * L, K)
            d_weight.addmm_(d_output.T, peaks[w].flatten(0, 1))
            d_peak.view(-1, width).addmm_(d_output, weight)
            if w > 0:
                # 1 where the new token raised the maximum, else 0: numbers are faster than masks.
                torch.sub(peaks[w], peaks[w - 1], out=raised).sign_().mul_(d_peak)
                d_beyond[:, w : w + n_tokens] += raised
                d_peak -= raised
        d_beyond[:, :n_tokens] += d_peak
        return d_beyond[:, :n_tokens], d_weight, None, None
