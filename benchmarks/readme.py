"""The figures of the README, between two marks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

from .comparison import comparison_table
from .heads_page import other_runs, short_heads
from .quickstart_page import short_quickstart
from .speed_page import speed_summary
from .tables import Record

BEGIN = "<!-- measured: written by `python -m benchmarks report` -->"
END = "<!-- measured: end -->"

SPEED = (
    "Words per second over those of the encoder alone, in brackets the target; for a "
    "document of 20,000 tokens over those of documents of 500, and the megabytes it takes beyond "
    "the encoder:"
)


def measured(runs: List[Record], speeds: List[Record], quickstarts: List[Record]) -> str:
    parts = [[BEGIN], short_heads(runs), comparison_table(other_runs(runs))]
    parts += [short_quickstart(quickstarts), [SPEED], speed_summary(speeds), [END]]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def with_figures(
    text: str, runs: List[Record], speeds: List[Record], quickstarts: List[Record]
) -> str:
    """The README with the figures as they are now."""
    figures = measured(runs, speeds, quickstarts)
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: figures, text, flags=re.S)


def write_readme(
    path: Path, runs: List[Record], speeds: List[Record], quickstarts: List[Record]
) -> None:
    text = with_figures(path.read_text(encoding="utf8"), runs, speeds, quickstarts)
    path.write_text(text, encoding="utf8")
