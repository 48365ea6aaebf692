"""Gold and predicted spans of a corpus as arrays: what every analysis reads.

Legend: D documents, N spans, G gold spans, P predicted spans. Spans are compared by characters, so
gold and predictions may be tokenized differently; lengths are counted in tokens of the gold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Dict, FrozenSet, List, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from .marks import Key, doc_spans

DOC, START, END, LABEL = range(4)  # columns of a span table


@dataclass(frozen=True)
class SpanSet:
    """Distinct spans, sorted by document, start, end and label."""

    spans: numpy.ndarray  # (N, 4) int64: document, start, end (characters, exclusive), label
    tokens: numpy.ndarray  # (N, 2) int64: the gold tokens it touches, end exclusive
    scores: numpy.ndarray  # (N,) float64 in 0..1; nan where there is none

    def __len__(self) -> int:
        return len(self.spans)


@dataclass(frozen=True)
class Corpus:
    """The annotated documents of a gold file."""

    docs: List[Doc]
    labels: List[str]  # names by number; also those that only predictions have
    gold: SpanSet
    embedded: Optional[FrozenSet[str]] = None  # words that have a vector; None: no vectors

    @cached_property
    def n_tokens(self) -> numpy.ndarray:
        """(D,)"""
        return numpy.array([len(doc) for doc in self.docs], dtype="int64")

    @cached_property
    def words(self) -> List[List[str]]:
        return [[token.text for token in doc] for doc in self.docs]

    @cached_property
    def texts(self) -> List[str]:
        return [doc.text for doc in self.docs]


@dataclass(frozen=True)
class System:
    """What one system found in a corpus, and what of it is right."""

    name: str
    corpus: Corpus
    pred: SpanSet
    found: numpy.ndarray = field(repr=False)  # (G,) bool: gold spans that were predicted
    correct: numpy.ndarray = field(repr=False)  # (P,) bool: predicted spans that are gold


def read_systems(
    names: Sequence[str],
    preds: Sequence[Sequence[Doc]],
    golds: Sequence[Doc],
    *,
    output: str,
    spans_key: str,
) -> List[System]:
    """Systems that predicted the same documents. Documents without gold annotation are left out.

    output: "spans" compares `doc.spans[spans_key]`, "ents" compares `doc.ents`.
    """
    annotated = [doc_spans(gold, output=output, spans_key=spans_key) for gold in golds]
    use = [i for i, spans in enumerate(annotated) if spans is not None]
    docs = [golds[i] for i in use]
    ids: Dict[str, int] = {}
    gold_set = span_set(docs, [annotated[i] or {} for i in use], ids)
    pred_sets = []
    for system_docs in preds:
        found = [doc_spans(system_docs[i], output=output, spans_key=spans_key) for i in use]
        pred_sets.append(span_set(docs, [spans or {} for spans in found], ids))
    embedded = words_with_vectors(docs, [preds[0][i] for i in use]) if preds else None
    corpus = Corpus(docs, list(ids), gold_set, embedded)
    return [match(name, corpus, pred) for name, pred in zip(names, pred_sets, strict=True)]


def match(name: str, corpus: Corpus, pred: SpanSet) -> System:
    """Compare predictions with gold: the same characters and the same label."""
    found = contained(corpus.gold.spans, pred.spans)
    correct = contained(pred.spans, corpus.gold.spans)
    return System(name, corpus, pred, found, correct)


def contained(rows: numpy.ndarray, others: numpy.ndarray) -> numpy.ndarray:
    """Which rows are among the others.  (N,) bool"""
    known = set(map(tuple, others.tolist()))
    return numpy.array([tuple(row) in known for row in rows.tolist()], dtype=bool)


def span_set(
    docs: Sequence[Doc], spans: Sequence[Dict[Key, Optional[float]]], ids: Dict[str, int]
) -> SpanSet:
    """Spans of documents as arrays; labels that `ids` does not know are added to it."""
    rows: List[Tuple[int, int, int, int]] = []
    scores: List[float] = []
    tokens = []
    for number, (doc, own) in enumerate(zip(docs, spans, strict=True)):
        found = sorted(
            (start, end, ids.setdefault(label, len(ids)), numpy.nan if score is None else score)
            for (start, end, label), score in own.items()
        )
        rows += [(number, start, end, label) for start, end, label, _ in found]
        scores += [score for *_, score in found]
        tokens.append(touched_tokens(doc, [row[:2] for row in found]))
    return SpanSet(
        numpy.array(rows, dtype="int64").reshape(-1, 4),
        numpy.concatenate([numpy.zeros((0, 2), "int64"), *tokens]),
        numpy.array(scores, dtype="float64"),
    )


def touched_tokens(doc: Doc, spans: Sequence[Tuple[int, int]]) -> numpy.ndarray:
    """The tokens of a document that stretches of characters touch.  (N, 2)"""
    begins = numpy.array([token.idx for token in doc], dtype="int64")
    bounds = numpy.array(spans, dtype="int64").reshape(-1, 2)
    first = numpy.searchsorted(begins, bounds[:, 0], side="right") - 1
    last = numpy.searchsorted(begins, bounds[:, 1], side="left")
    return numpy.stack([first, last], axis=1)


def words_with_vectors(docs: Sequence[Doc], preds: Sequence[Doc]) -> Optional[FrozenSet[str]]:
    """Words of the documents that the predicting pipeline has vectors for, as they are or in lower
    case; None where it has no vectors."""
    if not preds or not preds[0].vocab.vectors_length:
        return None
    vocab = preds[0].vocab
    words = {token.text for doc in docs for token in doc}
    return frozenset(w for w in words if vocab.has_vector(w) or vocab.has_vector(w.lower()))
