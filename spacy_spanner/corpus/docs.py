"""Reading `.spacy` files, and the spans of a document."""

from __future__ import annotations

import zlib
from itertools import repeat
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import numpy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from ..errors import Errors
from ..span_scores import SpanKey, group_scores, span_key
from .record import CorpusError, RawSpan
from .source import read_bytes

SUFFIX = ".spacy"
DOC_ID = "doc"  # the entry of `doc.user_data` with the id that a corpus gives a document


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """The documents of a `.spacy` file, compressed with gzip or not, or of all of them below a folder."""
    for file in doc_files(path):
        content = read_bytes(file)
        try:
            yield from DocBin().from_bytes(content).get_docs(vocab)
        except (zlib.error, ValueError, KeyError, IndexError, TypeError) as error:
            raise CorpusError(Errors.S025.format(path=file, reason=error)) from error


def doc_files(path: Path) -> List[Path]:
    files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise CorpusError(Errors.S028.format(path=path))
    return files


def doc_spans(doc: Doc, *, output: str, spans_key: str) -> Optional[List[Span]]:
    """The spans of a document: `doc.ents` for output "ents", else `doc.spans[spans_key]`. None where
    the document is not annotated."""
    if output == "ents":
        ents = list(doc.ents)  # first: the other question looks at every token
        return ents if ents or doc.has_annotation("ENT_IOB") else None
    return list(doc.spans[spans_key]) if spans_key in doc.spans else None


def source_name(output: str, spans_key: str) -> str:
    """Where `doc_spans` looks, for messages."""
    return "doc.ents" if output == "ents" else f"doc.spans['{spans_key}']"


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
    if output != "ents":
        if spans_key not in doc.spans:
            return None
        group = doc.spans[spans_key]
        return dict(zip(map(span_key, group), group_scores(group) or repeat(None)))
    ents = doc_spans(doc, output=output, spans_key=spans_key)
    if ents is None:
        return None
    known: Dict[SpanKey, Optional[float]] = dict.fromkeys(map(span_key, ents))
    groups = [
        dict(zip(map(span_key, group), group_scores(group) or [])) for group in doc.spans.values()
    ]
    # The last one counts: that of a component which wrote the entities, whatever others found.
    for scores in sorted(groups, key=lambda scores: scores.keys() <= known.keys()):
        known.update((key, score) for key, score in scores.items() if key in known)
    return known


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
