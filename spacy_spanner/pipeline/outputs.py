"""Predictions to documents: span groups with confidences, flat entities, or both."""

from __future__ import annotations

from typing import List, Sequence

import numpy
from spacy.tokens import Doc, Span, SpanGroup

from ..batch import SpanPrediction
from ..overlaps import RULES, choose
from ..span_scores import SCORES


def log_odds(scores: numpy.ndarray) -> numpy.ndarray:
    clipped = numpy.clip(scores.astype("float64"), 1e-7, 1 - 1e-7)
    return numpy.log(clipped) - numpy.log1p(-clipped)


def calibrate(scores: numpy.ndarray, temperature: float) -> numpy.ndarray:
    """`sigmoid(log-odds / temperature)` of scores or thresholds. 0, the threshold that lets everything
    through, stays 0."""
    if temperature == 1:
        return scores
    warmed = 1 / (1 + numpy.exp(-log_odds(scores) / temperature))
    return numpy.where(scores > 0, warmed, 0.0).astype(scores.dtype)


def raw_thresholds(thresholds: numpy.ndarray, temperature: float) -> numpy.ndarray:
    """Thresholds for uncalibrated scores, from thresholds for calibrated ones: the inverse of
    `calibrate`. 1, the threshold that lets nothing through, stays 1."""
    return numpy.where(thresholds < 1, calibrate(thresholds, 1 / temperature), thresholds)


def flatten_prediction(
    prediction: SpanPrediction, thresholds: numpy.ndarray, rule: str
) -> SpanPrediction:
    """The non-overlapping spans of each document."""
    keep = flat_choice(prediction, thresholds, rule)
    return SpanPrediction(prediction.spans[keep], prediction.scores[keep])


def flat_choice(prediction: SpanPrediction, thresholds: numpy.ndarray, rule: str) -> numpy.ndarray:
    """Which spans to keep so that none overlap.  (N,) bool

    thresholds: (C,) one for each label. The weight of a span is its log-odds over its threshold;
        with a threshold of 0, where classes decide by themselves, that over no entity.
    rule: "best" (largest sum) or "greedy" (most probable first).
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
