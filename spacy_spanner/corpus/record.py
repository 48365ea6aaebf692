"""The records that readers yield, before they become documents, and the errors that readers raise."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ..errors import Errors, UserError


class CorpusError(UserError, ValueError):
    """Input that cannot be used; the message says where and why."""


class Place(NamedTuple):
    """A position in a file, for error messages."""

    path: Path
    line: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.line}"

    def fail(self, reason: str) -> NoReturn:
        raise CorpusError(Errors.S020.format(place=self, reason=reason))


RawSpan = Tuple[int, int, str]  # start, end (exclusive), label
RawRelation = Tuple[int, int, str]  # head and tail as positions in `Record.spans`, label


@dataclass(frozen=True)
class ReadOptions:
    """What a reader cannot see in the file. Each format uses those that concern it.

    token_column, tag_columns: CoNLL columns, counted from 0, or from -1 at the end.
    tag_fields: Hugging Face: fields with tags; CoNLL-U: keys in MISC or names of columns. Empty: the
        usual names. Several columns or fields are several levels of nesting.
    tag_names: Names of tags that are given as numbers.
    text_field: JSON: the field with the text. None: the usual names.
    spans_key: `.spacy`: the span group to read; `doc.ents` where a document has no such group.
    """

    token_column: int = 0
    tag_columns: Sequence[int] = (-1,)
    tag_fields: Sequence[str] = ()
    tag_names: Sequence[str] = ()
    text_field: Optional[str] = None
    spans_key: str = "sc"


@dataclass
class Record:
    """One document as a reader found it: `words` with token offsets in `spans`, or `text` with
    character offsets, or a whole `doc` with token offsets. One with none of the three was left out,
    for the reason in `skipped`. `relations` is None where the format or the file annotates none."""

    place: Place
    words: Optional[List[str]] = None
    text: Optional[str] = None
    spans: List[RawSpan] = field(default_factory=list)
    relations: Optional[List[RawRelation]] = None
    doc_id: Optional[str] = None
    skipped: Dict[str, int] = field(default_factory=dict)  # what the reader left out, by kind
    doc: Optional[Doc] = None
    warning: Optional[str] = None  # of the whole file, on its first document

    @property
    def is_document(self) -> bool:
        return not (self.words is None and self.text is None and self.doc is None)

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to annotate."""
        return self.doc is None and not (self.words or (self.text or "").strip())


def left_out(place: Place, what: str) -> Record:
    """A record that only says why there is no document."""
    return Record(place, skipped={what: 1})


def looked_for_relations(records: Iterable[Record]) -> List[Record]:
    """Records of a source that writes relations only where there are some: if one has any, the others
    have none; otherwise relations are not annotated."""
    found = list(records)
    if any(record.relations is not None for record in found):
        for record in found:
            record.relations = record.relations or []
    return found


def checked_label(place: Place, label: object, found: str) -> str:
    """The label, if it is a string that is not empty and not "O"."""
    if not isinstance(label, str) or not label.strip():
        place.fail(f"{found}: the label must be a non-empty string, found {label!r}")
    if label == "O":
        place.fail(f"{found}: 'O' means 'outside' in tag formats; remove or rename this label")
    return label


def checked_span(
    place: Place, start: object, end: object, label: object, *, length: int, unit: str
) -> RawSpan:
    """The span, if its offsets are integers within the document and its label is valid."""
    found = f"entity [{start!r}, {end!r}, {label!r}]"
    for offset in (start, end):
        if type(offset) is not int:
            place.fail(f"{found}: start and end must be integers ({unit} offsets)")
    assert isinstance(start, int) and isinstance(end, int)
    name = checked_label(place, label, found)
    if not 0 <= start < end <= length:
        place.fail(
            f"{found}: expected 0 <= start < end <= {length}, the document having {length} {unit}s "
            "(the end is exclusive)"
        )
    return start, end, name


def checked_text_span(
    place: Place, start: object, end: object, label: object, *, text: str, covered: object = None
) -> RawSpan:
    """A span with character offsets. Where the file repeats the covered text, that is compared; offsets
    that count UTF-16 units, as JavaScript does, are then recognised and converted."""
    if not isinstance(covered, str) or not isinstance(start, int) or not isinstance(end, int):
        return checked_span(place, start, end, label, length=len(text), unit="character")
    for first, last in ((start, end), (from_utf16(text, start), from_utf16(text, end))):
        if text[first:last].split() == covered.split():  # brat writes a blank for a line end
            start, end = first, last
            break
    span = checked_span(place, start, end, label, length=len(text), unit="character")
    found = text[start:end]
    if found.split() != covered.split():
        place.fail(f"the span reads {covered!r}, but characters {start} to {end} are {found!r}")
    return span


def from_utf16(text: str, offset: int) -> int:
    """The number of characters before an offset in UTF-16 units."""
    units = text.encode("utf-16-le", errors="surrogatepass")[: 2 * max(offset, 0)]
    return len(units.decode("utf-16-le", errors="ignore"))


def checked_relation(
    place: Place, head: object, tail: object, label: object, *, n_spans: int
) -> RawRelation:
    """The relation, if both its ends are positions in the list of entities."""
    found = f"relation [{head!r}, {tail!r}, {label!r}]"
    for position in (head, tail):
        if type(position) is not int or not 0 <= position < n_spans:
            place.fail(f"{found}: {position!r} is not the position of one of {n_spans} entities")
    assert isinstance(head, int) and isinstance(tail, int)
    return head, tail, checked_label(place, label, found)


def checked_words(place: Place, words: object) -> List[str]:
    """The words of a document, none of them empty."""
    if not isinstance(words, list):
        place.fail(f"'tokens' must be a list of strings, found {type(words).__name__}")
    for i, word in enumerate(words):
        if not isinstance(word, str) or not word:
            place.fail(f"token {i} must be a non-empty string, found {word!r}")
    return words
