"""Relations of a document: the one place that stores, reads and shows them.

They are kept as plain lists of token offsets in `doc.user_data`, which survives `to_bytes`, `to_disk`
and `DocBin(store_user_data=True)`; `doc._.relations` and `span._.relations` are views with spans. Each
list ends with the number of tokens of its document, as nothing else shows that tokens were changed.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import Errors
from ..span_scores import SpanKey, register_view, span_key

RELATIONS = "spanner_relations"  # the entry of `doc.user_data`
EXTENSION, PLAIN_EXTENSION = "relations", "plain_relations"
RelationKey = Tuple[SpanKey, SpanKey, str]  # head, tail, label


class StoredRelation(NamedTuple):
    """A labelled link between two labelled spans in numbers, ends exclusive."""

    head_start: int
    head_end: int
    head_label: str
    tail_start: int
    tail_end: int
    tail_label: str
    label: str
    score: Optional[float] = None

    def shifted(self, by: int) -> StoredRelation:
        """The same relation where its document begins `by` tokens later."""
        ends = ("head_start", "head_end", "tail_start", "tail_end")
        return self._replace(**{end: getattr(self, end) + by for end in ends})


N_FIELDS = len(StoredRelation._fields)


class Relation(NamedTuple):
    """A labelled link from one span to another."""

    head: Span
    tail: Span
    label: str
    score: Optional[float] = None  # 0..1; None where there is none, as in gold

    def stored(self) -> StoredRelation:
        head, tail = self.head, self.tail
        return StoredRelation(
            *(head.start, head.end, head.label_),
            *(tail.start, tail.end, tail.label_),
            self.label,
            self.score,
        )

    def to_dict(self) -> Dict[str, Any]:
        """The plain form, for JSON: token offsets, ends exclusive."""
        ends = {
            name: {"start": span.start, "end": span.end, "label": span.label_, "text": span.text}
            for name, span in [("head", self.head), ("tail", self.tail)]
        }
        return {**ends, "label": self.label, "score": self.score}


def from_dict(doc: Doc, values: Dict[str, Any]) -> Relation:
    """The inverse of `Relation.to_dict`; the texts in it are not read."""
    try:
        head, tail = (
            Span(doc, values[name]["start"], values[name]["end"], label=values[name]["label"])
            for name in ("head", "tail")
        )
        return Relation(head, tail, values["label"], values.get("score"))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(Errors.S261.format(found=values, reason=repr(error))) from error


def set_relations(doc: Doc, relations: Iterable[StoredRelation]) -> None:
    """Replace the relations of a document; an empty list says that it has none."""
    doc.user_data[RELATIONS] = [[*relation, len(doc)] for relation in relations]


def get_relations(doc: Doc) -> Optional[List[StoredRelation]]:
    """The relations of a document, None where they are not annotated."""
    stored = doc.user_data.get(RELATIONS)
    if stored is None:
        return None
    found = [StoredRelation(*values[:N_FIELDS]) for values in stored]
    # Earlier versions stored no number of tokens; what was stored may have become tuples.
    lengths = {length for values in stored for length in values[N_FIELDS:]}
    ends = [end for relation in found for end in (relation.head_end, relation.tail_end)]
    if lengths - {len(doc)} or max(ends, default=0) > len(doc):
        raise ValueError(Errors.S260.format(text=doc.text[:50]))
    return found


def doc_relations(doc: Doc) -> List[Relation]:
    """`doc._.relations`: the relations with their spans; none where nothing is annotated."""
    return [
        Relation(
            Span(doc, stored.head_start, stored.head_end, label=stored.head_label),
            Span(doc, stored.tail_start, stored.tail_end, label=stored.tail_label),
            stored.label,
            stored.score,
        )
        for stored in get_relations(doc) or []
    ]


def keyed_relations(
    doc: Doc, *, strict: bool = True, symmetric: Collection[str] = ()
) -> Optional[Dict[RelationKey, Relation]]:
    """The relations of a document by what has to be equal for one to be correct. None where the
    document has no annotation of relations.

    strict: The labels of both ends count too.
    symmetric: Labels of relations whose direction does not count.
    """
    if get_relations(doc) is None:
        return None

    def end(span: Span) -> SpanKey:
        start, stop, label = span_key(span)
        return start, stop, label if strict else ""

    keyed = {}
    for relation in doc_relations(doc):
        head, tail = end(relation.head), end(relation.tail)
        if relation.label in symmetric:
            head, tail = sorted((head, tail))
        keyed[head, tail, relation.label] = relation
    return keyed


def symmetric_labels(nlp: Language) -> Set[str]:
    """Labels of relations whose direction does not count for a pipeline."""
    settings = [getattr(pipe, "cfg", None) for _, pipe in nlp.pipeline]
    found = [cfg.get("symmetric", ()) for cfg in settings if isinstance(cfg, dict)]
    return {label for labels in found for label in labels}


def set_doc_relations(doc: Doc, relations: Iterable[Union[Relation, Dict[str, Any]]]) -> None:
    """`doc._.relations = ...`: takes records or their plain forms."""
    records = [from_dict(doc, r) if isinstance(r, dict) else r for r in relations]
    for record in records:
        if not isinstance(record, Relation):
            raise ValueError(Errors.S261.format(found=record, reason="it is no Relation"))
        for span in (record.head, record.tail):
            if not len(span):
                raise ValueError(Errors.S261.format(found=record, reason="an end has no token"))
            if span.doc is not doc and span.doc.text != doc.text:
                reason = "an end is a span of another document"
                raise ValueError(Errors.S261.format(found=record, reason=reason))
    set_relations(doc, [record.stored() for record in records])


def span_relations(span: Span) -> List[Relation]:
    """`span._.relations`: those whose head or tail covers exactly the tokens of the span."""
    place = (span.start, span.end)
    return [
        relation
        for relation in doc_relations(span.doc)
        if place in [(end.start, end.end) for end in (relation.head, relation.tail)]
    ]


def plain_relations(doc: Doc) -> List[Dict[str, Any]]:
    """`doc._.plain_relations`: the plain forms, for `doc.to_json`."""
    return [relation.to_dict() for relation in doc_relations(doc)]


def register_extensions() -> None:
    """Make `doc._.relations`, `doc._.plain_relations` and `span._.relations`. A component that finds
    relations does it when it is made; without one, call this first. Extensions of that name by others
    are left alone."""
    register_view(Doc, EXTENSION, doc_relations, set_doc_relations)
    register_view(Doc, PLAIN_EXTENSION, plain_relations, set_doc_relations)
    register_view(Span, EXTENSION, span_relations)
