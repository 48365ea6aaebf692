"""Which slots of the memory belong to which word (Luo et al. 2020, memory query and update).

Everything here is numpy on the host: a batch is planned without asking the device for anything.
Axes: K words of the memory, S slots, Q queries, R slots read for a word, U words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

import numpy

# Rows of the table.
WORD, SIZE, COUNT, WRITES = range(4)
QUERIES = 8  # of a word with many slots that are answered together, or in a block of their own


@dataclass
class Found:
    """Tokens of a padded batch whose word has slots."""

    positions: numpy.ndarray  # (n,) position in the flattened batch
    words: numpy.ndarray  # (n,) number of the word in the memory

    def pick(self, which: numpy.ndarray) -> Found:
        """Those at the given indices or under the given mask."""
        return Found(self.positions[which], self.words[which])


@dataclass
class Bucket:
    """Words with similar numbers of slots and tokens, read as one padded batch."""

    slots: numpy.ndarray  # (U, R) int64
    n_slots: numpy.ndarray  # (U,) how many of them count
    positions: numpy.ndarray  # (U, Q) tokens of each word in the flattened batch
    is_query: numpy.ndarray  # (U, Q) bool; the rest is padding

    def pick(self, which: slice) -> Bucket:
        """Some of the words."""
        return Bucket(
            self.slots[which], self.n_slots[which], self.positions[which], self.is_query[which]
        )


class MemoryIndex:
    """A ring of slots for every word, one behind the other in the order of the words.

    `table` (4, K) int64 is all of its state: sorted word keys, slots of each word, how often it
    occurs in the training data, and how often it was written.
    """

    def __init__(self, table: numpy.ndarray):
        self.table = table
        self.starts = numpy.cumsum(table[SIZE]) - table[SIZE]  # (K,) first slot of each word

    @classmethod
    def learn(
        cls, words: numpy.ndarray, counts: numpy.ndarray, max_slots: Optional[int]
    ) -> MemoryIndex:
        """An index with empty slots for words (K,) that occur so often (K,)."""
        sizes = share_slots(counts, max_slots)
        order = numpy.argsort(words)
        order = order[sizes[order] > 0]
        writes = numpy.zeros_like(counts)
        return cls(numpy.stack([words[order], sizes[order], counts[order], writes[order]]))

    @property
    def n_slots(self) -> int:
        """Slots of all words."""
        return int(self.table[SIZE].sum())

    @property
    def is_silent(self) -> bool:
        """Whether less than one epoch was written."""
        return bool(self.table[WRITES].sum() < self.table[COUNT].sum())

    @property
    def filled(self) -> numpy.ndarray:
        """How many slots of each word were written; always the first ones.  (K,)"""
        return numpy.minimum(self.table[WRITES], self.table[SIZE])

    def find(self, keys: numpy.ndarray, lengths: Sequence[int]) -> Found:
        """The tokens of rows of these lengths whose key (B, L) has slots."""
        is_token = numpy.arange(keys.shape[1]) < numpy.asarray(lengths)[:, None]  # (B, L)
        positions = numpy.flatnonzero(is_token)
        wanted = keys.ravel()[positions]
        words = numpy.searchsorted(self.table[WORD], wanted)
        words = numpy.minimum(words, self.table.shape[1] - 1)
        is_here = self.table[WORD][words] == wanted
        return Found(positions[is_here], words[is_here])

    def claim(self, found: Found) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """The slots these tokens are written to and the positions of the tokens; advances the rings.

        Of a word with more tokens than slots the last ones stay."""
        order = numpy.argsort(found.words, kind="stable")
        words, positions = found.words[order], found.positions[order]
        distinct, first, n_tokens = numpy.unique(words, return_index=True, return_counts=True)
        rank = numpy.arange(len(words)) - numpy.repeat(first, n_tokens)
        size = self.table[SIZE][words]
        slots = self.starts[words] + (self.table[WRITES][words] + rank) % size
        self.table[WRITES][distinct] += n_tokens
        last = rank >= numpy.repeat(n_tokens, n_tokens) - size
        return slots[last], positions[last]

    def plan(
        self,
        found: Found,
        *,
        most: int,
        draw: numpy.ndarray,
        twice_only: bool = False,
        alone: bool = False,
    ) -> List[Bucket]:
        """The slots to read for these tokens; tokens whose word has none are left out.

        most: Slots read for a word; where it has more, they are cut into so many runs of like
            length and one is taken of each.
        draw: (most,) which slot of a run is taken, as numbers from 0 to 1.
        twice_only: Leave out words that occur only once in the training data.
        alone: Read in shapes that follow from a token's word: sums are then rounded the same way
            whatever else is asked.
        """
        readable = self.filled > 0
        if twice_only:
            readable &= self.table[COUNT] > 1
        found = found.pick(readable[found.words])
        order = numpy.argsort(found.words, kind="stable")
        positions = found.positions[order]
        words = found.words[order]
        words, first, n_tokens = numpy.unique(words, return_index=True, return_counts=True)
        n_read = numpy.minimum(self.filled[words], most)  # (U,)
        # Padding costs more than another bucket only where there are many slots.
        power = numpy.ceil(numpy.log2(numpy.maximum(n_read, 16)))
        n_queries = n_tokens
        if alone:
            power[n_read <= 4] = 2  # most words have so few
            n_queries = numpy.where(power > 4, QUERIES, 1)
            parts = -(-n_tokens // n_queries)  # of each word, with so many queries
            part = numpy.arange(parts.sum()) - numpy.repeat(parts.cumsum() - parts, parts)
            words, first, n_tokens, n_read, power, n_queries = (
                numpy.repeat(a, parts) for a in (words, first, n_tokens, n_read, power, n_queries)
            )
            first = first + part * n_queries
            n_tokens = numpy.minimum(n_tokens - part * n_queries, n_queries)
        filled = self.filled[words]  # (U,)
        level = 100 * power + numpy.ceil(numpy.log2(n_queries) / 2)
        buckets = []
        for members in (numpy.flatnonzero(level == one) for one in numpy.unique(level)):
            step = numpy.arange(n_queries[members].max())  # (Q,)
            is_query = step < n_tokens[members, None]  # (U, Q)
            at = numpy.where(is_query, first[members, None] + step, 0)
            slots = self.starts[words[members], None] + spread(
                filled[members], n_read[members], draw
            )
            if alone:
                padding = 2 ** int(power[members[0]]) - slots.shape[1]
                slots = numpy.pad(slots, ((0, 0), (0, padding)))
            buckets.append(Bucket(slots, n_read[members], positions[at], is_query))
        return buckets


def count_slots(table: numpy.ndarray) -> Optional[int]:
    """The slots of a table (4, K) that an index can have; None for any other."""
    words, *numbers = table
    # Bounded one by one, so that no sum of them can run over.
    fits = all(row.min(initial=0) >= 0 and row.max(initial=0) < 1 << 40 for row in numbers)
    fits = fits and len(table) == 4 and (words[1:] > words[:-1]).all() and table[SIZE].all()
    return int(table[SIZE].sum()) if fits else None


def spread(filled: numpy.ndarray, n_read: numpy.ndarray, draw: numpy.ndarray) -> numpy.ndarray:
    """Distinct numbers below `filled` (U,), as many as `n_read` (U,), evenly spread; 0 behind
    them.  (U, R)"""
    step = numpy.arange(n_read.max())  # (R,)
    low = step * filled[:, None] // n_read[:, None]  # (U, R)
    high = (step + 1) * filled[:, None] // n_read[:, None]
    taken = low + (draw[: len(step)] * (high - low)).astype("int64")
    return numpy.where(step < n_read[:, None], taken, 0)


def share_slots(counts: numpy.ndarray, max_slots: Optional[int]) -> numpy.ndarray:
    """One slot for each occurrence of a word. Where that is too much, the most frequent words give
    up slots first, down to a common level; below one slot a word, the rarest words have none."""
    if max_slots is None or counts.sum() <= max_slots:
        return counts
    if len(counts) > max_slots:
        sizes = numpy.zeros_like(counts)
        sizes[numpy.argsort(-counts, kind="stable")[:max_slots]] = 1
        return sizes
    low, high = 1, int(counts.max())  # the level fits at `low` and does not at `high`
    while high - low > 1:
        middle = (low + high) // 2
        fits = numpy.minimum(counts, middle).sum() <= max_slots
        low, high = (middle, high) if fits else (low, middle)
    return numpy.minimum(counts, low)
