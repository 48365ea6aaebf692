"""The confidences of spans. They are an attribute of span groups, which `to_bytes`, `to_disk` and
`DocBin` keep; `doc._.span_scores` is the same as plain lists, for `doc.to_json`."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type

import numpy
from spacy.tokens import Doc, Span, SpanGroup

from .errors import Warnings

SCORES = "scores"  # the attribute of a span group that holds its confidences
EXTENSION = "span_scores"
SpanKey = Tuple[int, int, str]  # character offsets, end exclusive, and label


def span_key(span: Span) -> SpanKey:
    """Character offsets and label, which have to match for a predicted span to be correct."""
    return span.start_char, span.end_char, span.label_


def group_scores(group: SpanGroup) -> Optional[List[float]]:
    """The confidences of the spans of a group; None where there is not one for each."""
    scores = group.attrs.get(SCORES)
    if scores is None or len(scores) != len(group):
        return None
    return [float(score) for score in scores]


def doc_scores(doc: Doc) -> Dict[str, List[float]]:
    """`doc._.span_scores`: the confidences of each span group that has them, by its key."""
    scores = {key: group_scores(group) for key, group in doc.spans.items()}
    return {key: values for key, values in scores.items() if values is not None}


def set_doc_scores(doc: Doc, scores: Mapping[str, List[float]]) -> None:
    """`doc._.span_scores = ...`: the inverse, which `Doc.from_json` calls."""
    for key, values in scores.items():
        doc.spans[key].attrs[SCORES] = numpy.array(values, dtype="float32")


def span_score(span: Span) -> Optional[float]:
    """The confidence of a span or entity: that of an equal span in the first group that has one.
    `Span.set_extension("score", getter=span_score)` makes it an attribute."""
    for group in span.doc.spans.values():
        for other, score in zip(group, group_scores(group) or []):
            if span_key(other) == span_key(span):
                return score
    return None


def register_extensions() -> None:
    """Make `doc._.span_scores`. A component does it when it is made; without one, call this first."""
    register_view(Doc, EXTENSION, doc_scores, set_doc_scores)


def register_view(
    cls: Type, name: str, getter: Callable, setter: Optional[Callable[..., Any]] = None
) -> None:
    """Make an extension attribute; one of that name by others is left alone."""
    if not cls.has_extension(name):
        cls.set_extension(name, getter=getter, setter=setter)
    elif cls.get_extension(name)[2] is not getter:
        values = {"name": f"{cls.__name__}._.{name}", "function": getter.__name__}
        message = Warnings.SW05.format(module=getter.__module__, **values)
        warnings.warn(message, stacklevel=3)
