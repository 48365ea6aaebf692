"""The factory of the relation component; like `pipeline.factories`, it imports no model."""

from __future__ import annotations

from ..pipeline.factories import register
from .component import RelationPipe

make_global_pointer_relations = register(
    "global_pointer_relations",
    RelationPipe,
    architecture="spacy-spanner.RelationPointer.v1",
    scorer="spacy-spanner.relation_table_scorer.v1",
    assigns=["doc._.relations", "span._.relations"],
    weights={
        "rel_f": 1.0,
        "rel_p": 0.0,
        "rel_r": 0.0,
        "rel_boundary_f": 0.0,
        "rel_per_type": None,
        "rel_boundary_per_type": None,
    },
)
