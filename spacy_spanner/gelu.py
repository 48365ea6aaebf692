"""GELU without oneDNN."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


def gelu(x: Tensor) -> Tensor:
    """GELU of (N, K). On a CPU, oneDNN would compile code for every shape anew, which takes longer than
    the function itself. It leaves transposed numbers to torch, which takes them as they lie in memory."""
    if x.device.type != "cpu" or x.dim() != 2:
        return F.gelu(x)
    return F.gelu(x.t()).t()


class Gelu(nn.Module):
    """As a layer."""

    def forward(self, x: Tensor) -> Tensor:
        return gelu(x)
