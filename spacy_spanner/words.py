"""Word keys: one number for every written form, digits folded, case kept."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby, islice
from typing import Iterable, Iterator

import numpy
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc

DIGIT = re.compile(r"\d")
AT_ONCE = 256  # documents whose words are looked up together


def word_keys(docs: Iterable[Doc]) -> Iterator[numpy.ndarray]:
    """The keys of the tokens of each document.  (n,) int64 each"""
    for _, same in groupby(docs, key=lambda doc: id(doc.vocab)):
        while part := list(islice(same, AT_ONCE)):
            strings = part[0].vocab.strings
            orth = numpy.concatenate([doc.to_array(ORTH) for doc in part])  # (T,)
            words, inverse = numpy.unique(orth, return_inverse=True)
            keys = [word_key(strings[word]) for word in words.tolist()]
            table = numpy.array(keys, dtype="uint64").astype("int64")
            ends = numpy.cumsum([len(doc) for doc in part])[:-1]
            yield from numpy.split(table[inverse], ends)


@lru_cache(maxsize=1 << 16)  # most words of a text were in those before it
def word_key(text: str) -> int:
    """The key of a written form."""
    return get_string_id(DIGIT.sub("0", text))
