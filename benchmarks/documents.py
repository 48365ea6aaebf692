"""Sentences joined to documents: what an application hands over, while corpora come as sentences."""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_spanner.corpus.joining import join_docs

# Column of the tables -> sentences in a document, and whether its sentence starts are marked.
FORMS: Dict[str, Tuple[int, bool]] = {
    "10": (10, False),
    "10 marked": (10, True),
    "80": (80, False),
    "80 marked": (80, True),
}


def documents(docs: List[Doc], size: int) -> List[Doc]:
    """Documents of `size` consecutive ones each, sentence starts marked."""
    made = []
    for i in range(0, len(docs), size):
        part = docs[i : i + size]
        joined = join_docs(part)
        first = numpy.cumsum([0, *map(len, part)])[:-1].tolist()
        for token in joined:
            token.is_sent_start = token.i in first
        made.append(joined)
    return made


def to_predict(docs: List[Doc], vocab: Vocab, *, marked: bool) -> List[Doc]:
    """The same words without annotation, but sentence starts where `marked`."""
    made = []
    for doc in docs:
        starts = [bool(token.is_sent_start) for token in doc] if marked else None
        made.append(Doc(vocab, words=[token.text for token in doc], sent_starts=starts))
    return made
