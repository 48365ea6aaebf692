"""Sentence boundaries learned beside the task, for texts in which none are marked.

Axes: B rows, L tokens, D width.
"""

from __future__ import annotations

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import MARKED, Sentences, Tokens

START_BIAS = -3.0  # about one token in twenty begins a sentence


class Boundaries(nn.Module):
    """Whether a token begins a sentence, from its vector. Rules go by punctuation, and find no end of
    a headline, a byline or a list item."""

    def __init__(self, width: int):
        super().__init__()
        self.score = nn.Linear(width, 1)
        nn.init.zeros_(self.score.weight)  # finds nothing where no annotated boundary was seen
        nn.init.constant_(self.score.bias, START_BIAS)

    def forward(self, x: Tensor) -> Tensor:
        """Log-odds that a sentence begins.  (B, L, D) -> (B, L)"""
        return self.score(x)[:, :, 0]

    def loss(self, tokens: Tokens) -> Tensor:
        """Binary cross-entropy of the tokens of documents with annotated boundaries, a mean over their
        sentences. The first token of a row teaches nothing: rows begin wherever the text was cut."""
        annotated, starts = tokens.extras[MARKED], starts_of(tokens)
        counted = annotated.copy()
        counted[:, 0] = False
        targets, weights = (
            torch.from_numpy(values).to(tokens.x.device, tokens.x.dtype)
            for values in (starts, counted)
        )  # (B, L) each
        losses = F.binary_cross_entropy_with_logits(
            self(tokens.x), targets, weights, reduction="sum"
        )
        return losses / max(int((starts & annotated).sum()), 1)

    def refine(self, tokens: Tokens) -> Tokens:
        """The same rows, with further boundaries where none are annotated."""
        found = (self(tokens.x) > 0).cpu().numpy() & ~tokens.extras[MARKED]  # (B, L)
        starts = starts_of(tokens) | found
        refined = tokens.with_states(tokens.x, **tokens.parts)
        refined.sentences = Sentences(starts, tokens.lengths, tokens.x.device)
        return refined


def starts_of(tokens: Tokens) -> numpy.ndarray:
    """Tokens that begin a sentence, annotated or by rules.  (B, L) bool"""
    starts = numpy.zeros(tokens.mask.shape, dtype=bool)
    starts[:, 0] = True
    if tokens.sentences is not None:
        starts.flat[tokens.sentences.first] = True
    return starts
