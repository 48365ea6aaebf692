"""What every head promises: a table of spans in, a table of spans out.

Axes used here and in every torch file: B rows, L tokens, D width, C labels, N spans, W widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Dict, List, Optional

import numpy
import torch
from torch import Tensor, nn


class Sentences:
    """The sentences inside a batch of rows, as rows of their own.

    Axes: S sentences, M tokens of the longest.
    """

    def __init__(self, starts: numpy.ndarray, lengths: List[int], device: torch.device):
        """
        starts: (B, L) bool, where sentences begin; the first token of a row always does.
        lengths: Tokens of each row.
        """
        is_token = numpy.arange(starts.shape[1]) < numpy.array(lengths)[:, None]  # (B, L)
        first = numpy.flatnonzero(starts & is_token)  # (S,) in the flattened rows
        number = (starts & is_token).cumsum().reshape(starts.shape) - 1  # (B, L)
        counts = numpy.bincount(number[is_token], minlength=len(first))  # (S,)
        steps = numpy.arange(int(counts.max(initial=0)))  # (M,)
        inside = steps < counts[:, None]  # (S, M)
        self.lengths: List[int] = counts.tolist()
        self.per_row: List[int] = (starts & is_token).sum(1).tolist()
        self.mask = torch.from_numpy(inside).to(device)
        # Padding of rows and of sentences points to some token: nobody reads what stands there.
        self._number = torch.from_numpy(number).to(device)  # (B, L)
        self._places = torch.from_numpy((first[:, None] + steps) * inside).to(device)  # (S, M)

    def same(self) -> Tensor:
        """Which pairs of tokens of a row are in the same sentence.  (B, L, L) bool"""
        return self._number[:, :, None] == self._number[:, None, :]

    def split(self, values: Tensor) -> Tensor:
        """Values of tokens in rows, sentence by sentence.  (B, L, K) -> (S, M, K)"""
        taken = values.flatten(0, 1).index_select(0, self._places.flatten())
        return taken.view(*self._places.shape, values.shape[2])

    def spread(self, values: Tensor) -> Tensor:
        """Values of sentences, to each of their tokens.  (S, K) -> (B, L, K)"""
        taken = values.index_select(0, self._number.flatten())
        return taken.view(*self._number.shape, values.shape[1])


class Tokens:
    """A batch of rows. A row is a stretch of tokens that is scored at once.

    Its vectors are kept padded, `x`, or without padding, `real`; the other is made when asked for."""

    def __init__(
        self,
        x: Optional[Tensor],
        mask: Tensor,
        lengths: List[int],
        keys: Optional[numpy.ndarray] = None,
        *,
        real: Optional[Tensor] = None,
        parts: Optional[Dict[str, Tensor]] = None,
        max_width: Optional[int] = None,
        sentences: Optional[Sentences] = None,
    ):
        self._x, self._real = x, real
        self.mask = mask  # (B, L) bool, True for real tokens; always a prefix of the row
        self.lengths = lengths  # (B,) on the host, so that packing needs no device read
        # (B, L) int64 word keys on the host, for the same reason; only for heads that ask for them
        self.keys = keys
        self.parts = parts or {}  # what `encode` hands to `loss` and `decode`
        self.max_width = max_width  # widest span worth a look; None: no bound
        self.sentences = sentences  # None where each row is one; only for heads that ask for them

    @property
    def x(self) -> Tensor:
        """Token vectors, zero where padded.  (B, L, D)"""
        if self._x is None:
            assert self._real is not None
            self._x = self.pad(self._real)
        return self._x

    @property
    def real(self) -> Tensor:
        """Vectors of the real tokens, row after row.  (T, D)"""
        if self._real is None:
            assert self._x is not None
            flat = self._x.flatten(0, 1)  # (B * L, D)
            self._real = flat if self.is_full else flat.index_select(0, self.places)
        return self._real

    def pad(self, values: Tensor) -> Tensor:
        """What was computed of the real tokens (T, K) as rows, zero where padded.  (B, L, K)"""
        if not self.is_full:
            rows = values.new_zeros((self.mask.numel(), values.shape[1]))
            values = rows.index_copy_(0, self.places, values)
        return values.reshape(*self.mask.shape, values.shape[1])

    @property
    def is_full(self) -> bool:
        """Whether nothing is padded."""
        return sum(self.lengths) == self.mask.numel()

    @property
    def starts(self) -> Tensor:
        """Where each row begins among the real tokens.  (B,)"""
        ends = numpy.cumsum(self.lengths)
        return torch.from_numpy(ends - self.lengths).to(self.mask.device)

    @cached_property
    def places(self) -> Tensor:
        """Where the real tokens stand in the flattened rows.  (T,)"""
        is_real = numpy.arange(self.mask.shape[1]) < numpy.array(self.lengths)[:, None]  # (B, L)
        return torch.from_numpy(numpy.flatnonzero(is_real)).to(self.mask.device)

    def with_states(self, x: Tensor, **parts: Tensor) -> Tokens:
        """The same rows with other token vectors."""
        limits = {"max_width": self.max_width, "sentences": self.sentences}
        return Tokens(x, self.mask, self.lengths, self.keys, parts=parts, **limits)


@dataclass
class Gold:
    """The annotation of a padded batch."""

    spans: Tensor  # (N, 4) int64: row, start, end (exclusive), label; outermost spans first, no duplicates
    n_outer: int  # how many of them are outermost: no two of those share a token
    known: Optional[Tensor] = None  # (B, L) bool: annotated tokens; None where all are
    # (M, 6) int64: row, head start, head end, tail start, tail end, label; only for relations
    relations: Optional[Tensor] = None

    @property
    def flat(self) -> Tensor:
        """What a head without nesting learns: the outermost spans.  (n_outer, 4)"""
        return self.spans[: self.n_outer]


@dataclass
class Decoded:
    """What a head found."""

    spans: Tensor  # (N, 4) int64: row, start, end (exclusive), label
    scores: Tensor  # (N,) float: probabilities in 0..1


class SpanModule(nn.Module):
    """Base of every head. A subclass implements `loss` and `decode`, and `encode` if it has
    contextual layers of its own above the token vectors."""

    def __init__(self, *, width: int, n_labels: int, output_width: Optional[int] = None):
        super().__init__()
        self.width = width  # D of the token vectors it reads
        self.n_labels = n_labels
        self.output_width = (
            width if output_width is None else output_width
        )  # D of what `encode` gives

    def encode(self, tokens: Tokens) -> Tokens:
        """Own contextual layers. The result's `x` is what a bundled partner head reads."""
        return tokens

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Scalar training loss; no host read of a device value on the way."""
        raise NotImplementedError

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """Spans whose score is over the threshold of their label (C,), in no particular order."""
        raise NotImplementedError

    def prepare(self, tokens: Tokens, gold: Gold) -> None:
        """Look at a sample of the training data before the first step, for a better start."""

    def learn_words(self, keys: Tensor, counts: Tensor) -> None:
        """Meet the words of the training data (K,) and how often each occurs (K,), once before
        training. Only heads that read word keys are asked."""

    def summary(self) -> List[str]:
        """What is worth telling after training, one line each."""
        return []

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        """How many numbers one row of this length needs at the widest point, for batching rows.

        max_width: Widest span worth a look; None: no bound."""
        return length * max(self.n_labels, 1)

    def padding(self, length: int) -> int:
        """How many padded tokens cost as much time as one more group of rows, the longest of which
        has this length. Heads that go from token to token pay for each step of a group."""
        return 24_000 // max(self.width, 1)  # 250 for small encoders, 62 for a small transformer

    def forward(self, tokens: Tokens, gold: Gold) -> Tensor:
        return self.loss(self.encode(tokens), gold)


def empty_decoded(like: Tensor) -> Decoded:
    """Nothing found, on the device of `like`."""
    return Decoded(
        torch.zeros((0, 4), dtype=torch.int64, device=like.device),
        torch.zeros((0,), dtype=torch.float32, device=like.device),
    )
