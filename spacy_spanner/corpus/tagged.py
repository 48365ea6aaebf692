"""Hugging Face style: objects with tokens and a tag for each, as a text or as a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ..errors import Errors
from .json_source import json_items
from .objects import SPAN_KEYS, doc_id
from .record import CorpusError, Place, RawSpan, ReadOptions, Record, checked_words
from .source import numbered_lines
from .tags import checked_tag, tags_to_spans

WORD_FIELDS = ("tokens", "words")
TAG_FIELDS = ("ner_tags", "tags", "labels", "ner")
NAMES = ("names", "id2label", "label_names")


def read_tagged(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One document an object. Numbers are looked up in the names given by option, else in those of an
    object without tokens that comes first, such as the description of the features."""
    names = list(options.tag_names)
    for place, item in json_items(path):
        if not isinstance(item, dict):
            place.fail(f"expected a JSON object, found {type(item).__name__}")
        row = item["row"] if isinstance(item.get("row"), dict) else item
        if word_field(row) is not None:
            yield tagged_record(place, row, options.tag_fields, names)
            continue
        found = find_names(item)
        if found is None:
            place.fail(f"expected 'tokens' and 'ner_tags', found the keys {sorted(item)}")
        names = names or found


def word_field(item: Dict[str, Any]) -> Optional[str]:
    return next((name for name in WORD_FIELDS if isinstance(item.get(name), list)), None)


def tag_field(item: Dict[str, Any]) -> Optional[str]:
    return next((name for name in TAG_FIELDS if isinstance(item.get(name), list)), None)


def is_tagged(item: Dict[str, Any]) -> bool:
    """Whether there are words and a tag for each, and no list of spans that says more."""
    words = item.get(word_field(item) or "", [])
    return (
        bool(words)
        and isinstance(words[0], str)
        and tag_field(item) is not None
        and not any(isinstance(item.get(key), list) for key in SPAN_KEYS[:2])
    )


def tagged_record(
    place: Place, item: Dict[str, Any], fields: Sequence[str], names: Sequence[str]
) -> Record:
    words = checked_words(place, item[word_field(item) or WORD_FIELDS[0]])
    spans: List[RawSpan] = []
    for field in fields or [tag_field(item) or TAG_FIELDS[0]]:
        tags = item.get(field)
        if not isinstance(tags, list):
            place.fail(f"no list of tags in '{field}'; name the field with --tag-field")
        if len(tags) != len(words):
            place.fail(f"{len(words)} tokens but {len(tags)} tags in '{field}'")
        spans += tags_to_spans([named_tag(place, tag, names) for tag in tags])
    return Record(place, words, None, spans, None, doc_id(item, "doc", "doc_id", "document_id"))


def named_tag(place: Place, tag: Any, names: Sequence[str]) -> str:
    if isinstance(tag, int) and not isinstance(tag, bool):
        if not names:
            place.fail(
                "the tags are integers; give their names in order with --tag-names O,B-PER,... or a file"
            )
        if not 0 <= tag < len(names):
            place.fail(f"tag {tag} has no name; there are {len(names)}: {', '.join(names)}")
        tag = names[tag]
    if not isinstance(tag, str):
        place.fail(f"a tag must be a string or an integer, found {tag!r:.60}")
    return checked_tag(place, tag)


def find_names(value: Any) -> Optional[List[str]]:
    """The first list of names in a description of features, at any depth; also `{"0": "O", ...}`."""
    if isinstance(value, dict):
        for key in NAMES:
            found = value.get(key)
            if isinstance(found, dict):
                found = list(found.values())
            if isinstance(found, list) and found and all(isinstance(tag, str) for tag in found):
                return found
        value = list(value.values())
    if isinstance(value, list):
        return next(filter(None, map(find_names, value)), None)
    return None


def parse_names(given: str) -> List[str]:
    """Names of tags: separated by commas, or a file with one a line or with JSON that holds them."""
    path = Path(given)
    if "," in given or not path.is_file():
        names = [name.strip() for name in given.split(",")]
    else:
        lines = [line.strip() for _, line in numbered_lines(path) if line.strip()]
        names = lines
        if lines and lines[0][0] in "[{":
            items = [item for _, item in json_items(path)]
            # a list is read as its items, unless all of it is in the first line
            flat = items[0] if len(items) == 1 and isinstance(items[0], list) else items
            names = find_names({NAMES[0]: flat}) or find_names(items) or []
    if len(names) < 2 or "" in names:
        raise CorpusError(Errors.S101.format(given=given))
    return names
