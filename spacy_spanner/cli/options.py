"""Options that several commands share."""

from __future__ import annotations

from enum import Enum


class SpanOutput(str, Enum):
    """Where spans are read from; auto: the span group if there is one, else the entities."""

    auto = "auto"
    spans = "spans"
    ents = "ents"
