"""Sentence boundaries: those set by a component of the pipeline, or else rule-based ones."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import List, Sequence, Tuple

import numpy
from spacy.attrs import ORTH, SENT_START
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc
from spacy.vocab import Vocab

# Quotation marks are counted over at most this many tokens.
REACH_OF_QUOTES = 128

FULL_STOP = "."
ENDS = frozenset(Sentencizer.default_punct_chars)
# A word or number that a tokenizer left the full stop at; short words are taken for abbreviations.
WORD_WITH_STOP = re.compile(r"([^\W\d_]{5,}|[a-z]{4,}|\d+)\.")
BLANK_LINE = re.compile(r"\s*\n\s*\n\s*")
ONE_SENTENCE = 48  # tokens of a document that is taken for one sentence
LONGEST = 128  # tokens of a sentence for a head; few sentences are longer, many lists and tables
QUOTE = '"'  # opens and closes
CLOSING = frozenset(")]}'’”»") | {"''"}  # noqa: RUF001


def marked_starts(doc: Doc) -> List[int]:
    """The first tokens of the sentences that were set; none where no boundary was. The first
    token's own value says nothing."""
    marks = doc.to_array(SENT_START)[1:]
    return [0, *(numpy.flatnonzero(marks == 1) + 1).tolist()] if marks.any() else []


def found_starts(doc: Doc) -> List[int]:
    """The first tokens of the sentences of a document without boundaries, by rules. A short one is a
    sentence: corpora come so, and rules would sometimes cut it."""
    if len(doc) <= ONE_SENTENCE:
        return [0]
    first = numpy.zeros(len(doc), dtype=bool)
    first[0] = True
    return numpy.flatnonzero(
        first | rule_based_starts(doc.vocab, doc.to_array(ORTH), first)
    ).tolist()


def sentence_starts(
    docs: Sequence[Doc], longest: int, whole: int = 0
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Which tokens of consecutive documents begin a sentence, and which are in documents whose
    boundaries are annotated; rules apply to the others.  (T,) bool each

    longest: Longer sentences are cut into even parts, marked or not. A text without full stops, such
        as a list or a table, would be one sentence for a component that goes by punctuation.
    whole: Documents of up to so many tokens are one sentence where nothing is marked."""
    docs = [doc for doc in docs if len(doc)]
    if not docs:
        return numpy.zeros(0, dtype=bool), numpy.zeros(0, dtype=bool)
    lengths = numpy.array([len(doc) for doc in docs])
    first = lengths.cumsum() - lengths  # (D,)
    orth, marks = numpy.concatenate([doc.to_array([ORTH, SENT_START]) for doc in docs]).T
    marks[first] = 0
    marked = numpy.repeat(numpy.add.reduceat(marks != 0, first) > 0, lengths)  # (T,)
    starts = marks == 1
    starts[first] = True
    ruled = ~marked & numpy.repeat(lengths > whole, lengths)  # (T,)
    starts |= rule_based_starts(docs[0].vocab, orth, starts) & ruled
    cut = cut_evenly(starts, longest)
    return cut, marked & (cut == starts)  # where a sentence was cut nobody marked a boundary


def rule_based_starts(vocab: Vocab, orth: numpy.ndarray, first: numpy.ndarray) -> numpy.ndarray:
    """Tokens after one that ends a sentence.  (T,) bool

    orth: The words, as numbers.  (T,)
    first: Where documents begin.  (T,) bool
    """
    words, inverse = numpy.unique(orth, return_inverse=True)
    texts = [vocab.strings[word] for word in words.tolist()]
    ends = numpy.array([ends_sentence(text) for text in texts])[inverse]  # (T,)
    quotes = numpy.array([text == QUOTE for text in texts])[inverse].cumsum()  # (T,)
    position = numpy.arange(len(orth))
    origin = numpy.maximum.accumulate(numpy.where(first, position, 0))  # (T,) of the document
    starts = numpy.zeros(len(orth), dtype=bool)
    begin = 0
    for place in numpy.flatnonzero(ends).tolist():
        begin = max(begin, int(origin[place]), place - REACH_OF_QUOTES)
        opened = int(quotes[place] - quotes[begin]) + (texts[inverse[begin]] == QUOTE)
        after = place + 1
        # Quotation marks and brackets that close belong to the sentence before them.
        while after < len(orth) and not first[after]:
            text = texts[inverse[after]]
            if text not in CLOSING and (text != QUOTE or opened % 2 == 0):
                break
            opened += text == QUOTE
            after += 1
        # Of several marks in a row the last one ends the sentence.
        if after == len(orth) or first[after] or ends[after]:
            continue
        sure = after == place + 1 and not texts[inverse[place]].endswith(FULL_STOP)
        before = "" if first[place] else texts[inverse[place - 1]]
        starts[after] = sure or opens(vocab, before, texts[inverse[after]])
        begin = after if starts[after] else begin
    return starts


@lru_cache(maxsize=1 << 16)  # most words of a text were in those before it
def ends_sentence(text: str) -> bool:
    return text in ENDS or bool(WORD_WITH_STOP.fullmatch(text) or BLANK_LINE.fullmatch(text))


def opens(vocab: Vocab, before: str, after: str) -> bool:
    """Whether a word may open a sentence after a full stop: no number, word in lower case or comma
    does, and after a single letter (an initial, perhaps) only a function word."""
    word = vocab[after]
    if word.is_lower or word.is_digit or (word.is_punct and not (word.is_quote or word.is_bracket)):
        return False
    return word.is_stop or not (len(before) == 1 and before.isalpha())


def cut_evenly(starts: numpy.ndarray, longest: int) -> numpy.ndarray:
    """Starts of sentences and of their parts of at most `longest` tokens.  (T,) bool -> (T,) bool"""
    first = numpy.flatnonzero(starts)  # (S,)
    lengths = numpy.diff(first, append=len(starts))
    parts = -(-lengths // longest)
    position = numpy.arange(len(starts)) - numpy.repeat(first, lengths)  # (T,) in the sentence
    size = numpy.repeat(-(-lengths // parts), lengths)
    return position % size == 0
