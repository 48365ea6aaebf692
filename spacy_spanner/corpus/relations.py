"""Where relations live on a `Doc`: the one place that reads and writes them.

They are kept as plain lists of token offsets in `doc.user_data`, which survives `to_bytes`,
`to_disk` and `DocBin(store_user_data=True)`.
"""

from __future__ import annotations

from typing import Iterable, List, NamedTuple, Optional

from spacy.tokens import Doc

RELATIONS = "spanner_relations"
DOC_ID = "doc"


class Relation(NamedTuple):
    """A labelled link between two labelled spans, ends exclusive."""

    head_start: int
    head_end: int
    head_label: str
    tail_start: int
    tail_end: int
    tail_label: str
    label: str


def set_relations(doc: Doc, relations: Iterable[Relation]) -> None:
    """Replace the relations of a document; an empty list says that it has none."""
    doc.user_data[RELATIONS] = [list(relation) for relation in relations]


def get_relations(doc: Doc) -> Optional[List[Relation]]:
    """The relations of a document, None where they are not annotated."""
    stored = doc.user_data.get(RELATIONS)
    return None if stored is None else [Relation(*values) for values in stored]
