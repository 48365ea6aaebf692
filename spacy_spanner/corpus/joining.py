"""Several documents as one: corpora come as sentences, while applications hand over documents."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Sequence

from spacy.attrs import ENT_IOB
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..relations import get_relations, set_relations
from ..sentences import marked_starts
from .docs import DOC_ID


def concatenate(docs: Sequence[Doc], **options: Any) -> Doc:
    """`Doc.from_docs`, whose type stub lacks an option and thinks that it may give None."""
    joined: Any = Doc.from_docs
    return joined(list(docs), **options)


def join_docs(docs: Sequence[Doc]) -> Doc:
    """One document of consecutive ones: tokens, annotation, span groups and relations.

    Documents must be annotated alike (see `annotation_of`): an absent span group would otherwise
    turn into an empty one."""
    joined = concatenate(docs, exclude=["user_data", "tensor", "spans"])
    # Where texts are not known, spaCy takes the words of training data as they are.
    joined.has_unknown_spaces = any(doc.has_unknown_spaces for doc in docs)
    relations, offset = [], 0
    for doc in docs:
        relations += [relation.shifted(offset) for relation in get_relations(doc) or []]
        for key, group in doc.spans.items():
            moved = [shifted(span, joined, offset) for span in group]
            joined.spans.setdefault(key, []).extend(moved)
        offset += len(doc)
    if any(get_relations(doc) is not None for doc in docs):
        set_relations(joined, relations)
    ids = {doc.user_data.get(DOC_ID) for doc in docs}
    if len(ids) == 1 and None not in ids:
        joined.user_data[DOC_ID] = ids.pop()
    return joined


def shifted(span: Span, doc: Doc, offset: int) -> Span:
    """A span in a longer document. spaCy moves spans by characters, and refuses those without tokens."""
    start, end = span.start + offset, span.end + offset
    return Span(doc, start, end, label=span.label, kb_id=span.kb_id, span_id=span.id)


def join_by_id(docs: Iterable[Doc]) -> Iterator[Doc]:
    """Documents of the sentences that share a document id, in the order of their first sentences and
    with the boundaries of the sentences. What has no id stays as it is."""
    parts: Dict[object, List[Doc]] = {}
    for number, doc in enumerate(docs):
        # A number is no id that a corpus gives, as those are texts.
        parts.setdefault(doc.user_data.get(DOC_ID, number), []).append(doc)
    for key, sentences in parts.items():
        if not isinstance(key, str):
            yield sentences[0]
            continue
        joined = join_docs(sentences)
        if not any(marked_starts(doc) for doc in sentences):
            for token in joined:
                token.is_sent_start = bool(token.is_sent_start)  # no other than the first tokens
        yield joined


def join_examples(examples: Sequence[Example]) -> Example:
    """One example of consecutive ones. The predicted side keeps its tokens and nothing else."""
    tokens: List[Doc] = [eg.predicted for eg in examples]
    predicted = concatenate(tokens, attrs=["ORTH"], exclude=["spans", "tensor", "user_data"])
    return Example(predicted, join_docs([eg.reference for eg in examples]))


def annotation_of(doc: Doc) -> Any:
    """The kinds of annotation that a document has, also where they are empty."""
    entities = bool((doc.to_array(ENT_IOB) != 0).any())
    return sorted(doc.spans), entities, get_relations(doc) is not None


def neighbours(examples: Iterable[Example], *, max_tokens: int) -> Iterator[List[Example]]:
    """Runs of consecutive examples that may be joined: annotated alike, and no more than
    `max_tokens` in all. In most corpora these are sentences of one document."""
    run: List[Example] = []
    size, kind = 0, None
    for example in examples:
        own_kind = annotation_of(example.reference)
        length = max(len(example.predicted), len(example.reference))
        if run and (own_kind != kind or size + length > max_tokens):
            yield run
            run, size = [], 0
        run.append(example)
        size, kind = size + length, own_kind
    if run:
        yield run
