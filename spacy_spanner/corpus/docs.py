"""Reading `.spacy` files, and the spans of a document."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import numpy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from ..errors import Errors
from ..span_scores import SpanKey, group_scores, span_key
from .record import CorpusError, RawSpan

DOC_ID = "doc"  # the entry of `doc.user_data` with the id that a corpus gives a document


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """The documents of a `.spacy` file, or of all of them below a folder."""
    for file in doc_files(path):
        try:
            doc_bin = DocBin().from_disk(file)
        except (zlib.error, ValueError, KeyError) as error:
            raise CorpusError(Errors.S025.format(path=file, reason=error)) from error
        yield from doc_bin.get_docs(vocab)


def doc_files(path: Path) -> List[Path]:
    files = sorted(path.rglob("*.spacy")) if path.is_dir() else [path]
    if not files:
        raise CorpusError(Errors.S028.format(path=path))
    return files


def doc_spans(doc: Doc, *, output: str, spans_key: str) -> Optional[List[Span]]:
    """The spans of a document: `doc.ents` for output "ents", else `doc.spans[spans_key]`. None where
    the document is not annotated."""
    if output == "ents":
        return list(doc.ents) if doc.has_annotation("ENT_IOB") else None
    return list(doc.spans[spans_key]) if spans_key in doc.spans else None


def gold_spans(doc: Doc, *, output: str, spans_key: str) -> Optional[List[RawSpan]]:
    """The spans that a component with this `output` learns from; None without annotation."""
    spans = doc_spans(doc, output=output, spans_key=spans_key)
    return None if spans is None else [(span.start, span.end, span.label_) for span in spans]


def scored_spans(
    doc: Doc, *, output: str, spans_key: str
) -> Optional[Dict[SpanKey, Optional[float]]]:
    """The spans of a document with their confidences (None where there is none); entities take the
    confidence of an equal span in any group, first of all in one that holds nothing but entities. None
    where the document is not annotated."""
    spans = doc_spans(doc, output=output, spans_key=spans_key)
    if spans is None:
        return None
    keys = list(map(span_key, spans))
    groups = list(doc.spans.values()) if output == "ents" else [doc.spans[spans_key]]
    known: Dict[SpanKey, float] = {}
    # The last one counts: that of a component which wrote the entities, whatever others found.
    for group in sorted(groups, key=lambda group: set(map(span_key, group)) <= set(keys)):
        known.update(zip(map(span_key, group), group_scores(group) or []))
    return {key: known.get(key) for key in keys}


def judged_spans(
    spans: Optional[Dict[SpanKey, Optional[float]]], gold: Doc, *, output: str
) -> Dict[SpanKey, Optional[float]]:
    """The predicted spans (None: there are none) that gold can judge. Entities on tokens whose
    annotation is missing are neither right nor wrong, as in spaCy's own scorer."""
    missing = [token for token in gold if token.ent_iob == 0] if output == "ents" else []
    if not spans or not missing:
        return spans or {}
    unknown = numpy.zeros(len(gold.text) + 1, dtype="int64")
    for token in missing:
        unknown[token.idx + 1 : token.idx + len(token) + 1] = 1
    before = unknown.cumsum()  # unknown characters before each position
    return {key: score for key, score in spans.items() if before[key[0]] == before[key[1]]}


def edges(doc: Doc, span: RawSpan) -> Tuple[str, str]:
    """The first and the last token of a span."""
    return doc[span[0]].text, doc[span[1] - 1].text
