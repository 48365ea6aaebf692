"""JSON formats: one object a line (tokens or text), and SpERT's list of sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .record import (
    Place,
    RawRelation,
    RawSpan,
    Record,
    checked_relation,
    checked_span,
    checked_words,
    numbered_lines,
)


def read_jsonl(path: Path) -> Iterator[Record]:
    """Objects with `tokens` (entities in token offsets) or `text` (entities in character offsets),
    `entities` as [start, end_exclusive, label], optionally `relations` as [head_entity,
    tail_entity, label] and `doc` or `id`, the id of the document."""
    for place, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except json.JSONDecodeError as error:
            place.fail(f"not JSON: {error.msg} at column {error.colno}")
        if not isinstance(item, dict):
            place.fail(f"expected a JSON object, found {type(item).__name__}")
        yield jsonl_record(place, item)


def jsonl_record(place: Place, item: Dict[str, Any]) -> Record:
    words: Optional[List[str]] = None
    text: Optional[str] = None
    if "tokens" in item:
        words = checked_words(place, item["tokens"])
    elif isinstance(item.get("text"), str):
        text = item["text"]
    else:
        place.fail(f"expected 'tokens' (a list) or 'text' (a text), found the keys {sorted(item)}")
    length, unit = (len(text or ""), "character") if words is None else (len(words), "token")
    spans = [
        checked_span(place, *triple, length=length, unit=unit)
        for triple in triples(place, item, "entities")
    ]
    relations: Optional[List[RawRelation]] = None
    if "relations" in item:
        relations = [
            checked_relation(place, *triple, n_spans=len(spans))
            for triple in triples(place, item, "relations")
        ]
    return Record(place, words, text, spans, relations, doc_id(item, "doc", "id"))


def triples(place: Place, item: Dict[str, Any], key: str) -> List[List[Any]]:
    """A list of lists of three."""
    if key not in item:
        place.fail(f"'{key}' is missing; found the keys {sorted(item)}")
    values = item[key]
    if not isinstance(values, list):
        place.fail(f"'{key}' must be a list, found {type(values).__name__}")
    for value in values:
        if not isinstance(value, list) or len(value) != 3:
            place.fail(f"each of '{key}' must be a list of three values, found {value!r}")
    return values


def read_spert(path: Path) -> Iterator[Record]:
    """A JSON list of {"tokens", "entities": [{"type", "start", "end"}], "relations": [{"type",
    "head", "tail"}]}, ends exclusive, heads and tails as positions in the list of entities."""
    for place, item in json_items(path):
        if not isinstance(item, dict) or "tokens" not in item:
            place.fail(
                f"expected an object with 'tokens', 'entities' and 'relations', found {item!r:.80}"
            )
        words = checked_words(place, item["tokens"])
        spans: List[RawSpan] = []
        for start, end, label in fields(place, item, "entities", ("start", "end", "type")):
            spans.append(checked_span(place, start, end, label, length=len(words), unit="token"))
        relations: Optional[List[RawRelation]] = None
        if "relations" in item:
            relations = [
                checked_relation(place, *values, n_spans=len(spans))
                for values in fields(place, item, "relations", ("head", "tail", "type"))
            ]
        yield Record(place, words, None, spans, relations, doc_id(item, "doc", "orig_id", "id"))


def fields(
    place: Place, item: Dict[str, Any], key: str, names: Tuple[str, str, str]
) -> List[Tuple[Any, Any, Any]]:
    """The named values of each object in a list."""
    values = item.get(key)
    if not isinstance(values, list):
        place.fail(f"'{key}' must be a list, found {type(values).__name__}")
    for value in values:
        if not isinstance(value, dict) or any(name not in value for name in names):
            place.fail(
                f"each of '{key}' must be an object with {', '.join(names)}, found {value!r}"
            )
    return [(value[names[0]], value[names[1]], value[names[2]]) for value in values]


def json_items(path: Path) -> Iterator[Tuple[Place, Any]]:
    """The items of a JSON list, each with the line it begins in."""
    text = "\n".join(line for _, line in numbered_lines(path))
    decoder = json.JSONDecoder()
    position, line, counted = skip_blanks(text, 0), 1, 0
    after_comma = False
    if text[position : position + 1] != "[":
        Place(path, 1).fail("expected a JSON list, that is '[' at the beginning")
    while True:
        position = skip_blanks(text, position + 1)
        line, counted = line + text.count("\n", counted, position), position
        place = Place(path, line)
        if text[position : position + 1] == "]" and not after_comma:
            return
        try:
            item, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            Place(path, error.lineno).fail(f"not JSON: {error.msg} at column {error.colno}")
        yield place, item
        position = skip_blanks(text, position)
        if text[position : position + 1] == "]":
            return
        if text[position : position + 1] != ",":
            found = repr(text[position]) if position < len(text) else "the end of the file"
            end = Place(path, text.count("\n", 0, position) + 1)
            end.fail(f"expected ',' or ']' after an item, found {found}")
        after_comma = True


def skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def doc_id(item: Dict[str, Any], *keys: str) -> Optional[str]:
    """The first of the keys that holds something."""
    for key in keys:
        if item.get(key) is not None:
            return str(item[key])
    return None
