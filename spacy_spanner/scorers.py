"""Scores in spaCy's own names: `spans_<key>_p/r/f/per_type` and `ents_p/r/f/per_type`."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable

from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc
from spacy.training import Example


def score_span_table(examples: Iterable[Example], *, output: str, spans_key: str, **_: Any) -> Dict:
    """Exact-match scores of what a component with this `output` writes."""
    examples = list(examples)
    scores: Dict[str, Any] = {}
    if output in ("spans", "both"):
        prefix = "spans_"

        def get_spans(doc: Doc, attr: str) -> Iterable:
            return doc.spans.get(attr[len(prefix) :], [])

        scores.update(
            Scorer.score_spans(
                examples,
                f"{prefix}{spans_key}",
                getter=get_spans,
                has_annotation=lambda doc: spans_key in doc.spans,
                allow_overlap=True,
                labeled=True,
            )
        )
    if output in ("ents", "both"):
        scores.update(get_ner_prf(examples))
    return scores


def make_span_table_scorer() -> Callable[..., Dict]:
    return score_span_table
