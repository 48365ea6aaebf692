"""Scores in spaCy's own names, `spans_<key>_p/r/f/per_type` and `ents_p/r/f/per_type`, and likewise
`rel_...` and `rel_boundary_...` for relations."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Set

from spacy.scorer import PRFScore, Scorer, get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example

from .relations import doc_relations, get_relations

RELATIONS_KEY = "relations"


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


def score_relation_table(
    examples: Iterable[Example], *, entities: str, output: str, spans_key: str, **_: Any
) -> Dict:
    """Scores of relations and, where the component predicts them, of the entities.

    `rel_*` is strict: a relation is right if its label and, of both ends, offsets and entity label
    are. `rel_boundary_*` does not look at entity labels. Only documents whose relations are
    annotated count."""
    examples = list(examples)
    scores: Dict[str, Any] = {}
    if entities == "predict":
        scores.update(score_span_table(examples, output=output, spans_key=spans_key))
    annotated = [eg for eg in examples if get_relations(eg.reference) is not None]
    for name, strict in [("rel", True), ("rel_boundary", False)]:
        total, per_type = PRFScore(), {}  # type: PRFScore, Dict[str, PRFScore]
        for example in annotated:
            pred = relation_keys(example.predicted, strict=strict)
            gold = relation_keys(example.reference, strict=strict)
            total.score_set(pred, gold)
            for label in {key[0] for key in pred | gold}:
                own = per_type.setdefault(label, PRFScore())
                own.score_set(
                    {key for key in pred if key[0] == label},
                    {key for key in gold if key[0] == label},
                )
        scores[f"{name}_p"] = total.precision if annotated else None
        scores[f"{name}_r"] = total.recall if annotated else None
        scores[f"{name}_f"] = total.fscore if annotated else None
        by_label = {label: own.to_dict() for label, own in sorted(per_type.items())}
        scores[f"{name}_per_type"] = by_label if annotated else None
    # `spacy evaluate` prints the scores of a spans key, and no names of its own: under this one it
    # shows the strict scores of relations.
    for part in ("p", "r", "f", "per_type"):
        scores.setdefault(f"spans_{RELATIONS_KEY}_{part}", scores[f"rel_{part}"])
    return scores


def relation_keys(doc: Doc, *, strict: bool) -> Set[tuple]:
    """What of the relations has to be right, in characters: the two sides may differ in tokens."""

    def end(span: Span) -> tuple:
        return span.start_char, span.end_char, span.label_ if strict else ""

    return {(r.label, end(r.head), end(r.tail)) for r in doc_relations(doc)}


def make_relation_table_scorer() -> Callable[..., Dict]:
    return score_relation_table
