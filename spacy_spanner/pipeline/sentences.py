"""Where sentences begin: as a component of the pipeline marked them, or else as it seems."""

from __future__ import annotations

import re
from typing import List

import numpy
from spacy.attrs import (
    IS_ALPHA,
    IS_BRACKET,
    IS_DIGIT,
    IS_LOWER,
    IS_PUNCT,
    IS_QUOTE,
    IS_STOP,
    LENGTH,
    ORTH,
    SENT_START,
)
from spacy.pipeline import Sentencizer
from spacy.strings import get_string_id
from spacy.tokens import Doc

# A stretch without an end of a sentence is not taken for a sentence beyond this many tokens.
LONGEST = 128

FLAGS = [IS_ALPHA, IS_BRACKET, IS_DIGIT, IS_LOWER, IS_PUNCT, IS_QUOTE, IS_STOP]
LONG_WORD = re.compile(r"[^\W\d_]{5,}\.")  # letters and a full stop
FULL_STOP = get_string_id(".")
ENDS = numpy.array([get_string_id(mark) for mark in Sentencizer.default_punct_chars], "uint64")


def is_marked(doc: Doc) -> bool:
    """Whether sentence boundaries were set; of the first token nothing can be told."""
    return bool(doc.to_array(SENT_START)[1:].any())


def marked_starts(doc: Doc) -> List[int]:
    """The first tokens of the sentences that were set."""
    marks = doc.to_array(SENT_START)[1:]
    return [0, *(numpy.flatnonzero(marks == 1) + 1).tolist()]


def sentence_starts(doc: Doc) -> numpy.ndarray:
    """Which tokens begin a sentence; unless that is marked, what looks like one.  (n,) bool"""
    starts = numpy.zeros(len(doc), dtype=bool)
    starts[:1] = True
    if is_marked(doc):
        starts[marked_starts(doc)] = True
    elif len(doc) > 1:
        starts[1:] = seeming_starts(doc)
        return bound_length(starts)
    return starts


def seeming_starts(doc: Doc) -> numpy.ndarray:
    """Tokens after a mark that ends sentences. A full stop does not end one before a number, a word
    in lower case or a comma, nor after a single letter unless a function word follows.
    (n - 1,) bool, from the second token on"""
    flags = dict(zip(FLAGS, doc.to_array(FLAGS).T.astype(bool), strict=True))  # (n,) each
    orth = doc.to_array(ORTH)
    stop = (orth == FULL_STOP) | words_with_stop(doc)
    ends = numpy.isin(orth, ENDS) | stop
    letter = numpy.r_[False, flags[IS_ALPHA][:-1] & (doc.to_array(LENGTH)[:-1] == 1)]
    goes_on = flags[IS_LOWER] | flags[IS_DIGIT]
    goes_on |= flags[IS_PUNCT] & ~flags[IS_QUOTE] & ~flags[IS_BRACKET]
    doubtful = goes_on[1:] | (letter[:-1] & ~flags[IS_STOP][1:])
    # Of several marks in a row the last one ends the sentence.
    return ends[:-1] & ~ends[1:] & ~(stop[:-1] & doubtful)


def words_with_stop(doc: Doc) -> numpy.ndarray:
    """Words that a tokenizer left the full stop at, such as "theater."; short ones are taken for
    abbreviations.  (n,) bool"""
    words, inverse = numpy.unique(doc.to_array(ORTH), return_inverse=True)
    texts = [doc.vocab.strings[word] for word in words.tolist()]
    return numpy.array([LONG_WORD.fullmatch(text) is not None for text in texts])[inverse]


def bound_length(starts: numpy.ndarray) -> numpy.ndarray:
    """Further starts, so that no sentence has more than `LONGEST` tokens.  (n,) bool"""
    position = numpy.arange(len(starts))
    first = numpy.maximum.accumulate(numpy.where(starts, position, 0))
    return (position - first) % LONGEST == 0
