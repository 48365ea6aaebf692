"""Small pieces of Markdown that the generated parts of the site share."""

from __future__ import annotations

import json
import re
from typing import Any, Iterable, List, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `|` in cells is escaped."""
    lines: List[str] = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def code(value: object) -> str:
    """Text as inline code."""
    return f"`{value}`"


def config_value(value: Any) -> str:
    """A value as it is written in a config file."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def plain(text: str) -> str:
    """Text in which Markdown and HTML see no markup of their own, outside of inline code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts
    )
