"""Sentences that share a document id, joined to documents, so that an encoder sees what is around."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Union

from spacy.tokens import Doc, Span

from ..relations import StoredRelation, get_relations, set_relations
from .docs import DOC_ID


def join_docs(docs: Iterable[Doc]) -> Iterator[Doc]:
    """Documents in the order of their first sentences, with the boundaries of the sentences. What has
    no document id stays as it is."""
    parts: Dict[object, List[Doc]] = {}
    for number, doc in enumerate(docs):
        # a number is no id that a corpus gives, as those are texts
        parts.setdefault(doc.user_data.get(DOC_ID, number), []).append(doc)
    for key, sentences in parts.items():
        yield join(sentences) if isinstance(key, str) else sentences[0]


def join(parts: List[Doc]) -> Doc:
    words = [token.text for part in parts for token in part]
    starts: List[Union[bool, int, None]] = [token.i == 0 for part in parts for token in part]
    spaces = None
    if not any(part.has_unknown_spaces for part in parts):
        spaces = [
            bool(token.whitespace_) or token.i + 1 == len(part) for part in parts for token in part
        ]
    doc = Doc(parts[0].vocab, words=words, spaces=spaces, sent_starts=starts)
    spans: Dict[str, List[Span]] = {key: [] for part in parts for key in part.spans}
    ents: List[Span] = []
    relations: List[StoredRelation] = []
    first = 0
    for part in parts:
        for key, group in part.spans.items():
            spans[key] += [moved(doc, span, first) for span in group]
        ents += [moved(doc, ent, first) for ent in part.ents]
        relations += [
            r._replace(
                head_start=r.head_start + first,
                head_end=r.head_end + first,
                tail_start=r.tail_start + first,
                tail_end=r.tail_end + first,
            )
            for r in get_relations(part) or ()
        ]
        first += len(part)
    for key, group in spans.items():
        doc.spans[key] = group
    doc.set_ents(ents, default="outside")
    doc.user_data[DOC_ID] = parts[0].user_data[DOC_ID]
    if any(get_relations(part) is not None for part in parts):
        set_relations(doc, relations)
    return doc


def moved(doc: Doc, span: Span, first: int) -> Span:
    return Span(doc, span.start + first, span.end + first, label=span.label)
