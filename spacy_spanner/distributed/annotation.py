"""The worker function of every engine: records in, annotated documents and rejects out."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..relations import doc_relations
from .records import Record

ENTS = "ents"  # the source of `doc.ents`, and the group our components keep their scores in
SCORES = "scores"
DIGITS = 4  # of a score: what lies beyond depends on the number of threads

Row = Dict[str, Any]


class Annotated(NamedTuple):
    """A record with its document, or without one and with the reason why."""

    record: Record
    doc: Optional[Doc]
    reason: Optional[str] = None


class Annotator:
    """Runs a pipeline over records. What fails is told, and stops nothing."""

    def __init__(self, nlp: Language, *, batch_size: int):
        self.nlp = nlp
        self.batch_size = batch_size
        self._errors: List[Exception] = []
        nlp.set_error_handler(self._note_error)  # type: ignore[arg-type]  # it may return

    def _note_error(self, name: str, pipe: Any, docs: List[Doc], error: Exception) -> None:
        self._errors.append(error)

    def __call__(self, records: Iterable[Record]) -> Iterator[Annotated]:
        """Batches are cut here, so that a result does not depend on the engine or on restarts."""
        for batch in minibatch(records, self.batch_size):
            yield from self._annotate(batch)

    def _annotate(self, batch: List[Record]) -> List[Annotated]:
        results = [self._start(record) for record in batch]
        docs = [result.doc for result in results if result.doc is not None]
        self._errors.clear()
        found = iter(list(self.nlp.pipe(docs, batch_size=self.batch_size)))
        if not self._errors:
            return [r if r.doc is None else r._replace(doc=next(found)) for r in results]
        # spaCy drops the whole batch of a component that failed: look for the bad one.
        return [r if r.doc is None else self._annotate_one(r.record) for r in results]

    def _start(self, record: Record) -> Annotated:
        if record.reason is not None:
            return Annotated(record, None, record.reason)
        try:
            return Annotated(record, record.make_doc(self.nlp))
        except ValueError as error:  # longer than `nlp.max_length`
            return Annotated(record, None, str(error))

    def _annotate_one(self, record: Record) -> Annotated:
        self._errors.clear()
        found = list(self.nlp.pipe([record.make_doc(self.nlp)]))
        if self._errors:
            error = self._errors[0]
            return Annotated(record, None, f"{type(error).__name__}: {error}")
        return Annotated(record, found[0])


def make_row(file: str, annotated: Annotated, *, sources: Sequence[str], relations: bool) -> Row:
    """What is written for a document, in plain values. Offsets are in characters, ends exclusive."""
    record, doc = annotated.record, annotated.doc
    assert doc is not None
    row: Row = {"file": file, "record": record.number, "text": doc.text}
    row["entities"] = entities_of(doc, sources)
    if relations:
        row["relations"] = relations_of(doc)
    row["meta"] = dict(record.meta)
    return row


def entities_of(doc: Doc, sources: Sequence[str]) -> List[Row]:
    """The spans of `doc.ents` and of all span groups, or of those named in `sources`."""
    entities = []
    scores = {
        key: score
        for group in doc.spans.values()
        for key, score in zip(map(span_key, group), group.attrs.get(SCORES, []))
    }
    if not sources or ENTS in sources:
        for ent in doc.ents:
            entities.append(entity(ent, scores.get(span_key(ent)), ENTS))
    for name in sorted(doc.spans):
        if name != ENTS and (not sources or name in sources):
            group = doc.spans[name]
            given = group.attrs.get(SCORES, [None] * len(group))
            entities += [entity(span, score, name) for span, score in zip(group, given)]
    return entities


def span_key(span: Span) -> tuple:
    return span.start, span.end, span.label


def entity(span: Span, score: Any, source: str) -> Row:
    return {**place(span), "score": rounded(score), "source": source}


def place(span: Span) -> Row:
    return {"start": span.start_char, "end": span.end_char, "label": span.label_}


def rounded(score: Any) -> Optional[float]:
    """None where nobody gave a score. A score may be an array of one number."""
    return None if score is None else round(float(getattr(score, "item", lambda: score)()), DIGITS)


def relations_of(doc: Doc) -> List[Row]:
    return [
        {
            "head": place(relation.head),
            "tail": place(relation.tail),
            "label": relation.label,
            "score": rounded(relation.score),
        }
        for relation in doc_relations(doc)
    ]
