"""Where sentences begin: as a component of the pipeline marked them, or else as it seems."""

from __future__ import annotations

import re
from typing import List, Sequence

import numpy
from spacy.attrs import ORTH, SENT_START
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc
from spacy.vocab import Vocab

# A stretch without an end of a sentence is not taken for a sentence beyond this many tokens.
LONGEST = 128

FULL_STOP = "."
ENDS = frozenset(Sentencizer.default_punct_chars)
# A word that a tokenizer left the full stop at; short ones are taken for abbreviations.
WORD_WITH_STOP = re.compile(r"[^\W\d_]{5,}\.")


def marked_starts(doc: Doc) -> List[int]:
    """The first tokens of the sentences that were set; none where no boundary was. Of the first token
    of a document nothing can be told."""
    marks = doc.to_array(SENT_START)[1:]
    return [0, *(numpy.flatnonzero(marks == 1) + 1).tolist()] if marks.any() else []


def sentence_starts(docs: Sequence[Doc]) -> numpy.ndarray:
    """Which tokens of consecutive documents begin a sentence; where a document is not marked, what
    looks like one.  (T,) bool"""
    docs = [doc for doc in docs if len(doc)]
    if not docs:
        return numpy.zeros(0, dtype=bool)
    lengths = numpy.array([len(doc) for doc in docs])
    first = lengths.cumsum() - lengths  # (D,)
    orth, marks = numpy.concatenate([doc.to_array([ORTH, SENT_START]) for doc in docs]).T
    marks[first] = 0
    marked = numpy.repeat(numpy.add.reduceat(marks != 0, first) > 0, lengths)  # (T,)
    starts = marks == 1
    starts[first] = True
    starts |= seeming_starts(docs[0].vocab, orth, starts) & ~marked
    return starts | (too_long(starts) & ~marked)


def seeming_starts(vocab: Vocab, orth: numpy.ndarray, first: numpy.ndarray) -> numpy.ndarray:
    """Tokens after one that ends a sentence.  (T,) bool

    orth: The words, as numbers.  (T,)
    first: Where documents begin.  (T,) bool
    """
    words, inverse = numpy.unique(orth, return_inverse=True)
    texts = [vocab.strings[word] for word in words.tolist()]
    ends = numpy.array([text in ENDS or bool(WORD_WITH_STOP.fullmatch(text)) for text in texts])
    ends = ends[inverse]  # (T,)
    starts = numpy.zeros(len(orth), dtype=bool)
    # Of several marks in a row the last one ends the sentence.
    for place in numpy.flatnonzero(ends[:-1] & ~ends[1:] & ~first[1:]).tolist():
        before, mark, after = texts[inverse[max(place - 1, 0)]], texts[inverse[place]], place + 1
        starts[after] = not mark.endswith(FULL_STOP) or opens(vocab, before, texts[inverse[after]])
    return starts


def opens(vocab: Vocab, before: str, after: str) -> bool:
    """Whether a word may open a sentence after a full stop: no number, word in lower case or comma
    does, and after a single letter (an initial, perhaps) only a function word."""
    word = vocab[after]
    if word.is_lower or word.is_digit or (word.is_punct and not (word.is_quote or word.is_bracket)):
        return False
    return word.is_stop or not (len(before) == 1 and before.isalpha())


def too_long(starts: numpy.ndarray) -> numpy.ndarray:
    """Further starts, so that no sentence has more than `LONGEST` tokens.  (T,) bool"""
    position = numpy.arange(len(starts))
    first = numpy.maximum.accumulate(numpy.where(starts, position, 0))
    return (position - first) % LONGEST == 0
