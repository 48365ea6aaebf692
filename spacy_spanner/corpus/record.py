"""What every reader yields, and the errors it may raise: a document before spaCy sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, NoReturn, Optional, Tuple

from ..errors import Errors


class CorpusError(ValueError):
    """Input that cannot be used; the message says where and why."""


class Place(NamedTuple):
    """Where something stands in a file, for messages."""

    path: Path
    line: int

    def fail(self, reason: str) -> NoReturn:
        raise CorpusError(Errors.S020.format(path=self.path, line=self.line, reason=reason))


RawSpan = Tuple[int, int, str]  # start, end (exclusive), label
RawRelation = Tuple[int, int, str]  # head and tail as positions in `Record.spans`, label


@dataclass
class Record:
    """One document as a reader found it: either `words` with token offsets in `spans`, or `text`
    with character offsets. `relations` is None where the format or the file annotates none."""

    place: Place
    words: Optional[List[str]] = None
    text: Optional[str] = None
    spans: List[RawSpan] = field(default_factory=list)
    relations: Optional[List[RawRelation]] = None
    doc_id: Optional[str] = None
    skipped: Dict[str, int] = field(default_factory=dict)  # what the reader left out, by kind


def checked_span(
    place: Place, start: object, end: object, label: object, *, length: int, unit: str
) -> RawSpan:
    """The span, if its offsets are whole numbers within the document and its label is a word."""
    found = f"entity [{start!r}, {end!r}, {label!r}]"
    for offset in (start, end):
        if not isinstance(offset, int) or isinstance(offset, bool):
            place.fail(f"{found}: start and end must be whole numbers ({unit} offsets)")
    assert isinstance(start, int) and isinstance(end, int)
    if not isinstance(label, str) or not label.strip():
        place.fail(f"{found}: the label must be a text that is not empty")
    if not 0 <= start < end <= length:
        place.fail(
            f"{found}: expected 0 <= start < end <= {length}, the document having {length} {unit}s "
            "(the end is exclusive)"
        )
    return start, end, label


def checked_relation(
    place: Place, head: object, tail: object, label: object, *, n_spans: int
) -> RawRelation:
    """The relation, if both its ends are positions in the list of entities."""
    found = f"relation [{head!r}, {tail!r}, {label!r}]"
    for position in (head, tail):
        if (
            not isinstance(position, int)
            or isinstance(position, bool)
            or not 0 <= position < n_spans
        ):
            place.fail(f"{found}: {position!r} is not the position of one of {n_spans} entities")
    assert isinstance(head, int) and isinstance(tail, int)
    if not isinstance(label, str) or not label.strip():
        place.fail(f"{found}: the label must be a text that is not empty")
    return head, tail, label


def checked_words(place: Place, words: object) -> List[str]:
    """The words of a document, none of them empty."""
    if not isinstance(words, list):
        place.fail(f"'tokens' must be a list of texts, found {type(words).__name__}")
    for i, word in enumerate(words):
        if not isinstance(word, str) or not word:
            place.fail(f"token {i} must be a text that is not empty, found {word!r}")
    return words


def numbered_lines(path: Path) -> Iterator[Tuple[Place, str]]:
    """The lines of a UTF-8 file without their ends, with their places."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            place = Place(path, number)
            try:
                # only the first line can carry a byte-order mark
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                place.fail(f"not UTF-8 ({error.reason} at byte {error.start} of the line)")
            yield place, line.rstrip("\r\n")
