"""The factory of the relation component; like `factories`, it imports no model."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from spacy.language import Language
from thinc.api import Model

from .factories import SETTINGS, TOK2VEC
from .relations import RelationPipe

SHARED = (
    *("spans_key", "ents_key", "window", "overlap", "pack_sentences"),
    *("join_training", "width_factor", "max_cells"),
)
DEFAULTS: Dict[str, Any] = {
    "model": {"@architectures": "spacy-spanner.RelationPointer.v1", "tok2vec": dict(TOK2VEC)},
    "entities": "predict",
    "output": None,
    **{name: SETTINGS[name] for name in SHARED},
    "threshold": 0.5,
    "relation_threshold": 0.5,
    "scorer": {"@scorers": "spacy-spanner.relation_table_scorer.v1"},
}


@Language.factory(
    "global_pointer_relations",
    assigns=["doc._.relations", "span._.relations"],
    default_config=DEFAULTS,
    default_score_weights={
        "rel_f": 1.0,
        "rel_p": 0.0,
        "rel_r": 0.0,
        "rel_boundary_f": 0.0,
        "rel_per_type": None,
        "rel_boundary_per_type": None,
    },
)
def make_global_pointer_relations(
    nlp: Language,
    name: str,
    model: Model,
    entities: str,
    output: Optional[str],
    spans_key: str,
    ents_key: str,
    threshold: float,
    relation_threshold: float,
    window: int,
    overlap: int,
    pack_sentences: bool,
    join_training: float,
    width_factor: Optional[float],
    max_cells: int,
    scorer: Optional[Callable],
) -> RelationPipe:
    return RelationPipe(
        nlp.vocab,
        model,
        name,
        entities=entities,
        output=output,
        spans_key=spans_key,
        ents_key=ents_key,
        threshold=threshold,
        relation_threshold=relation_threshold,
        window=window,
        overlap=overlap,
        pack_sentences=pack_sentences,
        join_training=join_training,
        width_factor=width_factor,
        max_cells=max_cells,
        scorer=scorer,
    )
