"""Options and output that several commands share."""

from __future__ import annotations

from enum import Enum
from typing import Any, Sequence

from wasabi import msg


class SpanOutput(str, Enum):
    """Source of the spans; auto: the span group if there is one, else the entities."""

    auto = "auto"
    spans = "spans"
    ents = "ents"


LIMIT_HELP = "Read so many documents at the most; 0 for all"


def first_only(limit: int) -> str:
    """The notice that there are more documents than were read."""
    return (
        f"There are more documents than the first {limit:,}, which are all that was read (--limit)."
    )


def print_table(rows: Sequence[Any], header: Sequence[str], *, n_texts: int = 1) -> None:
    """Print a table whose first columns are texts and the others numbers."""
    n_numbers = len(header) - n_texts
    msg.table(rows, header=header, divider=True, aligns=["l"] * n_texts + ["r"] * n_numbers)
