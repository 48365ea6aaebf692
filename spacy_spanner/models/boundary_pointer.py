"""Boundary Module of the Modularized Interaction Network (Li et al. 2021, section 3.2).

Axes: B rows, L tokens, D width, N spans. The sentinel is column L of a pointer's table.
"""

from __future__ import annotations

from typing import Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Gold
from ..decoders.crf import FORBIDDEN
from ..spans.geometry import covered
from ..spans.pair_table import N_WIDTHS, PairTable, width_class
from .information import Segments
from .recurrent import make_lstm


class BiaffineScores(nn.Module):
    """Attention logits of keys (B, K, E) and queries (B, L, D), for a softmax over the keys.

    Equation 9 is q'Wk + U'q + V'k + b. U'q and b are the same for all keys, so no softmax sees them
    and they are left out: what remains is (W'q + V)'k.
    """

    def __init__(self, *, query_width: int, key_width: int):
        super().__init__()
        self.query = nn.Linear(query_width, key_width)  # weight W', bias V
        # Nearly even attention at first: no key is lost before anything was learned.
        nn.init.normal_(self.query.weight, std=1 / query_width)
        nn.init.zeros_(self.query.bias)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, L, K)"""
        return self.query(queries) @ keys.transpose(1, 2)


class Pointer(nn.Module):
    """From each word to the last word of the entity that it starts, or to the sentinel.

    window: Longest segment, in words, that the segment vectors look at (equation 10); the pointer
        itself may point further.
    width_scores: Learn scores of widths, from the decoder's state, beside those of equation 9.
    """

    def __init__(self, *, width: int, window: int, width_scores: bool = False):
        super().__init__()
        self.window = window
        # As large as a state of the encoder, or it is slow to become the usual answer.
        self.sentinel = nn.Parameter(torch.empty(width).uniform_(-0.5, 0.5))
        self.decoder = make_lstm(width=width, hidden=width)
        self.scores = BiaffineScores(query_width=width, key_width=width)
        self.from_width: Optional[nn.Linear] = None
        if width_scores:
            self.from_width = nn.Linear(width, N_WIDTHS)
            nn.init.zeros_(self.from_width.weight)
            nn.init.zeros_(self.from_width.bias)

    def forward(self, x: Tensor, mask: Tensor, max_width: Optional[int] = None) -> Tensor:
        """Log-probabilities of each place, for each word.  (B, L, L + 1)"""
        return self.logits(x, mask, max_width).log_softmax(2)

    def logits(self, x: Tensor, mask: Tensor, max_width: Optional[int] = None) -> Tensor:
        """Scores of each place, for each word.  (B, L, L + 1)

        x (B, L, D) is zero where padded. Padded words point to the sentinel.
        max_width: Longest entity to point over; None for no bound."""
        sentinel = self.sentinel.expand(x.shape[0], 1, -1)  # (B, 1, D)
        decoded = self.decoder(neighbour_sum(x))[0]  # (B, L, D)
        logits = self.scores(decoded, torch.cat([x, sentinel], dim=1))  # (B, L, L + 1)
        table = PairTable(x.shape[1], x.shape[1])
        if self.from_width is not None:
            widths = width_class(table.widths(x.device)).expand(len(x), -1, -1)  # (B, L, L)
            logits = logits + F.pad(self.from_width(decoded).gather(2, widths), (0, 1))
        allowed = table.spans(mask)  # (B, L, L)
        if max_width is not None:
            allowed = allowed.tril(max_width - 1)
        return logits.masked_fill(~F.pad(allowed, (0, 1), value=True), FORBIDDEN)

    def segments(self, probs: Tensor, x: Tensor) -> Segments:
        """Equation 10 within the window, given the probabilities of places (B, L, L + 1).

        The sum over the ends i of p(i | j) [h_j; h_i; h_i - h_j; h_i * h_j] needs only the mass
        and the mean state of the ends: no pair of words is ever built."""
        probs = probs[:, :, :-1].tril(self.window - 1)  # (B, L, L)
        first = probs.sum(2, keepdim=True) * x  # (B, L, D)
        last = probs @ x  # (B, L, D)
        return Segments.made_of(first, last, last * x)

    def loss(self, log_probs: Tensor, mask: Tensor, gold: Gold) -> Tensor:
        """Equation 12: cross entropy, mean over the words of a row, then over the rows."""
        target, counted = pointer_targets(mask, gold)  # (B, L) each
        losses = F.nll_loss(log_probs.transpose(1, 2), target, reduction="none")  # (B, L)
        losses = torch.where(counted, losses, 0.0)
        per_row = losses.sum(1) / counted.sum(1).clamp(min=1)  # (B,)
        return per_row.sum() / mask[:, 0].sum().clamp(min=1)


def pointer_targets(mask: Tensor, gold: Gold) -> Tuple[Tensor, Tensor]:
    """Where each word should point, and whether it is annotated.  (B, L) each

    The first word of an entity points to its last; all other words, those inside entities too,
    point to the sentinel. Words of gold entities are always annotated."""
    n_rows, length = mask.shape
    row, start, end, _ = gold.flat.unbind(1)
    target = torch.full((n_rows, length), length, device=mask.device)
    target.index_put_((row, start), end - 1)
    if gold.known is None:
        return target, mask
    every = torch.ones_like(row, dtype=torch.bool)
    return target, mask & (gold.known | covered(gold.flat, every, (n_rows, length)))


def neighbour_sum(x: Tensor) -> Tensor:
    """Each word plus the words before and after it (equation 8); zeros beyond either end.
    (B, L, D), zero where padded"""
    return x + F.pad(x[:, :-1], (0, 0, 1, 0)) + F.pad(x[:, 1:], (0, 0, 0, 1))
