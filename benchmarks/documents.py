"""Sentences joined to documents: what an application hands over, while corpora come as sentences."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Tuple

import numpy
from spacy.language import Language
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


def running_text(nlp: Language, sentences: List[Doc], *, docs: int, tokens: int) -> Dict[str, Any]:
    """Long documents of running text beside the same sentences one by one: found spans per token of
    the first over that of the second, and the widest span."""
    chosen = itertools.cycle(sentences)
    alone, joined = [], []
    for _ in range(docs):
        part: List[Doc] = []
        while sum(map(len, part)) < tokens:
            part.append(next(chosen))
        words = [token.text for doc in part for token in doc]
        joined.append(Doc(nlp.vocab, words=words[:tokens]))
        alone += part
    rates, widest = [], 0
    for texts in (joined, to_predict(alone, nlp.vocab, marked=False)):
        n_spans = n_tokens = 0
        for doc in nlp.pipe(texts, batch_size=8):
            spans = list(doc.spans.get("sc", doc.ents))
            n_spans, n_tokens = n_spans + len(spans), n_tokens + len(doc)
            widest = max(widest, max(map(len, spans), default=0))
        rates.append(n_spans / n_tokens)
    return {"docs": docs, "tokens": tokens, "rate": round(rates[0] / rates[1], 3), "widest": widest}
