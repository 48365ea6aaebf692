"""`spacy spanner render`: documents with their spans as an HTML page."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import List, Optional

import typer
from wasabi import msg


class Choice(str, Enum):
    auto = "auto"
    spans = "spans"
    ents = "ents"


def render_cli(
    source: str = typer.Argument(..., help="A pipeline, or a .spacy file of predictions"),
    data: Optional[List[str]] = typer.Argument(
        None, help="Gold (.spacy); for a pipeline also .txt files (a document a line) or texts"
    ),
    page: Path = typer.Option(Path("page.html"), "--page", "-o", help="The page to write"),
    spans_key: str = typer.Option("sc", "--spans-key", "-sk", help="Span group to show"),
    output: Choice = typer.Option(
        Choice.auto, "--output", help="Show the span group or doc.ents; auto: ents if no such group"
    ),
    limit: int = typer.Option(100, "--limit", "-n", min=1, help="Most documents to show"),
    title: str = typer.Option("Predictions", "--title", help="Heading of the page"),
) -> None:
    """Write one HTML page of documents with nested spans.

    Given gold, hits, misses and false alarms are marked, and counted over the documents shown.
    Confidences stand beside the labels. The page needs nothing but itself, in light and dark mode.
    """
    from ..analysis.render import render_page
    from ..analysis.sources import load_pairs, shown_docs
    from ..errors import Errors, UserError

    texts = data or []
    if not texts and not source.endswith(".spacy"):
        raise typer.BadParameter(
            "a pipeline needs something to read: gold (.spacy), .txt or a text"
        )
    for item in [source, *texts]:
        if item.endswith((".spacy", ".txt")) and not Path(item).exists():
            raise typer.BadParameter(f"there is no file {item}")
    pairs = load_pairs(source, texts, limit=limit)
    if not pairs:
        raise UserError(Errors.S028.format(path=", ".join(texts) or source))
    docs = shown_docs(pairs, output=output.value, spans_key=spans_key)
    if not any(doc.marks for doc in docs):
        keys = sorted(
            {key for pair in pairs for doc in pair if doc is not None for key in doc.spans}
        )
        msg.warn(
            f"No spans to show under '{spans_key}'. Span groups there: {', '.join(keys) or 'none'}"
        )
    note = " · ".join([source, *(item for item in texts if item.endswith((".spacy", ".txt")))])
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render_page(docs, title=title, note=note), encoding="utf-8")
    msg.good(f"{page}: {len(docs)} documents")
