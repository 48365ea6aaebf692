"""`spacy spanner render`: documents with their spans as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer
from wasabi import msg

from .options import SpanOutput


def render_cli(
    source: str = typer.Argument(..., help="A pipeline, or a .spacy file of predictions"),
    data: Optional[List[str]] = typer.Argument(
        None, help="Gold (.spacy); for a pipeline also .txt files (a document a line) or texts"
    ),
    page: Path = typer.Option(Path("page.html"), "--page", "-o", help="The page to write"),
    spans_key: str = typer.Option("sc", "--spans-key", "-sk", help="Span group to show"),
    output: SpanOutput = typer.Option(
        SpanOutput.auto,
        "--output",
        help="Show the span group or doc.ents; auto: ents if no such group",
    ),
    limit: int = typer.Option(100, "--limit", "-n", min=1, help="Maximum number of documents"),
    title: str = typer.Option("Predictions", "--title", help="Heading of the page"),
) -> None:
    """Write one HTML page of documents with nested spans.

    With gold, true positives, false negatives and false positives are marked, and counted over the
    documents shown. Labels have their confidences. The page is self-contained, with a light and a
    dark mode.
    """
    from ..analysis.marks import mark_docs
    from ..analysis.pages import documents_page
    from ..corpus.pairs import load_pairs
    from ..errors import Errors, UserError

    texts = data or []
    if not texts and not source.endswith(".spacy"):
        raise typer.BadParameter("a pipeline needs input: gold (.spacy), .txt files or texts")
    for item in [source, *texts]:
        if item.endswith((".spacy", ".txt")) and not Path(item).exists():
            raise typer.BadParameter(f"there is no file {item}")
    pairs = load_pairs(source, texts, limit=limit)
    if not pairs:
        raise UserError(Errors.S028.format(path=", ".join(texts) or source))
    docs = mark_docs(pairs, output=output.value, spans_key=spans_key)
    if not any(doc.marks for doc in docs):
        keys = sorted(
            {key for pair in pairs for doc in pair if doc is not None for key in doc.spans}
        )
        msg.warn(
            f"No spans to show under '{spans_key}'. Span groups found: {', '.join(keys) or 'none'}"
        )
    note = " · ".join([source, *(item for item in texts if item.endswith((".spacy", ".txt")))])
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(documents_page(docs, title=title, note=note), encoding="utf-8")
    msg.good(f"Wrote {len(docs)} documents to {page}")
