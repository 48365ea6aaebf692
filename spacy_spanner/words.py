"""Word keys: one number for every written form, digits folded, case kept."""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator

import numpy
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc

DIGIT = re.compile(r"\d")


def word_keys(docs: Iterable[Doc]) -> Iterator[numpy.ndarray]:
    """The keys of the tokens of each document.  (n,) int64 each"""
    known: Dict[int, int] = {}
    for doc in docs:
        words, inverse = numpy.unique(doc.to_array(ORTH), return_inverse=True)
        for word in words.tolist():
            if word not in known:
                known[word] = get_string_id(DIGIT.sub("0", doc.vocab.strings[word]))
        table = numpy.array([known[word] for word in words.tolist()], dtype="uint64")
        yield table[inverse].astype("int64")
