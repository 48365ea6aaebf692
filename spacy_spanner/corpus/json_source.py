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
    item, end = document.value(document.skip(0))
    document.finish(end)
    return item


class Document:
    """A JSON text, read part by part so that every item has its line."""

    def __init__(self, path: Path, text: str, *, first_line: int = 1):
        self.path = path
        self.text = text
        self._line, self._counted = first_line, 0

    def items(self) -> Iterator[Item]:
        start = self.skip(0)
        found, end = self.array(start) if self.text[start] == "[" else self.object(start)
        self.finish(end)
        yield from found

    def array(self, start: int) -> Tuple[List[Item], int]:
        items: List[Item] = []
        position = self.skip(start + 1)
        while items or self.at(position) != "]":
            place = self.place(position)
            item, position = self.value(position)
            items.append((place, item))
            position = self.skip(position)
            if self.at(position) != ",":
                break
            position = self.skip(position + 1)
        if self.at(position) != "]":
            self.fail(position, "expected ',' or ']' after an item")
        return items, position + 1

    def object(self, start: int) -> Tuple[List[Item], int]:
        place = self.place(start)
        others: Dict[str, Any] = {}
        rows: Optional[List[Item]] = None
        position = self.skip(start + 1)
        while others or rows is not None or self.at(position) != "}":
            if self.at(position) != '"':
                self.fail(position, "expected a key in quotes")
            key, position = self.value(position)
            position = self.skip(position)
            if self.at(position) != ":":
                self.fail(position, f"expected ':' after the key {key!r}")
            position = self.skip(position + 1)
            if key in others or (key in ROWS and rows is not None):
                self.place(position).fail(twice(key))
            if key in ROWS and self.at(position) == "[":
                rows, position = self.array(position)
            else:
                others[key], position = self.value(position)
            position = self.skip(position)
            if self.at(position) != ",":
                break
            position = self.skip(position + 1)
        if self.at(position) != "}":
            self.fail(position, "expected ',' or '}' after a value")
        header: List[Item] = [(place, others)] if others or rows is None else []
        return header + (rows or []), position + 1

    def value(self, start: int) -> Tuple[Any, int]:
        place = self.place(start)
        try:
            value, end = DECODER.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            line = place.line + self.text.count("\n", start, error.pos)
            Place(self.path, line).fail(f"not JSON: {error.msg} at column {error.colno}")
        except RecursionError:
            place.fail("the JSON is nested too deeply")
        except ValueError as error:  # of the two hooks below
            place.fail(str(error))
        if "\\u" in self.text[start:end]:  # only escapes can make half a pair
            try:
                json.dumps(value, ensure_ascii=False).encode("utf-8")
            except UnicodeEncodeError as error:
                place.fail(f"half of a surrogate pair, {error.object[error.start]!a}; correct it")
        return value, end

    def finish(self, end: int) -> None:
        end = self.skip(end)
        if end < len(self.text):
            self.fail(end, "expected nothing more after the JSON")

    def skip(self, position: int) -> int:
        match = BLANKS.match(self.text, position)
        return match.end() if match else position

    def at(self, position: int) -> str:
        return self.text[position : position + 1]

    def place(self, position: int) -> Place:
        """Positions are asked for from left to right."""
        self._line += self.text.count("\n", self._counted, position)
        self._counted = max(position, self._counted)
        return Place(self.path, self._line)

    def fail(self, position: int, expected: str) -> NoReturn:
        found = repr(self.at(position)) if self.at(position) else "the end of the file"
        self.place(position).fail(f"not JSON: {expected}, found {found}")


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
