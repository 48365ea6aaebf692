"""Where sentences begin: as a component of the pipeline marked them, or else as it seems."""

from __future__ import annotations

from typing import List

import numpy
from spacy.attrs import IS_LOWER, LENGTH, LIKE_NUM, ORTH, SENT_START
from spacy.pipeline import Sentencizer
from spacy.strings import get_string_id
from spacy.tokens import Doc

# A stretch without an end of a sentence is not taken for a sentence beyond this many tokens.
LONGEST = 128

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
    """Tokens after a mark that ends sentences. A full stop does not after a single letter, or before
    a number or a word in lower case.  (n - 1,) bool, from the second token on"""
    orth = doc.to_array(ORTH)
    ends = numpy.isin(orth, ENDS)
    lower, number = doc.to_array([IS_LOWER, LIKE_NUM]).T.astype(bool)
    letter = numpy.r_[False, doc.to_array(LENGTH)[:-1] == 1]  # one character before it
    doubtful = (orth == FULL_STOP)[:-1] & (lower[1:] | number[1:] | letter[:-1])
    # Of several marks in a row the last one ends the sentence.
    return ends[:-1] & ~ends[1:] & ~doubtful


def bound_length(starts: numpy.ndarray) -> numpy.ndarray:
    """Further starts, so that no sentence has more than `LONGEST` tokens.  (n,) bool"""
    position = numpy.arange(len(starts))
    first = numpy.maximum.accumulate(numpy.where(starts, position, 0))
    return (position - first) % LONGEST == 0
