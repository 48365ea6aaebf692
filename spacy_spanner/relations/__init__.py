"""Relations between spans: records on documents, and the component that finds them.

What a program needs is here; the component and what it is made of are in modules of their own, which are
imported when a pipeline has one.
"""

from .records import (
    Relation,
    StoredRelation,
    doc_relations,
    from_dict,
    get_relations,
    keyed_relations,
    plain_relations,
    register_extensions,
    set_doc_relations,
    set_relations,
    span_relations,
    symmetric_labels,
)

__all__ = [
    "Relation",
    "StoredRelation",
    "doc_relations",
    "from_dict",
    "get_relations",
    "keyed_relations",
    "plain_relations",
    "register_extensions",
    "set_doc_relations",
    "set_relations",
    "span_relations",
    "symmetric_labels",
]
