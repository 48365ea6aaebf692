"""How far the confidences of predicted spans are from how often they are right."""

from __future__ import annotations

from typing import Dict, List

import numpy
from spacy.tokens import Doc, Span

from spacy_spanner.analysis.scores import calibration
from spacy_spanner.corpus.docs import scored_spans
from spacy_spanner.span_scores import span_key


def calibration_scores(docs: List[Doc], predicted: List[Doc]) -> Dict[str, float]:
    """The expected calibration error in points, and what it would be by chance; nothing where no span
    has a confidence. Gold is compared by tokens, because documents made from words alone have other
    spaces."""
    scores: List[float] = []
    correct: List[bool] = []
    for gold_doc, pred_doc in zip(docs, predicted, strict=True):
        output = "spans" if "sc" in pred_doc.spans else "ents"
        gold = {
            span_key(Span(pred_doc, span.start, span.end, label=span.label_))
            for span in gold_doc.spans["sc"]
        }
        found = scored_spans(pred_doc, output=output, spans_key="sc") or {}
        known = {key: score for key, score in found.items() if score is not None}
        scores += known.values()
        correct += [key in gold for key in known]
    if not scores:
        return {}
    curve = calibration(numpy.array(scores), numpy.array(correct))
    parts = {"calibration_error": curve.error, "calibration_chance": curve.chance}
    return {name: round(100 * value, 2) for name, value in parts.items()}
