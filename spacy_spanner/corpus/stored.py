"""spaCy's own `.spacy` files: entities of `doc.ents` become spans, everything else is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, List

from spacy.tokens import Doc
from spacy.vocab import Vocab

from .docs import gold_spans, read_docs
from .record import Place, RawSpan, ReadOptions, Record, checked_span, left_out

UNANNOTATED = "documents without annotated entities"
PARTLY = (
    "documents with missing entity annotation on some tokens (train on their doc.ents directly)"
)
OTHER_GROUPS = "span groups under other keys ({keys}; name one with --spans-key)"


def read_stored(path: Path, options: ReadOptions) -> Iterator[Record]:
    """Documents with the named span group where they have it, else with their entities."""
    for number, doc in enumerate(read_docs(path, Vocab()), start=1):
        yield stored_record(Place(path, number, "document"), doc, options.spans_key)


def stored_record(place: Place, doc: Doc, spans_key: str) -> Record:
    output = "spans" if spans_key in doc.spans else "ents"
    found = gold_spans(doc, output=output, spans_key=spans_key)
    if found is None:
        return left_out(place, UNANNOTATED)
    if output == "ents" and any(token.ent_iob == 0 for token in doc):
        return left_out(place, PARTLY)
    spans: List[RawSpan] = [
        checked_span(place, *span, length=len(doc), unit="token") for span in found
    ]
    keys = ", ".join(sorted(doc.spans))
    others = {OTHER_GROUPS.format(keys=keys): len(doc.spans)} if output == "ents" and keys else {}
    return Record(place, spans=spans, doc=doc, skipped=others)
