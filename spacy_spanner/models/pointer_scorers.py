"""Scores of token pairs by dot products (Su et al. 2022, eq 2-7), for entities and for relations.

Axes: B rows, L tokens, D width, C labels, H head size, X columns. Pairs come as (B, C, L, X): with no width
given X = L and column j is token j; with a width, X is that width and column w is token i + w.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import torch
from torch import Tensor, nn

from ..errors import check
from ..gelu import Gelu
from ..label_axes import LABELS, LabelAxis, mark, mark_layer
from ..spans.bands import last_tokens, pair_products

# Almost no pair is an entity, so logits start well below 0. Starting at 0, an untrained model would
# find half of all pairs, which the evaluation before the first step would have to write down.
START_LOGIT = -4.0


class TokenPairScorer(nn.Module):
    """Scores all pairs of tokens of a row for each label."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        head_size: int,
        use_rope: bool,
        scale: bool,
        start_logit: float = START_LOGIT,
    ):
        super().__init__()
        self.n_labels, self.head_size = n_labels, head_size
        self.use_rope, self.scale = use_rope, scale
        self.make_layers(width, start_logit)

    def make_layers(self, width: int, start_logit: float) -> None:
        """The layers over token vectors of this width; all scores begin at about `start_logit`."""
        raise NotImplementedError

    def per_token(self, x: Tensor) -> Tensor:
        """What is computed of each token alone, and so needs no padding.  (..., D) -> (..., K)"""
        raise NotImplementedError

    def pairs(self, per_token: Tensor, width: Optional[int] = None) -> Tensor:
        """The scores of the pairs of padded rows (B, L, K).  (B, C, L, X)"""
        raise NotImplementedError

    def forward(self, x: Tensor, width: Optional[int] = None) -> Tensor:
        return self.pairs(self.per_token(x), width)


class PairScorer(TokenPairScorer):
    """Global Pointer: one query and key for each label."""

    def make_layers(self, width: int, start_logit: float) -> None:
        self.project = lecun_linear(width, self.n_labels * 2 * self.head_size)
        self.bias = nn.Parameter(torch.full((self.n_labels,), start_logit))
        # Over trained token vectors, products of fresh queries and keys would be far from zero.
        for parameter in self.project.parameters():
            mark(parameter, LabelAxis(size=2 * self.head_size), factor=0.1)
        mark(self.bias, LABELS, factor=0.0, offset=START_LOGIT)

    def per_token(self, x: Tensor) -> Tensor:
        return self.project(x)  # (..., C 2 H)

    def pairs(self, per_token: Tensor, width: Optional[int] = None) -> Tensor:
        pairs = per_token.unflatten(-1, (self.n_labels, 2, self.head_size))
        pairs = pairs.permute(3, 0, 2, 1, 4)  # (2, B, C, L, H)
        products = pointer_products(pairs, width=width, use_rope=self.use_rope, scale=self.scale)
        return products + self.bias[:, None, None]  # (B, C, L, X)


class EfficientPairScorer(TokenPairScorer):
    """Efficient Global Pointer: one query and key for all labels, with one term per label
    for each end of the pair, computed from the unrotated query and key (eq 7)."""

    def make_layers(self, width: int, start_logit: float) -> None:
        self.project = lecun_linear(width, 2 * self.head_size)
        self.types = lecun_linear(2 * self.head_size, 2 * self.n_labels)
        nn.init.constant_(self.types.bias, start_logit)
        mark_layer(self.types, LabelAxis(blocks=2))

    def per_token(self, x: Tensor) -> Tensor:
        projected = self.project(x)  # (..., 2 H)
        return torch.cat([projected, self.types(projected) / 2], dim=-1)  # (..., 2 H + 2 C)

    def pairs(self, per_token: Tensor, width: Optional[int] = None) -> Tensor:
        projected, types = per_token.tensor_split([2 * self.head_size], dim=-1)
        pairs = projected.unflatten(-1, (2, self.head_size)).permute(2, 0, 1, 3)  # (2, B, L, H)
        products = pointer_products(pairs, width=width, use_rope=self.use_rope, scale=self.scale)
        first, last = types.transpose(1, 2).chunk(2, dim=1)  # (B, C, L) each
        return products[:, None] + first[..., None] + last_tokens(last, width)  # (B, C, L, X)


def pointer_products(pairs: Tensor, *, width: Optional[int], use_rope: bool, scale: bool) -> Tensor:
    """Products of queries and keys (2, ..., L, H) as (..., L, X)."""
    size = pairs.shape[-1] ** -0.25 if scale else 1.0  # of both, so that products have its square
    if use_rope:
        pairs = rotate(pairs, size)
    elif scale:
        pairs = pairs * size
    q, k = pairs.unbind(0)  # (..., L, H)
    return pair_products(q, k, width)


def rotate(x: Tensor, size: float = 1.0) -> Tensor:
    """Rotary position embedding over the last two axes (L, H): channels 2m and 2m + 1 of position p
    turn by p * 10000^(-2m / H). The result is multiplied by `size`."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # as complex numbers need
    length, width = x.shape[-2:]
    channels = torch.arange(0, width, 2, device=x.device, dtype=wide.dtype)  # (H / 2,)
    positions = torch.arange(length, device=x.device, dtype=wide.dtype)  # (L,)
    angles = positions[:, None] * 10000 ** (-channels / width)  # (L, H / 2)
    turns = torch.polar(torch.full_like(angles, size), angles)
    turned = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous()) * turns
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def hidden_layer(width: int, hidden_width: Optional[int]) -> nn.Module:
    """A GELU layer below queries and keys, or none."""
    if hidden_width is None:
        return nn.Identity()
    return nn.Sequential(lecun_linear(width, hidden_width), Gelu())


def lecun_linear(n_in: int, n_out: int) -> nn.Linear:
    """A linear layer with weights of variance 1 / n_in and no bias at the start."""
    layer = nn.Linear(n_in, n_out)
    nn.init.trunc_normal_(layer.weight, std=n_in**-0.5, a=-2 * n_in**-0.5, b=2 * n_in**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


def check_pointer(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that no pointer can have."""
    size = options["head_size"]
    even = "it must be positive, and even with `use_rope`, which turns pairs of channels"
    rules = [("head_size", size > 0 and not (options["use_rope"] and size % 2), even)]
    for option in ("max_width", "hidden_width"):
        value = options.get(option)
        rules.append((option, value is None or value > 0, "it must be positive, or null"))
    check(name, options, rules)
