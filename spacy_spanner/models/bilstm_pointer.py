"""BiLSTM-Pointer: each word points to the end of the entity that it starts (Li et al. 2020, as a baseline
of Li et al. 2021, section 4.2, which adds the classifier).

Axes: B rows, L tokens, D width of the BiLSTM's states, C labels, N spans.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Cost, Decoded, Facts, Gold, SpanModule, Tokens, empty_decoded
from ..dropout import Dropout
from ..errors import check
from ..label_axes import LABELS, mark_layer
from .biaffine import take_by_rank
from .boundary_pointer import Pointer
from .builder import architecture
from .recurrent import BiLSTM


class BiLSTMPointer(SpanModule):
    """BiLSTM, the pointer of MIN's Boundary Module, and a softmax over the labels of what it found."""

    contextual = True

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        hidden: int = 100,
        dropout: float = 0.5,
        width_scores: bool = False,
    ):
        """
        hidden: Width of one direction of the BiLSTM.
        dropout: On the token vectors and on the states.
        width_scores: Let a word also say how wide the entity is that it starts. States alone must
            tell its last word from all similar words behind it.
        """
        super().__init__(width=width, n_labels=n_labels, output_width=2 * hidden)
        self.dropout = Dropout(dropout)
        self.encoder = BiLSTM(width=width, hidden=hidden)
        self.pointer = Pointer(width=2 * hidden, window=1, width_scores=width_scores)
        self.classify = nn.Linear(4 * hidden, n_labels)
        mark_layer(self.classify, LABELS)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        check(cls.__name__, options, [("hidden", options["hidden"] > 0, "it must be positive")])
        return Facts(levels=1, threshold=0.0)

    def encode(self, tokens: Tokens) -> Tokens:
        states = self.encoder(self.dropout(tokens.x), tokens.lengths)
        return tokens.with_states(self.dropout(states))

    def points(self, encoded: Tokens) -> Tensor:
        """Log-probabilities of the last word, for each first word.  (B, L, L + 1)"""
        return self.pointer(encoded.x, encoded.mask, encoded.max_width)

    def label_logits(self, x: Tensor, spans: Tensor) -> Tensor:
        """Scores of the labels of spans (N, 4), by their first and last state.  (N, C)"""
        row, start, end, _ = spans.unbind(1)
        return self.classify(torch.cat([x[row, start], x[row, end - 1]], dim=1))

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """That of the pointer, and the mean cross entropy of the labels of gold spans."""
        points = self.points(encoded)
        logits = self.label_logits(encoded.x, gold.flat)
        losses = F.cross_entropy(logits, gold.flat[:, 3], reduction="sum")
        return self.pointer.loss(points, encoded.mask, gold) + losses / max(len(gold.flat), 1)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """From left to right, what a word points to, unless it begins inside an entity. The score is the
        probability of the end times that of the label."""
        if not self.n_labels:
            return empty_decoded(encoded.x)
        log_probs, last = self.points(encoded).max(2)  # (B, L) each
        row, start = (last < encoded.mask.shape[1]).nonzero().unbind(1)
        spans = torch.stack([row, start, last[row, start] + 1, torch.zeros_like(row)], dim=1)
        taken = take_by_rank(spans, -start.float(), n_rows=len(encoded.mask), nested=False)
        spans, log_probs = spans[taken], log_probs[row, start][taken]
        label_probs, label = self.label_logits(encoded.x, spans).softmax(1).max(1)
        scores = log_probs.exp() * label_probs
        keep = scores > thresholds[label]
        return Decoded(torch.cat([spans[:, :3], label[:, None]], dim=1)[keep], scores[keep])

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        return length * (length + self.output_width)

    def cost(self) -> Cost:
        return Cost(token=math.inf, step=2)


build_bilstm_pointer = architecture(BiLSTMPointer)
