"""The interface of heads: a table of gold spans in, a table of predicted spans out.

Axes used here and in every torch file: B rows, L tokens, D width, C labels, N spans, W widths.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy
import torch
from torch import Tensor, nn

# Extras of tokens, (B, L) each.
KEYS = "keys"  # int64 word keys
MARKED = "marked"  # bool: the sentence boundaries of the document are annotated, not rule-based


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
        self.first = first
        self.numbers = number  # (B, L) on the host, undefined where padded
        self.number = torch.from_numpy(number).to(device)  # (B, L), undefined where padded
        # Padding points to some token, whose value is never read.
        self._places = torch.from_numpy((first[:, None] + steps) * inside).to(device)  # (S, M)

    def split(self, values: Tensor) -> Tensor:
        """Values of tokens in rows, sentence by sentence.  (B, L, K) -> (S, M, K)"""
        taken = values.flatten(0, 1).index_select(0, self._places.flatten())
        return taken.view(*self._places.shape, values.shape[2])

    def spread(self, values: Tensor) -> Tensor:
        """Values of sentences, to each of their tokens.  (S, K) -> (B, L, K)"""
        taken = values.index_select(0, self.number.flatten())
        return taken.view(*self.number.shape, values.shape[1])


class Tokens:
    """A batch of rows. A row is a stretch of tokens that is scored at once.

    Vectors are stored padded (`x`) or `unpadded`; the other form is computed on demand."""

    def __init__(
        self,
        x: Optional[Tensor],
        mask: Tensor,
        lengths: List[int],
        *,
        unpadded: Optional[Tensor] = None,
        parts: Optional[Dict[str, Tensor]] = None,
        max_width: Optional[int] = None,
        sentences: Optional[Sentences] = None,
        extras: Optional[Dict[str, numpy.ndarray]] = None,
    ):
        self._x, self._unpadded = x, unpadded
        self.mask = mask  # (B, L) bool, False for padding; True is always a prefix of the row
        self.lengths = lengths  # (B,) on the host, so that packing needs no device read
        self.parts = parts or {}  # what `encode` hands to `loss` and `decode`
        self.max_width = max_width  # widest span to score; None: no bound
        self.sentences = sentences  # None where each row is one; only for heads that need them
        self.extras = extras or {}  # on the host, only for heads that need them

    @property
    def x(self) -> Tensor:
        """Token vectors, zero where padded.  (B, L, D)"""
        if self._x is None:
            assert self._unpadded is not None
            self._x = self.pad(self._unpadded)
        return self._x

    @property
    def unpadded(self) -> Tensor:
        """Vectors of the unpadded tokens, row after row.  (T, D)"""
        if self._unpadded is None:
            assert self._x is not None
            self._unpadded = self.unpad(self._x)
        return self._unpadded

    def unpad(self, values: Tensor) -> Tensor:
        """Values of rows (B, L, K), of the unpadded tokens.  (T, K)"""
        flat = values.flatten(0, 1)  # (B * L, K)
        return flat if self.is_full else flat.index_select(0, self.positions)

    def pad(self, values: Tensor) -> Tensor:
        """Values of the unpadded tokens (T, K) as rows, zero where padded.  (B, L, K)"""
        if not self.is_full:
            rows = values.new_zeros((self.mask.numel(), values.shape[1]))
            values = rows.index_copy_(0, self.positions, values)
        return values.reshape(*self.mask.shape, values.shape[1])

    @property
    def is_full(self) -> bool:
        """Whether nothing is padded."""
        return sum(self.lengths) == self.mask.numel()

    @property
    def starts(self) -> Tensor:
        """Index of each row's first token among the unpadded tokens.  (B,)"""
        ends = numpy.cumsum(self.lengths)
        return torch.from_numpy(ends - self.lengths).to(self.mask.device)

    @cached_property
    def positions(self) -> Tensor:
        """Index of each unpadded token in the flattened rows.  (T,)"""
        is_token = numpy.arange(self.mask.shape[1]) < numpy.array(self.lengths)[:, None]  # (B, L)
        return torch.from_numpy(numpy.flatnonzero(is_token)).to(self.mask.device)

    def with_states(self, x: Tensor, **parts: Tensor) -> Tokens:
        """The same rows with other token vectors."""
        return Tokens(
            x,
            self.mask,
            self.lengths,
            parts=parts,
            max_width=self.max_width,
            sentences=self.sentences,
            extras=self.extras,
        )


@dataclass
class Gold:
    """The annotation of a padded batch."""

    spans: Tensor  # (N, 4) int64: row, start, end (exclusive), label; level by level, no duplicates
    # How many of them are outermost, outermost of the rest and so on: no two of a level share a token
    per_level: Tuple[int, ...]
    known: Optional[Tensor] = None  # (B, L) bool: annotated tokens; None where all are
    # (M, 6) int64: row, head start, head end, tail start, tail end, label; only for relations
    relations: Optional[Tensor] = None
    # (N, 4) int64 on the host: row, start, end, label (-1: unknown) of the spans that may be linked,
    # sorted and each once
    ends: Optional[numpy.ndarray] = None
    linked: Optional[Tensor] = None  # (B, L) bool: tokens whose relations are annotated; as `known`

    @property
    def flat(self) -> Tensor:
        """The outermost spans, from which heads without nesting learn.  (n, 4)"""
        return self.at_level(0)

    def at_level(self, level: int) -> Tensor:
        """The spans of a level, from 0 for the outermost.  (n, 4)"""
        first = sum(self.per_level[:level])
        return self.spans[first : first + sum(self.per_level[level : level + 1])]


@dataclass
class Decoded:
    """The predictions of a head."""

    spans: Tensor  # (N, 4) int64: row, start, end (exclusive), label
    scores: Tensor  # (N,) float: probabilities in 0..1
    # (N,) float: log of the probability over that of no entity, of heads that choose between them
    margins: Optional[Tensor] = None


@dataclass(frozen=True)
class Facts:
    """Properties of a head that its component depends on."""

    levels: Optional[int] = (
        None  # of nesting that it learns and finds, 1: no nested spans; None: no bound
    )
    max_width: Optional[int] = None  # widest span it can find; None: no bound
    needs_sentences: bool = False  # reads where sentences begin
    learns_boundaries: bool = False  # learns where they begin
    threshold: float = 0.5  # that of its paper


@dataclass(frozen=True)
class Cost:
    """Cost of padding, by which rows are grouped."""

    token: float = 1.0  # of a padded token, in multiples of that of a linear layer per token
    step: float = 0.0  # of a step from token to token, in tokens; 0 for heads that take none


class StartsFromSample(ABC):
    """A head that looks at a sample of the training data before the first step."""

    @abstractmethod
    def prepare(self, tokens: Tokens, gold: Gold) -> None:
        """Called once, in evaluation mode and without gradients."""


class ReadsWords(ABC):
    """A part of a head that keeps something for each word. Tokens then have the keys of their words
    as an extra."""

    @abstractmethod
    def learn_words(self, words: numpy.ndarray, counts: numpy.ndarray) -> None:
        """Take the words of the training data (K,) and how often each occurs (K,), once before
        training."""


class ScoresSpans(ABC):
    """A head that knows how probable any span is."""

    @abstractmethod
    def span_scores(self, encoded: Tokens, spans: Tensor) -> Tensor:
        """The probability of each span (N, 4).  (N,)"""


class ListsCandidates(ABC):
    """A head that scores all spans up to a width, and can list more than it finds."""

    @abstractmethod
    def candidates(self, encoded: Tokens, least: Tensor) -> Tuple[Tensor, Tensor]:
        """All spans (N, 4) whose log-odds are over those given for their label (C,), also where
        another label is more probable, and their log-odds (N,)."""


class Proposes(ABC):
    """A head that chooses spans first and labels them then."""

    @abstractmethod
    def propose(self, encoded: Tokens) -> Tensor:
        """What is labelled. (K, 5) int64: row, start and end as chosen, start and end as labelled,
        which differ in heads that move boundaries."""


class Reports(ABC):
    """A part of a head with a summary to print after training."""

    @abstractmethod
    def summary(self) -> List[str]:
        """One line each."""


class SpanModule(nn.Module, ABC):
    """Base of every head. A subclass implements `loss` and `decode`, and `encode` if it has
    contextual layers of its own above the token vectors. Its `__init__` declares its options."""

    contextual = False  # has such layers

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        """The facts about a head with these options. Raises S003 for options that cannot work."""
        return Facts()

    @classmethod
    def bound_width(cls, max_width: int) -> Dict[str, Any]:
        """Options that bound spans to this width; none where the head has no such bound."""
        return cls.place({"max_width": max_width})

    @classmethod
    def place(cls, options: Dict[str, Any]) -> Dict[str, Any]:
        """These options as the block of the head, or of a part of it, has them; none where it lacks one."""
        return options if options.keys() <= signature(cls.__init__).parameters.keys() else {}

    def __init__(self, *, width: int, n_labels: int, output_width: Optional[int] = None):
        super().__init__()
        self.width = width  # D of the token vectors it reads
        self.n_labels = n_labels
        # D of what `encode` gives
        self.output_width = width if output_width is None else output_width

    def encode(self, tokens: Tokens) -> Tokens:
        """The contextual layers of the head. A bundled partner head reads the `x` of the result."""
        return tokens

    @abstractmethod
    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Scalar training loss; no host read of a device value on the way."""

    @abstractmethod
    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """Spans whose score is over the threshold of their label (C,), in no particular order."""

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        """Size of the largest tensor of a row of this length, for the memory bound of a group.

        max_width: Widest span to score; None: no bound."""
        return length * max(self.n_labels, 1)

    def cost(self) -> Cost:
        """Cost of padding, in the present mode (training or evaluation)."""
        return Cost()

    def forward(self, tokens: Tokens, gold: Gold) -> Tensor:
        return self.loss(self.encode(tokens), gold)


def empty_decoded(like: Tensor) -> Decoded:
    """Nothing found, on the device of `like`."""
    return Decoded(
        torch.zeros((0, 4), dtype=torch.int64, device=like.device),
        torch.zeros((0,), dtype=torch.float32, device=like.device),
    )
