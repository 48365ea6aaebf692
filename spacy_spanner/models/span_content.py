"""Scores of spans by all of their tokens, and by the spans around them.

The ends of a span do not say what is between them. Here every span up to a width has a vector of its own,
of its ends, their product as an option, the mean of its tokens and its width; convolutions over the table
of these vectors let a span see those of its sentence that begin or end beside it (Yan et al. 2022). What
comes out is added to the scores of a head.

Axes: B rows, L tokens, T unpadded tokens, W widths, D width, H content width, K outputs. Cell (b, i, w):
the w + 1 tokens from i.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Tokens
from ..dropout import Dropout
from ..gelu import gelu
from ..label_axes import LabelAxis, mark
from ..spans.bands import band_vectors
from ..spans.sentence_line import SentenceLine

DROPOUT = 0.1  # .3 was worse (docs/accuracy.md)


class SpanContent(nn.Module):
    """A GELU layer over [first; last; mean; width] of each span, and convolutions over its neighbours;
    a linear layer over each of them, and the sum of the two. The concatenation is never built: each
    part is projected once for each token, and the projections are added."""

    def __init__(
        self,
        *,
        width: int,
        n_out: int,
        axis: LabelAxis,
        size: int,
        layers: int,
        max_width: int,
        product: bool = False,
        normalise: bool = False,
    ):
        """
        axis: Where the outputs hold labels.
        size: H.
        layers: Convolutions over the table.
        max_width: Widest span with a vector.
        product: Also the product of two projections, of the first token and of the last.
        normalise: Layer normalisation below the GELU.
        """
        super().__init__()
        self.size, self.max_width = size, max_width
        self.project = nn.Linear(width, 3 * size)  # for the first token, the last and the mean
        self.widths = nn.Embedding(max_width, size)
        nn.init.normal_(self.widths.weight, std=0.1)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(size, size, 3, padding=1) for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(layers))
        self.dropout = Dropout(DROPOUT)
        self.out = output_layer(size, n_out, axis)
        self.out_around = output_layer(size, n_out, axis) if layers else None
        self.factors = nn.Linear(width, 2 * size) if product else None
        self.norm = nn.LayerNorm(size) if normalise else None

    def forward(self, tokens: Tokens, max_width: int) -> Tensor:
        """What spans of up to the smaller one of the two widths get; undefined where a span would
        leave its row.  (B, L, W, K)"""
        n_widths = min(self.max_width, max_width)
        cells = self.vectors(tokens, n_widths)  # (B, L, W, H)
        shape = cells.shape
        cells = self.dropout(gelu(cells.flatten(0, 2))).view(shape)
        scores = self.out(cells)
        if self.out_around is None:
            return scores
        by_token = self.around(tokens.unpad(cells), tokens).flatten(1)  # (T, W K)
        return scores + tokens.pad(by_token).view_as(scores)

    def around(self, cells: Tensor, tokens: Tokens) -> Tensor:
        """What the spans beside them add to spans within one sentence, 0 for others; a row may hold
        sentences that have nothing to do with each other.  (T, W, H) -> (T, W, K)"""
        assert self.out_around is not None
        lengths = tokens.lengths if tokens.sentences is None else tokens.sentences.lengths
        line = SentenceLine(lengths, gap=1, device=cells.device)  # as far as a convolution sees
        inside = line.spans(cells.shape[1])[..., None].to(cells.dtype)  # (T, W, 1)
        for convolve, norm in zip(self.convolutions, self.norms, strict=True):
            image = line.lay(cells * inside)[None].permute(0, 3, 1, 2)  # (1, H, N, W)
            seen = line.take(convolve(image).permute(0, 2, 3, 1)[0])  # (T, W, H)
            cells = gelu(norm(seen).flatten(0, 1)).view_as(seen)
        return self.out_around(cells) * inside

    def vectors(self, tokens: Tokens, n_widths: int) -> Tensor:
        """Sums of the projected parts, normalised if so wanted.  (B, L, W, H)"""
        projected = tokens.pad(self.project(tokens.unpadded))  # (B, L, 3 H)
        first, last, inner = projected.split(self.size, dim=2)  # (B, L, H)
        # Up to and with each token. Such sums of half precision would lose what single tokens add.
        sums = inner.cumsum(1, dtype=torch.promote_types(inner.dtype, torch.float32))
        before = F.pad(sums, (0, 0, 1, 0))[:, :-1, None]  # (B, L, 1, H)
        counts = torch.arange(1, n_widths + 1, device=sums.device)[:, None]  # (W, 1)
        means = (band_vectors(sums, n_widths) - before) / counts  # (B, L, W, H)
        cells = first[:, :, None] + band_vectors(last, n_widths) + means.to(first.dtype)
        cells = cells + self.widths.weight[:n_widths]
        if self.factors is not None:
            of_first, of_last = tokens.pad(self.factors(tokens.unpadded)).split(self.size, dim=2)
            cells = cells + of_first[:, :, None] * band_vectors(of_last, n_widths)
        return cells if self.norm is None else self.norm(cells)

    def cells(self, length: int) -> int:
        """Numbers of the largest tensor of a row of this length."""
        return length * min(self.max_width, length) * self.size


def output_layer(size: int, n_out: int, axis: LabelAxis) -> nn.Linear:
    """A layer whose outputs are added to those of a head; a new label starts with what that gives it."""
    layer = nn.Linear(size, n_out)
    nn.init.zeros_(layer.bias)
    for parameter in layer.parameters():
        mark(parameter, axis, factor=0.0)
    return layer


def sees_neighbours(options: Mapping[str, Any]) -> bool:
    """Whether a head with these options has convolutions, which must know where sentences begin."""
    return options["content_width"] is not None and options["content_layers"] > 0


def content_rules(options: Mapping[str, Any]) -> List[Tuple[str, bool, str]]:
    """What the options of a head with such scores must be."""
    size, layers = options["content_width"], options["content_layers"]
    widest = options.get("content_max_width", 1)  # a head may have another bound
    return [
        ("content_width", size is None or size > 0, "it must be positive, or null"),
        ("content_layers", layers >= 0, "it must not be negative"),
        ("content_max_width", widest > 0, "it must be positive"),
    ]
