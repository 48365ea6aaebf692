"""Records to `Doc`, counting what was found and what could not be kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..overlaps import outermost
from ..relations import StoredRelation, set_relations
from .docs import DOC_ID
from .nesting import nesting
from .record import RawSpan, Record

N_EXAMPLES = 5  # misaligned spans shown by name


@dataclass
class Summary:
    """Counts over the documents of one output file."""

    docs: int = 0
    tokens: int = 0
    spans: int = 0
    nested: int = 0
    relations: int = 0
    duplicates: int = 0  # the same offsets and label twice: kept once
    misaligned: int = 0  # character spans that do not end where tokens end
    dropped: int = 0  # those of them that the alignment mode could not place
    lost_relations: int = 0  # relations to dropped spans
    labels: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    examples: List[str] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)  # of whole files


def build_doc(
    record: Record, *, nlp: Language, spans_key: str, alignment_mode: str, summary: Summary
) -> Doc:
    """A document with `doc.spans[spans_key]` (also where empty: looked at, nothing there),
    `doc.ents` (the outermost spans that do not overlap), relations and the document id. A stored
    document keeps the annotation that it has."""
    doc = make_doc(record, nlp)
    placed = [to_tokens(record, doc, span, alignment_mode, summary) for span in record.spans]
    unique = sorted(
        {span for span in placed if span is not None}, key=lambda s: (s[0], -s[1], s[2])
    )
    spans = [Span(doc, start, end, label=label) for start, end, label in unique]
    if spans_key not in doc.spans:
        doc.spans[spans_key] = spans
    if not doc.has_annotation("ENT_IOB"):
        set_outermost_ents(doc, spans)
    if record.doc_id is not None:
        doc.user_data[DOC_ID] = record.doc_id
    if record.relations is not None:
        add_relations(doc, record.relations, placed, summary)
    summary.docs += 1
    summary.tokens += len(doc)
    summary.spans += len(spans)
    summary.nested += sum(nesting([span[:2] for span in unique]).nested)
    summary.duplicates += sum(span is not None for span in placed) - len(unique)
    summary.labels.update(label for _, _, label in unique)
    summary.skipped.update(record.skipped)
    if record.warning is not None:
        summary.warnings.append(record.warning)
    return doc


def make_doc(record: Record, nlp: Language) -> Doc:
    if record.doc is not None:
        return record.doc
    if record.text is not None:
        if len(record.text) > nlp.max_length:
            record.place.fail(
                f"the text has {len(record.text):,} characters, more than the {nlp.max_length:,} that "
                "spaCy takes; split it into several documents"
            )
        return nlp.make_doc(record.text)
    # no `spaces`: spaCy then knows that they are unknown, and trains on these tokens
    return Doc(nlp.vocab, words=record.words)


def to_tokens(
    record: Record, doc: Doc, span: RawSpan, alignment_mode: str, summary: Summary
) -> Optional[RawSpan]:
    """Token offsets of a span. One that ends within a token is counted, then placed by the
    alignment mode where that is possible."""
    if record.text is None:
        return span
    start, end, label = span
    found = doc.char_span(start, end, label=label)
    if found is None:
        summary.misaligned += 1
        if len(summary.examples) < N_EXAMPLES:
            text = record.text[start:end]
            summary.examples.append(f"{record.place}: {label} {text!r} ({start} to {end})")
        found = doc.char_span(start, end, label=label, alignment_mode=alignment_mode)
        if found is None:
            summary.dropped += 1
            return None
    return found.start, found.end, label


def set_outermost_ents(doc: Doc, spans: List[Span]) -> None:
    starts = numpy.array([span.start for span in spans], dtype="int64")
    ends = numpy.array([span.end for span in spans], dtype="int64")
    keep = outermost(starts, ends)
    doc.set_ents([span for span, kept in zip(spans, keep, strict=True) if kept], default="outside")


def add_relations(
    doc: Doc,
    relations: List[Tuple[int, int, str]],
    placed: List[Optional[RawSpan]],
    summary: Summary,
) -> None:
    kept: Dict[StoredRelation, None] = {}  # in order, each once
    for head, tail, label in relations:
        head_span, tail_span = placed[head], placed[tail]
        if head_span is None or tail_span is None:
            summary.lost_relations += 1
        else:
            kept[StoredRelation(*head_span, *tail_span, label)] = None
    set_relations(doc, kept)
    summary.relations += len(kept)
