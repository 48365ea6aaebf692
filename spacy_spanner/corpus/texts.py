"""Plain texts, of which nothing is annotated."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import srsly
from spacy.vocab import Vocab

from ..errors import Errors
from .docs import SUFFIX, read_docs
from .record import CorpusError


def read_texts(path: Path) -> Iterator[str]:
    """The texts of a .spacy file, of a .jsonl file with one {"text": ...} a line, or the lines of any
    other file."""
    if path.suffix == SUFFIX:
        yield from (doc.text for doc in read_docs(path, Vocab()))
    elif path.suffix == ".jsonl":
        yield from jsonl_texts(path)
    else:
        with path.open(encoding="utf-8-sig") as lines:
            yield from (line.rstrip("\n") for line in lines)


def jsonl_texts(path: Path) -> Iterator[str]:
    try:
        for number, line in enumerate(srsly.read_jsonl(path), start=1):
            if not isinstance(line, dict) or not isinstance(line.get("text"), str):
                reason = f'line {number} has no "text"'
                raise CorpusError(Errors.S140.format(path=path, reason=reason))
            yield line["text"]
    except CorpusError:
        raise
    except ValueError as error:  # of the reader: no JSON, no UTF-8
        raise CorpusError(Errors.S140.format(path=path, reason=error)) from error
