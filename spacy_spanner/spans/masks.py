"""Taking spans out of a band.

Axes: B rows, L tokens, W widths, N spans. Cell (b, i, w) is the span of w + 1 tokens from i.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def clear_spans(band: Tensor, spans: Tensor) -> Tensor:
    """The band (B, L, W) bool without the cells of a span table (N, 4); wider spans have none."""
    n_widths = band.shape[2]
    row, start, end, _ = spans.unbind(1)
    cell = (end - start - 1).clamp(max=n_widths)
    wider = F.pad(band, (0, 1))  # one more column takes what is too wide
    wider.index_put_((row, start, cell), torch.zeros_like(row, dtype=torch.bool))
    return wider[..., :n_widths]
