"""Reading `.spacy` files, and the gold spans of a document."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import Errors
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


def gold_spans(doc: Doc, *, output: str, spans_key: str) -> Optional[List[RawSpan]]:
    """What a component with this `output` learns from; None where the document is not annotated."""
    if output == "ents":
        if not doc.has_annotation("ENT_IOB"):
            return None
        return [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    if spans_key not in doc.spans:
        return None
    return [(span.start, span.end, span.label_) for span in doc.spans[spans_key]]


def edges(doc: Doc, span: RawSpan) -> Tuple[str, str]:
    """The first and the last token of a span."""
    return doc[span[0]].text, doc[span[1] - 1].text
