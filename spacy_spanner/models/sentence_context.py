"""One vector for a sentence, its words weighed by how much they look like a label (Luo et al. 2020,
eq. 5-8).

Axes: B rows, L tokens, D width, E width of word vectors, P label embeddings.
"""

from __future__ import annotations

from typing import List, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..dropout import Dropout
from ..label_axes import LABELS, mark
from .memory import unit
from .recurrent import BiLSTM


class LabelAttention(nn.Module):
    """How much each word counts: cosines to label embeddings, convolved over neighbouring words by
    one kernel for all labels (eq. 6), the best label, softmax over the words."""

    def __init__(self, *, word_width: int, n_labels: int, kernel: int = 3):
        super().__init__()
        bound = (3 / word_width) ** 0.5
        self.labels = nn.Parameter(torch.empty(n_labels, word_width).uniform_(-bound, bound))
        # Starts as a moving average: a random kernel could favour words unlike any label.
        self.kernel = nn.Parameter(torch.full((1, 1, kernel), 1 / kernel))
        self.bias = nn.Parameter(torch.zeros(n_labels, 1))
        mark(self.labels, LABELS)
        mark(self.bias, LABELS)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """The weights of the words (B, L, E); each row sums to one.  (B, L)"""
        cosines = unit(words) @ unit(self.labels).T  # (B, L, P)
        cosines = cosines.masked_fill(~mask[..., None], 0.0).transpose(1, 2)  # (B, P, L)
        padding = self.kernel.shape[2] // 2
        convolved = F.conv1d(cosines.flatten(0, 1)[:, None], self.kernel, padding=padding)
        best = (convolved.view(cosines.shape) + self.bias).amax(1)  # (B, L)
        # Not -inf: a row without tokens must not give NaN.
        return best.masked_fill(~mask, torch.finfo(best.dtype).min).softmax(1) * mask

    @torch.no_grad()
    def start_from(self, words: Tensor, labels: Tensor) -> None:
        """Set each label embedding to the mean of its words; (n, E) words of labels (n,). Labels
        without words are left unchanged."""
        total = torch.zeros_like(self.labels).index_add_(0, labels, words.to(self.labels.dtype))
        n_words = labels.bincount(minlength=len(self.labels))[:, None]  # (P, 1)
        self.labels.copy_(torch.where(n_words > 0, total / n_words.clamp(min=1), self.labels))


class SentenceContext(nn.Module):
    """A separate BiLSTM, its states averaged by `attention` or, without one, evenly."""

    def __init__(
        self, *, width: int, hidden: int, dropout: float, attention: Optional[LabelAttention]
    ):
        super().__init__()
        self.lstm = BiLSTM(width=width, hidden=hidden)
        self.dropout = Dropout(dropout)
        self.attention = attention
        self.output_width = self.lstm.output_width

    def forward(self, x: Tensor, words: Tensor, mask: Tensor, lengths: List[int]) -> Tensor:
        """x (B, L, D) goes through the BiLSTM, words (B, L, E) to the attention.  (B, D')"""
        states = self.dropout(self.lstm(x, lengths))  # (B, L, D')
        if self.attention is not None:
            weights = self.attention(words, mask)  # (B, L)
        else:
            weights = mask / mask.sum(1, keepdim=True).clamp(min=1)
        return (weights[..., None].to(states.dtype) * states).sum(1)
