"""The items of a JSON file, each with its line: one a line, a list, or an object that holds a list."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Tuple

from .record import Place
from .source import numbered_lines

Item = Tuple[Place, Any]
BLANKS = re.compile(r"[ \t\r\n]*")
ROWS = ("rows", "data")  # the lists that an object may hold its items in
HOLDS_ROWS = re.compile(r'(?<!\\)"(rows|data)"\s*:\s*\[')


def json_items(path: Path) -> Iterator[Item]:
    """All items of a file. Of an object with `rows` or `data`, its other members come first, as one
    item, then the rows."""
    lines = numbered_lines(path)
    before: List[str] = []
    for place, line in lines:
        if not line.strip():
            before.append(line)
        elif is_document(line.strip()):
            text = "\n".join([*before, line, *(line for _, line in lines)])
            yield from Document(path, text).items()
        else:
            yield place, line_item(place, line)
            yield from ((place, line_item(place, text)) for place, text in lines if text.strip())


def is_document(line: str) -> bool:
    """Whether the first line belongs to a JSON text of the whole file, not only of this line."""
    if line[0] == "[":  # a line of its own would be a pair that begins with a text
        return line[1:].lstrip()[:1] != '"'
    return line[0] == "{" and (line[-1] in "{[,:" or HOLDS_ROWS.search(line) is not None)


def line_item(place: Place, line: str) -> Any:
    document = Document(place.path, line, first_line=place.line)
    item = document.value()
    document.finish()
    return item


class Document:
    """A JSON text, read part by part so that every item has its line.

    position: Of the part that comes next."""

    def __init__(self, path: Path, text: str, *, first_line: int = 1):
        self.path = path
        self.text = text
        self.position = 0
        self._line, self._counted = first_line, 0
        self.skip()

    def items(self) -> List[Item]:
        found = self.array() if self.next() == "[" else self.object()
        self.finish()
        return found

    def array(self) -> List[Item]:
        return [(place, self.value()) for place in self.members("]")]

    def object(self) -> List[Item]:
        place = self.place()
        others: Dict[str, Any] = {}
        rows: Optional[List[Item]] = None
        for _ in self.members("}"):
            if self.next() != '"':
                self.fail("expected a key in quotes")
            key = self.value()
            if not self.take(":"):
                self.fail(f"expected ':' after the key {key!r}")
            if key in others or (key in ROWS and rows is not None):
                self.place().fail(twice(key))
            if key in ROWS and self.next() == "[":
                rows = self.array()
            else:
                others[key] = self.value()
        header: List[Item] = [(place, others)] if others or rows is None else []
        return header + (rows or [])

    def members(self, closing: str) -> Iterator[Place]:
        """The places of the items of a list, or of the keys of an object, each to be read in turn."""
        self.position += 1
        if self.take(closing):
            return
        yield self.place()
        while self.take(","):
            yield self.place()
        if not self.take(closing):
            what = "an item" if closing == "]" else "a value"
            self.fail(f"expected ',' or '{closing}' after {what}")

    def value(self) -> Any:
        place, start = self.place(), self.position
        try:
            value, self.position = DECODER.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            line = place.line + self.text.count("\n", start, error.pos)
            Place(self.path, line).fail(f"not JSON: {error.msg} at column {error.colno}")
        except RecursionError:
            place.fail("the JSON is nested too deeply")
        except ValueError as error:  # of the two hooks below
            place.fail(str(error))
        if "\\u" in self.text[start : self.position]:  # only escapes can make half a pair
            try:
                json.dumps(value, ensure_ascii=False).encode("utf-8")
            except UnicodeEncodeError as error:
                place.fail(f"half of a surrogate pair, {error.object[error.start]!a}; correct it")
        self.skip()
        return value

    def finish(self) -> None:
        if self.next():
            self.fail("expected nothing more after the JSON")

    def take(self, char: str) -> bool:
        """Pass over a character if it comes next, and over white space around it."""
        self.skip()
        found = self.next() == char
        self.position += found
        self.skip()
        return found

    def skip(self) -> None:
        match = BLANKS.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def next(self) -> str:
        return self.text[self.position : self.position + 1]

    def place(self) -> Place:
        self._line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return Place(self.path, self._line)

    def fail(self, expected: str) -> NoReturn:
        found = repr(self.next()) if self.next() else "the end of the file"
        self.place().fail(f"not JSON: {expected}, found {found}")


def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """An object without duplicate keys: which of their values is meant?"""
    values: Dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(twice(key))
        values[key] = value
    return values


def twice(key: str) -> str:
    return f"duplicate key {key!r} in one object; remove one"


def no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; remove it or write null")


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_number)
