"""Locate and Label (Shen et al. 2021): the scorer of all three stages (2.3-2.4), losses (2.5).

B rows, L tokens, W widths, D width, H hidden width, C labels, N spans, O outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Tokens
from ..dropout import Dropout
from ..gelu import gelu as any_gelu
from ..spans.range_max import RangeMax


@dataclass
class Spans:
    """Spans of a batch, (N,) int64 each."""

    row: Tensor
    start: Tensor
    end: Tensor

    def pick(self, index: Tensor) -> Spans:
        """Those at the given positions or under the given mask."""
        return Spans(self.row[index], self.start[index], self.end[index])

    def and_those(self, table: Tensor) -> Spans:
        """With the spans of a table (N, 4) behind them."""
        return Spans(
            torch.cat([self.row, table[:, 0]]),
            torch.cat([self.start, table[:, 1]]),
            torch.cat([self.end, table[:, 2]]),
        )


class SpanScorer(nn.Module):
    """Linear over [left; right; pool], GELU, Linear. The concatenation is never built: the weight
    is cut into three, applied to tokens or spans, whichever are fewer, and the products added."""

    def __init__(self, *, width: int, hidden: int, n_out: int, dropout: float):
        super().__init__()
        self.joint = nn.Linear(3 * width, hidden)
        self.out = nn.Linear(hidden, n_out)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, left: Tensor, right: Tensor, pooled: Tensor) -> Tensor:
        """`left` and `right` (N,) are positions in the flat token vectors x (T, D); pooled (N, D).
        (N, O)"""
        for_left, for_right, for_pool = self.parts()
        hidden = F.linear(self.dropout(pooled), for_pool, self.joint.bias)  # (N, H)
        x = self.dropout(x)  # once: hardly a span has the same word at both of its sides
        hidden = hidden + project(x, left, for_left) + project(x, right, for_right)
        return self.out(gelu(hidden))

    def parts(self) -> Tuple[Tensor, Tensor, Tensor]:
        """The weight for each part of the input.  (H, D) each"""
        for_left, for_right, for_pool = self.joint.weight.chunk(3, dim=1)
        return for_left, for_right, for_pool

    def band(self, x: Tensor, n_widths: int) -> Tensor:
        """First output for every span of 1..n_widths tokens, with its first and last word as left
        and right. For prediction: no dropout. -inf where a span would leave the tensor.
        (B, L, D) -> (B, L, W)"""
        n_rows, n_tokens, _ = x.shape
        for_left, for_right, for_pool = self.parts()
        x = x.transpose(0, 1).contiguous()  # (L, B, D): what is left of a shift stays in one piece
        left = F.linear(x, for_left, self.joint.bias)  # (L, B, H)
        right = F.linear(x, for_right)  # (L, B, H)
        logits = x.new_full((n_widths, n_tokens, n_rows), -torch.inf)
        pooled = x
        for shift in range(min(n_widths, n_tokens)):
            fits = n_tokens - shift
            if shift > 0:
                pooled = torch.maximum(pooled[:fits], x[shift:])  # (fits, B, D)
            edges = (left[:fits] + right[shift:]).flatten(0, 1)  # (fits * B, H)
            hidden = torch.addmm(edges, pooled.flatten(0, 1), for_pool.t())
            scores = F.linear(gelu(hidden), self.out.weight[:1], self.out.bias[:1])
            logits[shift, :fits] = scores.view(fits, n_rows)
        return logits.permute(2, 1, 0)


def gelu(x: Tensor) -> Tensor:
    """GELU. On a CPU, oneDNN keeps code for every shape it has met, a few kilobytes each: without a
    gradient, numbers are taken in two pieces of sizes that recur."""
    if x.device.type != "cpu" or x.numel() == 0 or (x.requires_grad and torch.is_grad_enabled()):
        return any_gelu(x)
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    numbers, target = x.contiguous().view(-1), result.view(-1)
    for piece in recurring_pieces(x.numel()):
        torch.ops.aten.gelu.out(numbers[piece], out=target[piece])
    return result


def recurring_pieces(total: int) -> List[slice]:
    """One or two slices that cover `total` numbers, some of them twice. Their sizes have at most
    four significant bits, so that all totals together need few sizes."""
    low_bits = max(total.bit_length() - 4, 0)
    whole = total >> low_bits << low_bits
    if whole == total:
        return [slice(0, total)]
    rest = 1 << (total - whole - 1).bit_length()
    return [slice(0, whole), slice(total - rest, total)]


def project(x: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """Products of the tokens (T, D) at the given positions (N,).  (N, H)"""
    if len(index) < len(x):
        return F.linear(x.index_select(0, index), weight)
    return F.linear(x, weight).index_select(0, index)


class View:
    """Token vectors of a batch, prepared for looking at spans of them."""

    def __init__(self, tokens: Tokens):
        self.x = tokens.unpadded  # (T, D)
        self.rows = tokens.starts  # (B,)
        self.n_tokens = tokens.mask.shape[1]
        self.lengths = tokens.mask.sum(dim=1)  # (B,)
        self.range_max = RangeMax(self.x, self.n_tokens)

    def pool(self, spans: Spans) -> Tensor:
        """Max over the words of each span.  (N, D)"""
        base = self.rows[spans.row]  # (N,)
        return self.range_max(base + spans.start, base + spans.end)

    def inner(self, scorer: SpanScorer, spans: Spans, pooled: Tensor) -> Tensor:
        """Scores from the first word, the last word and the pooled words of each span.  (N, O)"""
        base = self.rows[spans.row]  # (N,)
        return scorer(self.x, base + spans.start, base + spans.end - 1, pooled)

    def outer(self, scorer: SpanScorer, spans: Spans, pooled: Tensor) -> Tensor:
        """Scores from the word before, the word after and the pooled words of each span; at an
        edge of the row, its outermost word is used.  (N, O)"""
        base = self.rows[spans.row]  # (N,)
        before = (spans.start - 1).clamp(min=0)
        after = torch.minimum(spans.end, self.lengths[spans.row] - 1)
        return scorer(self.x, base + before, base + after, pooled)


def binary_focal(logits: Tensor, positive: Tensor, *, gamma: float) -> Tensor:
    """Eq 12 without its weights.  (N,) each"""
    signed = torch.where(positive, logits, -logits)
    # In logs, so that a saturated score has a finite gradient for any gamma.
    return -F.logsigmoid(signed) * torch.exp(gamma * F.logsigmoid(-signed))


def offset_loss(offsets: Tensor, gold_offsets: Tensor) -> Tensor:
    """Eq 14: smooth L1 with its bend at 1, both boundaries added.  (N, 2) each -> (N,)"""
    return F.smooth_l1_loss(offsets, gold_offsets, reduction="none").sum(dim=1)


def overlap_loss(start: Tensor, end: Tensor, gold_start: Tensor, gold_end: Tensor) -> Tensor:
    """Eq 15 on real-valued half-open boundaries. Over 1 where the spans are apart.  (N,) each"""
    shared = torch.minimum(end, gold_end) - torch.maximum(start, gold_start)
    covered = torch.maximum(end, gold_end) - torch.minimum(start, gold_start)
    # A gold span covers a word at least. Slots without one are masked later, but only a finite
    # value has a gradient that can be masked.
    return 1 - shared / covered.clamp(min=1)
