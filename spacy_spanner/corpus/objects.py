"""JSON objects with a text or tokens and a list of spans: our own lines, Prodigy, doccano, SpERT and
the pairs of spaCy 2. They differ in names only, so one reader takes them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .json_source import json_items
from .record import (
    Place,
    RawRelation,
    RawSpan,
    ReadOptions,
    Record,
    checked_relation,
    checked_span,
    checked_text_span,
    checked_words,
    left_out,
)

SPAN_KEYS = ("entities", "spans", "labels", "label")
TEXT_KEYS = ("text", "data")
ANSWERS = ("reject", "ignore")  # of Prodigy: what the annotator did not accept
SPAN_FIELDS = (("start", "start_offset"), ("end", "end_offset"), ("label", "type"))
RELATION_FIELDS = (
    ("head", "from_id", "head_span"),
    ("tail", "to_id", "child_span"),
    ("label", "type"),
)
LOOSE = "relations between tokens outside of spans"


def read_objects(path: Path, options: ReadOptions) -> Iterator[Record]:
    """Objects with `tokens` (spans in token offsets) or `text` (spans in character offsets). A span is
    a list of start, end (exclusive) and label, or an object with these fields; a relation has a head
    and a tail, as positions in the list of spans or by what identifies a span, and a label."""
    for place, item in json_items(path):
        yield object_record(place, item, options)


def object_record(place: Place, item: Any, options: ReadOptions) -> Record:
    item = without_pair(place, item)
    if item.get("answer") in ANSWERS:
        return left_out(place, f"documents with the answer '{item['answer']}'")
    words: Optional[List[str]] = None
    text = text_of(place, item, options.text_field)
    if text is None or (has_words(item) and "spans" not in item):  # `spans` are in characters
        words, text = checked_words(place, item.get("tokens")), None
    values = span_values(place, item)
    spans = [read_span(place, value, words, text) for value in values]
    relations: Optional[List[RawRelation]] = None
    skipped: Dict[str, int] = {}
    if item.get("relations") is not None:
        found = [
            read_relation(place, value, spans, values)
            for value in items_of(place, item, "relations")
        ]
        relations = [relation for relation in found if relation is not None]
        if len(relations) < len(found):
            skipped[LOOSE] = len(found) - len(relations)
    return Record(
        place, words, text, spans, relations, doc_id(item, "doc", "orig_id", "id"), skipped
    )


def without_pair(place: Place, item: Any) -> Dict[str, Any]:
    """An object; of a pair of spaCy 2, `[text, {"entities": ...}]`, the object with the text; with what
    doccano had in an object `label` before version 1.7."""
    if is_pair(item):
        return {**item[1], "text": item[0]}
    if not isinstance(item, dict):
        place.fail(f"expected a JSON object, found {type(item).__name__}")
    label = item.get("label")
    return {**item, **label} if isinstance(label, dict) else item


def is_pair(item: Any) -> bool:
    return (
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[0], str)
        and isinstance(item[1], dict)
    )


def has_words(item: Dict[str, Any]) -> bool:
    """Whether the tokens are words; those of Prodigy are objects beside the text."""
    tokens = item.get("tokens")
    return isinstance(tokens, list) and not any(isinstance(token, dict) for token in tokens)


def text_of(place: Place, item: Dict[str, Any], field: Optional[str]) -> Optional[str]:
    """The text, None where there are tokens instead."""
    for key in TEXT_KEYS if field is None else (field,):
        if isinstance(item.get(key), str):
            return item[key]
    if "tokens" not in item or field is not None:
        wanted = (
            "'tokens' (a list) or 'text' (a string)" if field is None else f"a string in '{field}'"
        )
        place.fail(f"expected {wanted}, found the keys {sorted(item)}; see --text-field")
    return None


def span_values(place: Place, item: Dict[str, Any]) -> List[Any]:
    """The list of spans, whatever it is called."""
    for key in SPAN_KEYS:
        if isinstance(item.get(key), list):
            return items_of(place, item, key)
    for key in SPAN_KEYS[:2]:
        if item.get(key) is not None:
            return items_of(place, item, key)
    if item.get("answer") == "accept":  # Prodigy: looked at, nothing marked
        return []
    for key in SPAN_KEYS:
        if key in item:
            place.fail(f"'{key}' is null; write [] where there is nothing to mark")
    place.fail(f"'entities' is missing (or 'spans', 'labels'); found the keys {sorted(item)}")


def items_of(place: Place, item: Dict[str, Any], key: str) -> List[Any]:
    """A list of lists of three, or of objects."""
    values = item[key]
    if not isinstance(values, list):
        place.fail(f"'{key}' must be a list, found {type(values).__name__}")
    for value in values:
        if not isinstance(value, dict) and not (isinstance(value, list) and len(value) == 3):
            place.fail(
                f"each of '{key}' must be a list of three values or an object, found {value!r:.80}"
            )
    return values


def fields(
    place: Place, value: Any, names: Sequence[Tuple[str, ...]]
) -> Tuple[Tuple[str, Any], Tuple[str, Any], Tuple[str, Any]]:
    """The three parts of a span or relation, each with the name it has in an object."""
    if isinstance(value, list):
        return ("", value[0]), ("", value[1]), ("", value[2])
    found = []
    for aliases in names:
        name = next((name for name in aliases if name in value), None)
        if name is None:
            wanted = ", ".join(first for first, *_ in names)
            place.fail(f"expected an object with {wanted}, found {value!r:.80}")
        found.append((name, value[name]))
    return found[0], found[1], found[2]


def read_span(place: Place, value: Any, words: Optional[List[str]], text: Optional[str]) -> RawSpan:
    (_, start), (_, end), (_, label) = fields(place, value, SPAN_FIELDS)
    if text is None:
        return checked_span(place, start, end, label, length=len(words or []), unit="token")
    covered = value.get("text") if isinstance(value, dict) else None
    return checked_text_span(place, start, end, label, text=text, covered=covered)


def read_relation(
    place: Place, value: Any, spans: List[RawSpan], values: List[Any]
) -> Optional[RawRelation]:
    """A relation whose ends are positions, the `id` of spans (doccano) or spans (Prodigy, and what
    `annotate` writes). Prodigy also links tokens outside of spans: None."""
    if isinstance(value, dict) and "head_span" in value:  # its `head` is the number of a token
        value = {name: part for name, part in value.items() if name not in ("head", "tail")}
    (kind, head), (_, tail), (_, label) = fields(place, value, RELATION_FIELDS)
    if kind == "from_id":
        ids = {span.get("id"): i for i, span in enumerate(values) if isinstance(span, dict)}
        for name in (head, tail):
            if not isinstance(name, (str, int)) or name not in ids:
                place.fail(f"the relation names the entity {name!r}, which is not in this document")
        head, tail = ids[head], ids[tail]
    elif kind == "head_span" or isinstance(head, dict):
        ends = [fields(place, end, SPAN_FIELDS) for end in (head, tail) if isinstance(end, dict)]
        triples = [(start, end, name) for (_, start), (_, end), (_, name) in ends]
        if len(triples) < 2 or any(triple not in spans for triple in triples):
            return None
        head, tail = (spans.index(triple) for triple in triples)
    return checked_relation(place, head, tail, label, n_spans=len(spans))


def doc_id(item: Dict[str, Any], *keys: str) -> Optional[str]:
    """The first of the keys that holds something."""
    for key in keys:
        if item.get(key) is not None:
            return str(item[key])
    return None
