"""From documents to the pieces a transformer reads, and from words to their pieces.

Axes: T words of the batch, W words of all windows, S sequences that the transformer reads, P pieces
of all sequences, M pairs of a word and one of its pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Literal, Optional, Tuple

import numpy
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc

START, END, OWN_START, OWN_END = range(4)  # columns of a table of windows


@dataclass(frozen=True)
class Windows:
    """How a document is cut. A window is a row (start, end, own start, own end): the transformer
    reads it from start to end, and its own words are read from no other window.

    size: Most words of a window; None: as much as the transformer can read.
    stride: Words between the starts of two windows. What they share is split in the middle, so that
        each word is read where it has most context.
    split: "sentences": no window crosses a sentence boundary, where boundaries are known.
    context: Words that a sentence is read with on either side.
    """

    size: Optional[int] = 128
    stride: int = 96
    split: Literal["strided", "sentences"] = "strided"
    context: int = 0

    def cut(self, doc: Doc) -> numpy.ndarray:
        """The windows of a document.  (n, 4)"""
        if self.split == "strided" or not doc.has_annotation("SENT_START"):
            return self.strided(0, len(doc))
        parts = [self.strided(sent.start, sent.end) for sent in doc.sents]
        table = numpy.concatenate([self.strided(0, 0), *parts])
        table[:, START] = numpy.maximum(table[:, START] - self.context, 0)
        table[:, END] = numpy.minimum(table[:, END] + self.context, len(doc))
        return table

    def strided(self, start: int, end: int) -> numpy.ndarray:
        """Windows over the words from `start` to `end`.  (n, 4)"""
        length = end - start
        if length == 0:
            return numpy.zeros((0, 4), dtype="int64")
        size = length if self.size is None else min(self.size, length)
        n_windows = 1 + -(-(length - size) // self.stride)
        table = numpy.empty((n_windows, 4), dtype="int64")
        table[:, START] = start + numpy.arange(n_windows) * self.stride
        table[:, END] = numpy.minimum(table[:, START] + size, end)
        table[:, OWN_START] = table[:, START] + (size - self.stride) // 2
        table[0, OWN_START] = start
        table[:-1, OWN_END] = table[1:, OWN_START]
        table[-1, OWN_END] = end
        return table


@dataclass
class PieceBatch:
    """The input of the transformer for a batch of documents."""

    ids: List[numpy.ndarray]  # the pieces of each sequence, special ones among them
    word: numpy.ndarray  # (M,) numbers of words, in order
    sequence: numpy.ndarray  # (M,) where the word's piece is
    position: numpy.ndarray  # (M,)
    n_words: int  # T; words may have no piece


class PieceReader:
    """Reads documents with a tokenizer of the `tokenizers` library.

    tokenizer: Its own padding and truncation settings are not used.
    max_pieces: Longest sequence the transformer takes. A window with more pieces is read in parts
        that share a quarter; nothing is cut off.
    overlap: "best": a word that is in two windows is read where it has most context.
        "spacy-transformers": as there, it has the pieces of both, and a space belongs to the word
        before it; for pipelines that were trained so.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_pieces: int,
        windows: Windows,
        overlap: Literal["best", "spacy-transformers"] = "best",
    ):
        self.tokenizer = tokenizer
        self.windows = windows
        self.overlap = overlap
        self.shared = max_pieces // 4
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=max_pieces, stride=self.shared)

    def read(self, docs: List[Doc]) -> PieceBatch:
        texts: List[str] = []
        starts, ends, words, owned = [], [], [], []  # of the words of each window: (W,)
        base = first_word = 0
        for doc in docs:
            places = doc.to_array([IDX, LENGTH]).astype("int64").reshape(-1, 2)
            word_ends, text = places.sum(1), doc.text
            for start, end, own_start, own_end in self.windows.cut(doc).tolist():
                first, last = int(places[start, 0]), int(word_ends[end - 1])
                texts.append(text[first:last])
                # Windows lie one after the other on a common axis, so that one search finds all.
                starts.append(places[start:end, 0] + (base - first))
                ends.append(word_ends[start:end] + (base - first))
                number = numpy.arange(start, end)
                words.append(number + first_word)
                owned.append((number >= own_start) & (number < own_end))
                base += last - first
            first_word += len(doc)
        pieces = self.encode(texts)
        flat_starts, flat_ends = numpy.concatenate(starts), numpy.concatenate(ends)
        if self.overlap == "spacy-transformers":
            flat_ends[:-1] = numpy.minimum(flat_ends[:-1] + 1, flat_starts[1:])
        piece, slot = overlaps(pieces.start, pieces.end, flat_starts, flat_ends)
        if self.overlap == "best":
            kept = numpy.concatenate(owned)[slot] & pieces.owned[piece]
            piece, slot = piece[kept], slot[kept]
        word = numpy.concatenate(words)[slot]
        order = numpy.argsort(word, kind="stable")
        word, piece = word[order], piece[order]
        return PieceBatch(
            pieces.ids, word, pieces.sequence[piece], pieces.position[piece], first_word
        )

    def encode(self, texts: List[str]) -> Pieces:
        """The pieces of all windows; one with too many pieces gives several sequences."""
        ids, places, owned = [], [], []
        base = 0
        for text, encoding in zip(texts, self.tokenizer.encode_batch(texts), strict=True):
            parts = [encoding, *encoding.overflowing]
            for number, part in enumerate(parts):
                # Without special pieces white space is no piece at all; a sequence has one at least.
                ids.append(numpy.array(part.ids or [0], dtype="int64"))
                offsets = numpy.array(part.offsets or [(0, 0)], dtype="int64")
                offsets[offsets[:, 0] < offsets[:, 1]] += base
                places.append(offsets)
                ordinary = numpy.flatnonzero(numpy.array(part.special_tokens_mask) == 0)
                owns = numpy.ones(len(offsets), dtype=bool)
                if number > 0:
                    owns[ordinary[: self.shared - self.shared // 2]] = False
                if number < len(parts) - 1:
                    owns[ordinary[len(ordinary) - self.shared // 2 :]] = False
                owned.append(owns)
            base += len(text)
        lengths = [len(sequence) for sequence in ids]
        flat = numpy.concatenate(places)
        return Pieces(
            ids,
            numpy.repeat(numpy.arange(len(ids)), lengths),
            numpy.concatenate([numpy.arange(length) for length in lengths]),
            flat[:, 0],
            flat[:, 1],
            numpy.concatenate(owned),
        )


@dataclass
class Pieces:
    """The pieces of all windows; `start` and `end` are characters on the common axis."""

    ids: List[numpy.ndarray]
    sequence: numpy.ndarray  # (P,)
    position: numpy.ndarray  # (P,)
    start: numpy.ndarray  # (P,)
    end: numpy.ndarray  # (P,)
    owned: numpy.ndarray  # (P,) of two sequences that share a piece, one owns it


def overlaps(
    piece_starts: numpy.ndarray,
    piece_ends: numpy.ndarray,
    word_starts: numpy.ndarray,
    word_ends: numpy.ndarray,
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """All pairs of a piece and a word that share a character. A piece may lie in several words, as
    where the two cut a script without spaces differently. Words are in order.

    RETURNS: Numbers of pieces and of words.  (M,), (M,)
    """
    first = numpy.searchsorted(word_ends, piece_starts, side="right")
    last = numpy.searchsorted(word_starts, piece_ends, side="left")
    counts = numpy.where(piece_starts < piece_ends, numpy.maximum(last - first, 0), 0)
    piece = numpy.repeat(numpy.arange(len(counts)), counts)
    step = numpy.arange(len(piece)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    return piece, first[piece] + step
