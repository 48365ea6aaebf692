"""Column formats: CoNLL (a tag column for each level of nesting) and GermEval 2014."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from .record import Place, Record, numbered_lines
from .tags import split_tag, tags_to_spans

BLANKS = re.compile(r"[ \t]+")
DOCSTART = "-DOCSTART-"


def split_columns(line: str) -> List[str]:
    """Columns parted by tabs where there are any, else by blanks."""
    stripped = line.rstrip(" \t")
    return stripped.split("\t") if "\t" in stripped else BLANKS.split(stripped.lstrip(" "))


def read_conll(
    path: Path, *, token_column: int = 0, tag_columns: Sequence[int] = (-1,)
) -> Iterator[Record]:
    """One document a sentence. Blank lines part sentences; -DOCSTART- lines part documents, whose
    running number becomes the document id. Lines like `# id = 7` before a sentence are skipped.
    The spans of all tag columns go into one list, so that they may nest."""
    words: List[str] = []
    levels: List[List[str]] = [[] for _ in tag_columns]
    first: Optional[Place] = None
    n_docs = 0

    def flush() -> Iterator[Record]:
        if first is not None:
            doc_id = f"{path.stem}-{n_docs}" if n_docs else None
            spans = [span for tags in levels for span in tags_to_spans(tags)]
            yield Record(first, words=words, spans=spans, doc_id=doc_id)

    for place, line in numbered_lines(path):
        columns = split_columns(line)
        if columns == [""] or columns[0] == DOCSTART:
            yield from flush()
            words, levels, first = [], [[] for _ in tag_columns], None
            n_docs += columns[0] == DOCSTART
            continue
        if first is None and columns[0].startswith("#") and split_tag(columns[-1]) is None:
            continue
        words.append(pick(place, columns, token_column, "token"))
        for tags, column in zip(levels, tag_columns):
            tags.append(checked_tag(place, pick(place, columns, column, "tag")))
        first = first or place
    yield from flush()


def pick(place: Place, columns: Sequence[str], column: int, what: str) -> str:
    """One column of a line, counted from 0, or from -1 at the end."""
    if len(columns) < 2:
        place.fail(f"expected a token and a tag in columns, found only {columns[0]!r}")
    if not -len(columns) <= column < len(columns):
        place.fail(f"there is no column {column} for the {what}: the line has {len(columns)}")
    if not columns[column]:
        place.fail(f"the {what} in column {column} is empty")
    return columns[column]


def checked_tag(place: Place, tag: str) -> str:
    if split_tag(tag) is None:
        place.fail(
            f"tag {tag!r} is of no known scheme: expected O or one of B- I- E- S- L- U- and a label"
        )
    return tag


def read_germeval(path: Path) -> Iterator[Record]:
    """Lines of index, token, outer tag, inner tag. A line `#<tab>source` names the document; the
    spans of both levels go into one list, so that inner ones are nested."""
    words: List[str] = []
    levels: List[List[str]] = [[], []]
    first: Optional[Place] = None
    source: Optional[str] = None

    def flush() -> Iterator[Record]:
        if first is not None:
            spans = [span for tags in levels for span in tags_to_spans(tags)]
            yield Record(first, words=words, spans=spans, doc_id=source)

    for place, line in numbered_lines(path):
        columns = line.split("\t")
        if not line.strip() or columns[0] == "#":
            yield from flush()
            words, levels, first = [], [[], []], None
            if columns[0] == "#":
                source = "\t".join(columns[1:]).strip() or None
            continue
        if len(columns) != 4 or not columns[0].isdigit() or not columns[1]:
            place.fail(
                "expected four columns parted by tabs (index, token, outer tag, inner tag), "
                f"found {columns!r}"
            )
        words.append(columns[1])
        for tags, tag in zip(levels, columns[2:], strict=True):
            tags.append(checked_tag(place, tag.strip()))
        first = first or place
    yield from flush()
