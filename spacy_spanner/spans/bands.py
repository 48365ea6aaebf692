"""Bands: all pairs (start, last) with last - start < W, as (B, L, W) instead of (B, L, L).

Axes: B rows, C labels, L tokens, W widths, D width. Column w of token i is the span i .. i+w.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import pad


def pair_products(q: Tensor, k: Tensor, width: Optional[int]) -> Tensor:
    """Dot products of all pairs of tokens (..., L, L) or, with a width, of a band (..., L, W)."""
    return q @ k.transpose(-1, -2) if width is None else band_products(q, k, width)


def last_tokens(x: Tensor, width: Optional[int]) -> Tensor:
    """Values of tokens (..., L) at the last token of each pair: (..., 1, L), to be broadcast over
    the starts, or, with a width, of a band (..., L, W)."""
    return x[..., None, :] if width is None else band_view(x, width)


def band_products(q: Tensor, k: Tensor, width: int) -> Tensor:
    """Dot products q[i] . k[i + w] for w < width; undefined beyond the last token.  (..., L, W)

    Blocks of `width` queries meet the two blocks of keys they can reach: the work and the memory are
    twice the band, not the square of the length.
    """
    length = q.shape[-2]
    n_blocks = -(-length // width)
    reach = 2 * width - 1  # keys that a block of queries can reach
    q = pad(q, (0, 0, 0, n_blocks * width - length))  # (..., n_blocks * W, D)
    k = pad(k, (0, 0, 0, n_blocks * width - length + width - 1))
    q = q.unflatten(-2, (n_blocks, width))  # (..., n_blocks, W, D)
    k = k.unfold(-2, reach, width)  # (..., n_blocks, D, reach)
    products = (q @ k).contiguous()  # (..., n_blocks, W, reach)
    # Row r of a block starts its band at column r: a stride of one more than the row length.
    band = products.as_strided(
        (*products.shape[:-1], width), (*products.stride()[:-2], reach + 1, 1)
    )
    return band.flatten(-3, -2)[..., :length, :]  # (..., L, W)


def band_view(x: Tensor, width: int) -> Tensor:
    """x[i + w] for w < width, zero beyond the last token; a view, nothing is copied.  (..., L, W)"""
    return pad(x, (0, width - 1)).unfold(-1, width, 1)


def band_mask(mask: Tensor, width: int) -> Tensor:
    """Which spans lie on unpadded tokens only; `mask` (B, L) is a prefix of each row.  (B, L, W)"""
    return band_view(mask.to(torch.uint8), width).bool()


def all_known(known: Tensor, width: int) -> Tensor:
    """Which spans touch no unannotated token; `known` is (B, L) bool.  (B, L, W)"""
    unknown = pad((~known).cumsum(1), (1, 0))  # (B, L + 1): unknown tokens before each position
    past_end = pad(unknown[:, 1:], (0, width - 1), value=0)  # (B, L + W - 1)
    return past_end.unfold(1, width, 1) == unknown[:, :-1, None]


def clear_spans(band: Tensor, spans: Tensor) -> Tensor:
    """The band (B, L, W) bool without the cells of a span table (N, 4); wider spans have none."""
    n_widths = band.shape[2]
    row, start, end, _ = spans.unbind(1)
    cell = (end - start - 1).clamp(max=n_widths)
    wider = pad(band, (0, 1))  # one more column takes what is too wide
    wider.index_put_((row, start, cell), torch.zeros_like(row, dtype=torch.bool))
    return wider[..., :n_widths]
