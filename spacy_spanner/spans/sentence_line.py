"""The sentences of a batch of rows, one behind the other on a line with gaps between them.

What looks a few tokens to each side on such a line sees its own sentence alone, whatever a row holds
beside it, and padding is not computed.

Axes: S sentences, T tokens, N places of the line.
"""

from __future__ import annotations

from typing import List

import numpy
import torch
from torch import Tensor


class SentenceLine:
    """Where each token is on the line, and how many tokens of its sentence are left."""

    def __init__(self, sentences: List[int], gap: int, device: torch.device):
        """
        sentences: Tokens of each.  (S,)
        gap: Empty places between two of them.
        """
        lengths = numpy.array(sentences)  # (S,)
        first = lengths.cumsum() - lengths  # (S,) among the tokens
        steps = numpy.arange(lengths.sum()) - first.repeat(lengths)  # (T,) within the sentence
        gaps = gap * numpy.arange(len(lengths))  # (S,) before each sentence
        self.length = int(lengths.sum() + gaps.max(initial=0))  # N
        self.place = torch.from_numpy((first + gaps).repeat(lengths) + steps).to(device)  # (T,)
        self.left = torch.from_numpy(lengths.repeat(lengths) - steps).to(device)  # (T,)

    def spans(self, n_widths: int) -> Tensor:
        """Which spans from each token, of up to so many tokens, end in its sentence.  (T, W)"""
        return torch.arange(1, n_widths + 1, device=self.left.device) <= self.left[:, None]

    def lay(self, values: Tensor) -> Tensor:
        """Values of tokens (T, ...) on the line, 0 in the gaps.  (N, ...)"""
        return values.new_zeros((self.length, *values.shape[1:])).index_copy(0, self.place, values)

    def take(self, values: Tensor) -> Tensor:
        """Values of places (N, ...) for the tokens on them.  (T, ...)"""
        return values.index_select(0, self.place)
