"""Bands: all pairs (start, last) with last - start < W, as (B, L, W) instead of (B, L, L).

Axes: B rows, C labels, L tokens, W widths, D width. Column w of token i is the span i .. i+w.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad


def pair_products(q: Tensor, k: Tensor, width: Optional[int]) -> Tensor:
    """Dot products of all pairs of tokens (..., L, L) or, with a width, of a band (..., L, W)."""
    return q @ k.transpose(-1, -2) if width is None else band_products(q, k, width)


def last_tokens(x: Tensor, width: Optional[int]) -> Tensor:
    """Values of tokens (..., L) at the last token of each pair: (..., 1, L), to be broadcast over
    the starts, or, with a width, of a band (..., L, W)."""
    return x[..., None, :] if width is None else band_view(x, width)


def band_products(q: Tensor, k: Tensor, width: int) -> Tensor:
    """Dot products q[i] . k[i + w] for w < width; undefined beyond the last token.  (..., L, W)"""
    return _BandProducts.apply(q, k, width)


class _BandProducts(torch.autograd.Function):
    """Blocks of W queries meet the two blocks of keys they can reach: the work and the memory are
    twice the band, not the square of the length. The blocks of all rows lie one behind the other, so
    that one product takes them without a copy; the last block of a row reaches into the next row.

    Left to autograd, the way back through overlapping blocks would take longer than the products."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, width: int) -> Tensor:
        length, size = q.shape[-2:]
        beyond = -length % width
        blocks = fill(q, beyond).reshape(-1, width, size)  # (N, W, D)
        keys = fill(fill(k, beyond).reshape(-1, size), width - 1)  # (N * W + W - 1, D)
        products = torch.bmm(blocks, keys.unfold(0, 2 * width - 1, width))  # (N, W, reach)
        ctx.save_for_backward(blocks, keys)
        ctx.length = length
        return band_of(products).reshape(*q.shape[:-2], length + beyond, width)[..., :length, :]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_band: Tensor) -> Tuple[Tensor, Tensor, None]:
        blocks, keys = ctx.saved_tensors
        n_blocks, width, size = blocks.shape
        shape = (*d_band.shape[:-2], -1, size)
        d_products = blocks.new_zeros((n_blocks, width, 2 * width - 1))
        band_of(d_products).copy_(fill(d_band, -ctx.length % width).reshape(-1, width, width))
        d_q = torch.bmm(d_products, keys.unfold(0, 2 * width - 1, width).transpose(1, 2))
        d_keys = torch.bmm(d_products.transpose(1, 2), blocks)  # (N, reach, D)
        d_k = d_keys[:, :width].contiguous()
        d_k[1:, : width - 1] += d_keys[:-1, width:]
        return d_q.view(shape)[..., : ctx.length, :], d_k.view(shape)[..., : ctx.length, :], None


def band_of(products: Tensor) -> Tensor:
    """The band in blocks of products (N, W, 2 W - 1), as a view: row r of a block starts its band at
    column r, that is a stride of one more than the row length.  (N, W, W)"""
    n_blocks, width, reach = products.shape
    return products.as_strided((n_blocks, width, width), (width * reach, reach + 1, 1))


def fill(x: Tensor, n: int) -> Tensor:
    """With n more rows of zeros.  (..., L, D) -> (..., L + n, D)"""
    return pad(x, (0, 0, 0, n)) if n else x


def band_view(x: Tensor, width: int) -> Tensor:
    """x[i + w] for w < width, zero beyond the last token; a view, nothing is copied.  (..., L, W)"""
    return pad(x, (0, width - 1)).unfold(-1, width, 1)


def band_vectors(x: Tensor, width: int) -> Tensor:
    """As `band_view`, of vectors.  (B, L, D) -> (B, L, W, D)"""
    return pad(x, (0, 0, 0, width - 1)).unfold(1, width, 1).transpose(2, 3)


def pairs_of_band(band: Tensor) -> Tensor:
    """A band of at most L widths as a table of all pairs of tokens: 0 for pairs beyond the band,
    undefined where the second token comes first.  (..., L, W) -> (..., L, L)"""
    length, width = band.shape[-2:]
    # Rows of one number more than the table has: each begins one column further to the right in it.
    shifted = pad(band, (0, length + 1 - width)).flatten(-2)
    return shifted[..., : length * length].unflatten(-1, (length, length))


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
