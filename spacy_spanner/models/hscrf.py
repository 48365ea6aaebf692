"""Hybrid semi-Markov CRF (Ye and Ling 2018): segments scored by the tags of their words.

Axes: B rows, L tokens, W widths, D width, C labels, K = C + 1 classes (0 is none), T tags (BIOES).
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Cost, Decoded, Facts, Gold, SpanModule, Tokens
from ..decoders.crf import FORBIDDEN, wide_dtype
from ..decoders.semi_crf import SemiCRF
from ..decoders.tags import TagScheme
from ..dropout import Dropout
from ..errors import check
from ..label_axes import mark, mark_layer
from ..spans.bands import all_known, band_view
from ..spans.geometry import covered
from .builder import architecture


class HSCRF(SpanModule):
    """The score of a segment is the sum, over its words, of a score of the word's tag that sees the
    word, its place in the segment, and the difference of the segment's last and first word."""

    def __init__(self, *, width: int, n_labels: int, max_width: int = 6, dropout: float = 0.1):
        """
        max_width: The longest segment; one that holds 99 % of the gold spans is long enough.
        dropout: On the token vectors.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.max_width = max_width
        self.dropout = Dropout(dropout)
        self.scheme = TagScheme("BIOES", n_labels)
        n_tags = self.scheme.n_tags
        self.words = nn.Linear(width, n_tags)
        self.differences = nn.Linear(width, n_tags, bias=False)
        self.places = nn.Parameter(torch.zeros(max_width, n_tags))
        self.segments = SemiCRF(n_labels)
        mark_layer(self.words, self.scheme.axis)
        mark_layer(self.differences, self.scheme.axis)
        mark(self.places, None, self.scheme.axis)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        rules = [("max_width", options["max_width"] > 0, "it must be positive")]
        check(cls.__name__, options, rules)
        return Facts(levels=1, max_width=options["max_width"], threshold=0.0)

    def scores(self, tokens: Tokens) -> Tensor:
        """Scores of all segments, in wide numbers.  (B, L, W, K)

        Sums over the words of a segment are differences of sums from the row's start."""
        x = self.dropout(tokens.unpadded)  # (T, D)
        parts = torch.cat([self.words(x), self.differences(x)], dim=1)
        words, ends = tokens.pad(parts.to(wide_dtype(x))).transpose(1, 2).chunk(2, dim=1)
        n_widths = self.widths(tokens)
        blocks = [self.scheme.block(prefix) for prefix in "BIES"]
        begin, inside, end, single = (words[:, block] for block in blocks)  # (B, C, L) each
        edges = ends[:, blocks[0]] + ends[:, blocks[2]]
        inner = ends[:, blocks[1]][..., None]
        up_to = inside.cumsum(2)  # (B, C, L)
        first, last = begin - up_to - edges, end + up_to - inside + edges
        n_inside = torch.arange(n_widths, device=x.device) - 1  # -1 for one word, set below
        longer = first[..., None] + band_view(last, n_widths)
        longer = longer + n_inside * (band_view(inner[..., 0], n_widths) - inner)  # (B, C, L, W)
        by_class = torch.cat([single[..., None], longer[..., 1:]], dim=3)
        none = F.pad(words[:, :1, :, None], (0, n_widths - 1), value=FORBIDDEN)  # (B, 1, L, W)
        by_class = torch.cat([none, by_class], dim=1) + self.place_scores(n_widths)[:, None]
        return by_class.permute(0, 2, 3, 1)

    def place_scores(self, n_widths: int) -> Tensor:
        """The scores that the positions of its words add to a segment.  (K, W)"""
        places = self.places[:n_widths].T  # (T, W)
        begin, inside, end, single = (places[self.scheme.block(prefix)] for prefix in "BIES")
        longer = begin[:, :1] + inside.cumsum(1) - inside - inside[:, :1] + end
        labels = torch.cat([single[:, :1], longer[:, 1:]], dim=1)  # (C, W)
        return torch.cat([places[:1], labels])

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Negative log-likelihood of what is known of a row, by token."""
        scores = self.scores(encoded)
        nll = self.segments.nll(scores, allowed_segments(scores, gold), encoded.mask)
        return nll.sum() / encoded.mask.sum().clamp(min=1)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """The entities of the best segmentation, with their exact probabilities."""
        scores = self.scores(encoded)
        spans = self.segments.viterbi(scores, encoded.mask)
        probs = self.segments.marginals(scores, encoded.mask, spans)
        keep = probs > thresholds[spans[:, 3]]
        return Decoded(spans[keep], probs[keep])

    def widths(self, tokens: Tokens) -> int:
        bounds = [self.max_width, tokens.mask.shape[1], tokens.max_width]
        return min(bound for bound in bounds if bound is not None)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        return 2 * length * self.max_width * (self.n_labels + 1)

    def cost(self) -> Cost:
        return Cost(step=64)


def allowed_segments(scores: Tensor, gold: Gold) -> Tensor:
    """The segments of a table (B, L, W, K) that agree with the annotation: gold entities, single words
    outside, and anything over words that are not annotated. Words of gold that is too wide for the table
    count as such.  (B, L, W, K) bool"""
    n_rows, length, n_widths, n_classes = scores.shape
    row, start, end, label = gold.flat.unbind(1)
    fits = end - start <= n_widths
    taken = covered(gold.flat, fits, (n_rows, length))  # (B, L)
    lost = covered(gold.flat, ~fits, (n_rows, length))
    known = ~lost if gold.known is None else (gold.known | taken) & ~lost
    allowed = all_known(~known, n_widths)[..., None].repeat(1, 1, 1, n_classes)
    allowed[:, :, 0, 0] = ~taken
    wider = F.pad(allowed, (0, 0, 0, 1))  # one more width takes what does not fit
    wider[row, start, (end - start - 1).clamp(max=n_widths), label + 1] = True
    return wider[:, :, :n_widths]


build_hscrf = architecture(HSCRF)
