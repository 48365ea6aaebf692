"""Label Studio: the JSON export (tasks with annotations) and JSON-MIN (one flat object a task)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .json_source import json_items
from .objects import doc_id
from .record import (
    Place,
    RawRelation,
    RawSpan,
    ReadOptions,
    Record,
    checked_label,
    checked_text_span,
    left_out,
    looked_for_relations,
)

ANNOTATIONS = ("annotations", "completions")  # the second until version 1.0
LABELS = "labels"  # also hypertextlabels and the like
NO_ANNOTATION = "tasks without an annotation"
NO_LABEL = "spans without a label"
FURTHER = "further annotations of the same task"
OTHER = "results that are neither spans nor relations"
LOOSE = "relations to spans without a label"
OF_ANNOTATOR = ("annotation_id", "annotator")  # in JSON-MIN: the task was annotated


def read_label_studio(path: Path, options: ReadOptions) -> Iterator[Record]:
    records = (read_item(place, item, options) for place, item in json_items(path))
    yield from looked_for_relations(records)


def read_item(place: Place, item: Any, options: ReadOptions) -> Record:
    if not isinstance(item, dict):
        place.fail(f"expected a task of Label Studio, found {type(item).__name__}")
    return (task_record if is_task(item) else flat_record)(place, item, options)


def is_task(item: Dict[str, Any]) -> bool:
    return isinstance(item.get("data"), dict) and any(key in item for key in ANNOTATIONS)


def is_flat(item: Dict[str, Any]) -> bool:
    marked = any(is_span_list(value) for value in item.values())
    return marked or all(key in item for key in OF_ANNOTATOR)


def is_span_list(value: Any) -> bool:
    """Whether this is a list of spans as JSON-MIN has them: start, end and a list of labels."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(span, dict) and {"start", "end"} <= set(span) for span in value)
        and any(
            key.endswith(LABELS) and isinstance(span[key], list) for span in value for key in span
        )
    )


def task_record(place: Place, item: Dict[str, Any], options: ReadOptions) -> Record:
    found = [entry for key in ANNOTATIONS for entry in list_of(place, item.get(key), key)]
    usable = [
        entry for entry in found if isinstance(entry, dict) and not entry.get("was_cancelled")
    ]
    if not usable:
        return left_out(place, NO_ANNOTATION)
    chosen = next((entry for entry in usable if entry.get("ground_truth")), usable[0])
    results = list_of(place, chosen.get("result"), "result")
    text = text_of(place, item["data"], options.text_field)
    spans, ids, skipped = read_spans(place, text, results)
    relations = read_relations(place, results, ids, skipped)
    skipped[FURTHER] += len(usable) - 1
    return Record(place, None, text, spans, relations, doc_id(item, "id"), dict(+skipped))


def flat_record(place: Place, item: Dict[str, Any], options: ReadOptions) -> Record:
    marked = [span for value in item.values() if is_span_list(value) for span in value]
    if not marked and not is_flat(item):
        return left_out(place, NO_ANNOTATION)
    text = text_of(place, item, options.text_field)
    spans, _, skipped = read_spans(place, text, [{"value": span} for span in marked])
    return Record(place, None, text, spans, None, doc_id(item, "id"), dict(+skipped))


def text_of(place: Place, data: Dict[str, Any], field: Optional[str]) -> str:
    """The text of a task: in the named field, in `text`, or in the only field that holds a text."""
    times = ("created_at", "updated_at")
    texts = [key for key, value in data.items() if isinstance(value, str) and key not in times]
    key = field or ("text" if "text" in texts or len(texts) != 1 else texts[0])
    if not isinstance(data.get(key), str):
        place.fail(
            f"no text in the field {key!r}; name the field with --text-field, one of: "
            + (", ".join(texts) or "none")
        )
    return data[key]


def read_spans(
    place: Place, text: str, results: List[Any]
) -> Tuple[List[RawSpan], Dict[str, int], Counter[str]]:
    """Spans, where each result has its first one, and what was left out. A region with two labels is
    two spans."""
    spans: List[RawSpan] = []
    ids: Dict[str, int] = {}
    skipped: Counter[str] = Counter()
    for result in results:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict) or "start" not in value:
            skipped[OTHER] += not isinstance(result, dict) or result.get("type") != "relation"
            continue
        if isinstance(value["start"], str):
            place.fail(
                f"the span starts at {value['start']!r:.60}: spans of HTML or dialogues cannot be read; "
                "annotate with a Text tag"
            )
        labels = [group for key, group in value.items() if key.endswith(LABELS)]
        names = [name for group in labels for name in list_of(place, group, "labels")]
        skipped[NO_LABEL] += not names
        if names and isinstance(result.get("id"), str):
            ids[result["id"]] = len(spans)
        for name in names:
            bounds = value["start"], value.get("end")
            spans.append(
                checked_text_span(place, *bounds, name, text=text, covered=value.get("text"))
            )
    return spans, ids, skipped


def read_relations(
    place: Place, results: List[Any], ids: Dict[str, int], skipped: Counter[str]
) -> Optional[List[RawRelation]]:
    """Relations as drawn, those in both directions twice; None where the annotation has none."""
    found = [r for r in results if isinstance(r, dict) and r.get("type") == "relation"]
    relations: List[RawRelation] = []
    for result in found:
        ends = [result.get("from_id"), result.get("to_id")]
        direction = result.get("direction")
        if direction == "left":
            ends.reverse()
        labels = list_of(place, result.get("labels"), "labels")
        if not labels or any(end not in ids for end in ends):
            skipped[LOOSE if labels else "relations without a label"] += 1
            continue
        for label in labels:
            name = checked_label(place, label, f"relation {ends}")
            head, tail = (ids[end] for end in ends)  # type: ignore[index]
            relations += [(head, tail, name), (tail, head, name)][: 1 + (direction == "bi")]
    return relations if found else None


def list_of(place: Place, value: Any, name: str) -> List[Any]:
    if value is not None and not isinstance(value, list):
        place.fail(f"'{name}' must be a list, found {type(value).__name__}")
    return value or []
