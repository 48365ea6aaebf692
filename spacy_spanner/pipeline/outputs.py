"""Predictions to documents: span groups with confidences, flat entities, or both."""

from __future__ import annotations

from typing import List, Sequence, Tuple

import numpy
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span, SpanGroup

from ..batch import SpanPrediction
from ..overlaps import RULES, choose
from ..span_scores import SCORES
from .scaling import log_odds


def trim(
    docs: Sequence[Doc], table: numpy.ndarray, scores: numpy.ndarray
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Spans, or relations of two, without white space at their edges, as spaCy's entities are. Corpora
    have little white space between tokens, so heads know little of it.

    table: Document, start and end of each span, label; sorted.  (N, 4), or (N, 6) of relations
    RETURNS: The table, and which rows of the old one are in it: of those that became equal the most
        probable one.
    """
    same = table, numpy.arange(len(table))
    if not len(table):
        return same
    space = numpy.concatenate([doc.to_array(IS_SPACE) for doc in docs]) > 0  # (T,)
    if not space.any():
        return same
    position = numpy.arange(len(space))
    word_after = numpy.minimum.accumulate(numpy.where(space, len(space), position)[::-1])[::-1]
    word_before = numpy.maximum.accumulate(numpy.where(space, -1, position))
    lengths = numpy.array([len(doc) for doc in docs])
    first = (lengths.cumsum() - lengths)[table[:, :1]]  # (N, 1)
    edges = table.copy()
    edges[:, 1:-1:2] = word_after[table[:, 1:-1:2] + first] - first
    edges[:, 2:-1:2] = word_before[table[:, 2:-1:2] + first - 1] + 1 - first
    if numpy.array_equal(edges, table):
        return same
    order = numpy.lexsort([-scores, *edges.T[::-1]])
    edges = edges[order]
    kept = numpy.all(edges[:, 1:-1:2] < edges[:, 2:-1:2], axis=1)  # (N,)
    kept[1:] &= numpy.any(edges[1:] != edges[:-1], axis=1)
    return edges[kept], order[kept]


def flatten_prediction(
    prediction: SpanPrediction, thresholds: numpy.ndarray, rule: str
) -> SpanPrediction:
    """The non-overlapping spans of each document."""
    return prediction.take(flat_choice(prediction, thresholds, rule))


def flat_choice(prediction: SpanPrediction, thresholds: numpy.ndarray, rule: str) -> numpy.ndarray:
    """Which spans to keep so that none overlap.  (N,) bool

    thresholds: (C,) one for each label. The weight of a span is its log-odds over its threshold;
        with a threshold of 0, where classes decide by themselves, that over no entity.
    rule: "best" (largest sum), "greedy" (most probable first) or "outermost" (longest first).
    """
    spans, scores = prediction.spans, prediction.scores
    # Documents one after the other on one line: their spans can then never meet.
    offset = spans[:, 0] * (int(spans[:, 2].max(initial=0)) + 1)
    weights = log_odds(scores)
    if rule == "best":
        threshold = thresholds[spans[:, 3]]  # (N,)
        margins = weights if prediction.margins is None else prediction.margins
        # Positive even where the head gives no probability of no entity.
        alone = numpy.maximum(margins, 1e-6 * scores)
        weights = numpy.where(threshold > 0, weights - log_odds(threshold), alone)
    return choose(spans[:, 1] + offset, spans[:, 2] + offset, weights, RULES[rule])


def write_spans(
    docs: Sequence[Doc], prediction: SpanPrediction, labels: Sequence[str], key: str
) -> List[List[Span]]:
    """Fill `doc.spans[key]`, also where nothing was found. `labels` are texts by number."""
    table = prediction.spans[:, 1:].tolist()
    written = []
    # A component that was taken from another pipeline has the vocab of that one.
    for vocab in {id(doc.vocab): doc.vocab for doc in docs}.values():
        hashes = [vocab.strings.add(label) for label in labels]
    for doc, part in zip(docs, prediction.per_doc(len(docs))):
        spans = [Span(doc, start, end, label=hashes[label]) for start, end, label in table[part]]
        attrs = {SCORES: prediction.scores[part].copy()}
        doc.spans[key] = SpanGroup(doc, name=key, attrs=attrs, spans=spans)
        written.append(spans)
    return written


def write_ents(docs: Sequence[Doc], flat: SpanPrediction, labels: Sequence[str], key: str) -> None:
    """Fill `doc.ents`, and the span group `key` with the same spans and their confidences."""
    for doc, spans in zip(docs, write_spans(docs, flat, labels, key)):
        doc.set_ents(spans, default="outside")
