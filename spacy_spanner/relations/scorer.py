"""Scores of relations, named like spaCy's own: `rel_p/r/f/per_type` and `rel_boundary_p/r/f/per_type`."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Collection, Dict, Iterable

from spacy.scorer import PRFScore
from spacy.training import Example

from ..errors import Warnings
from ..scorers import score_span_table
from .records import get_relations, keyed_relations

RELATIONS_KEY = "relations"


def score_relation_table(
    examples: Iterable[Example],
    *,
    entities: str,
    output: str,
    spans_key: str,
    symmetric: Collection[str] = (),
    **_: Any,
) -> Dict:
    """Scores of relations and, where the component predicts them, of the entities.

    `rel_*` is strict: a relation is right if its label and, of both ends, offsets and entity label
    are. `rel_boundary_*` does not look at entity labels. Neither looks at the direction of labels in
    `symmetric`. Only documents whose relations are annotated count."""
    examples = list(examples)
    of_entities = score_span_table(examples, output=output, spans_key=spans_key)
    scores: Dict[str, Any] = {}
    if entities == "predict":
        scores.update(of_entities)
    annotated = [eg for eg in examples if get_relations(eg.reference) is not None]
    if examples and not annotated:
        warnings.warn(Warnings.SW23.format(n=len(examples)), stacklevel=2)
    for name, strict in [("rel", True), ("rel_boundary", False)]:
        total, per_type = PRFScore(), {}  # type: PRFScore, Dict[str, PRFScore]
        for example in annotated:
            pred, gold = (
                set(keyed_relations(doc, strict=strict, symmetric=symmetric) or ())
                for doc in (example.predicted, example.reference)
            )
            total.score_set(pred, gold)
            for label in {key[2] for key in pred | gold}:
                own = per_type.setdefault(label, PRFScore())
                own.score_set(
                    {key for key in pred if key[2] == label},
                    {key for key in gold if key[2] == label},
                )
        scores[f"{name}_p"] = total.precision if annotated else None
        scores[f"{name}_r"] = total.recall if annotated else None
        scores[f"{name}_f"] = total.fscore if annotated else None
        by_label = {label: own.to_dict() for label, own in sorted(per_type.items())}
        scores[f"{name}_per_type"] = by_label if annotated else None
    # `spacy evaluate` prints no names of its own: with `--spans-key relations` these.
    for part in ("p", "r", "f", "per_type"):
        scores.setdefault(f"spans_{RELATIONS_KEY}_{part}", scores[f"rel_{part}"])
    if annotated:
        table = "ents_per_type" if output == "ents" else f"spans_{spans_key}_per_type"
        scores[table] = {**(of_entities.get(table) or {}), **printed_rows(scores)}
    return scores


def printed_rows(scores: Dict[str, Any]) -> Dict[str, Dict[str, float]]:
    """Strict scores of all relations and of each label, for the table of entity labels: the only one
    that `spacy evaluate` prints line by line as it finds it."""
    rows = {"all relations": {part: scores[f"rel_{part}"] for part in "prf"}}
    for label, own in scores["rel_per_type"].items():
        rows[f"{label} (relation)"] = own
    return rows


def make_relation_table_scorer() -> Callable[..., Dict]:
    return score_relation_table
