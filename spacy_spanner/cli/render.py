"""`spacy spanner render`: documents with their spans as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer
from wasabi import msg

from .options import LIMIT_HELP, SpanOutput, first_only


def render_cli(
    source: str = typer.Argument(..., help="A pipeline, or a .spacy file of predictions"),
    data: Optional[List[str]] = typer.Argument(
        None, help="Gold (.spacy); for a pipeline also .txt files (a document a line) or texts"
    ),
    page: Path = typer.Option(Path("page.html"), "--page", "-o", help="The page to write"),
    spans_key: Optional[str] = typer.Option(
        None, "--spans-key", "-sk", help="Span group to show  [sc]"
    ),
    output: SpanOutput = typer.Option(
        SpanOutput.auto,
        help="Show the span group or doc.ents; auto: what gold has; if it has both, or without "
        "gold, the group if there is one",
    ),
    limit: int = typer.Option(1000, "--limit", "-n", min=0, help=LIMIT_HELP),
    only_errors: bool = typer.Option(
        False, "--only-errors", help="Show only documents with errors; the counts are over all"
    ),
    title: str = typer.Option("Predictions", help="Heading of the page"),
) -> None:
    """Write HTML pages of documents with nested spans, and relations as arcs over the text.

    With gold, true positives, false negatives and false positives are marked, and counted over the
    documents read. Labels have their confidences. Pages are self-contained, with a light and a dark
    mode, and have at most about 2 MB: what does not fit goes to page-2.html and so on.
    """
    import spacy

    from ..analysis.marks import mark_docs
    from ..analysis.pages import documents_pages
    from ..corpus.pairs import load_pairs, require_group
    from ..errors import Errors, UserError
    from ..relations import symmetric_labels

    texts = data or []
    if not texts and not source.endswith(".spacy"):
        raise typer.BadParameter("a pipeline needs input: gold (.spacy), .txt files or texts")
    for item in [source, *texts]:
        if item.endswith((".spacy", ".txt")) and not Path(item).exists():
            raise typer.BadParameter(f"there is no file {item}")
    nlp = None if source.endswith(".spacy") else spacy.load(source)
    pairs, more = load_pairs(nlp or source, texts, limit=limit)
    if not pairs:
        raise UserError(Errors.S028.format(path=", ".join(texts) or source))
    golds = [gold for _, gold in pairs if gold is not None]
    if spans_key is not None and output is SpanOutput.auto:
        shown = golds or [pred for pred, _ in pairs]
        require_group(shown, ", ".join(texts) if golds else source, spans_key=spans_key)
    spans_key = spans_key or "sc"
    symmetric = symmetric_labels(nlp) if nlp else set()
    docs = mark_docs(pairs, output=output.value, spans_key=spans_key, symmetric=symmetric)
    if only_errors and not any(doc.annotated for doc in docs):
        raise UserError(Errors.S180.format(source=source))
    if golds and not any(doc.annotated for doc in docs):
        msg.warn("Gold is not shown: it has no annotation of this kind. See --output, --spans-key")
    if not any(doc.marks for doc in docs):
        keys = sorted(
            {key for pair in pairs for doc in pair if doc is not None for key in doc.spans}
        )
        if output.value == "ents":
            what = "No entities to show: `doc.ents` is empty in all documents"
        elif spans_key in keys:
            what = f"No spans to show: the group '{spans_key}' is empty in all documents"
        else:
            what = f"No spans to show under '{spans_key}': no document has this group"
        others = ", ".join(key for key in keys if key != spans_key) or "none"
        msg.warn(f"{what}. Other span groups: {others}")
    note = " · ".join([source, *(item for item in texts if item.endswith((".spacy", ".txt")))])
    notice = first_only(limit) if more else ""
    if notice:
        msg.warn(notice)
    page.parent.mkdir(parents=True, exist_ok=True)
    pages = documents_pages(
        docs, title=title, note=note, notice=notice, name=page.name, only_errors=only_errors
    )
    names = []
    for name, content in pages:
        page.with_name(name).write_text(content, encoding="utf-8")
        names.append(name)
    n_shown = sum(doc.has_errors for doc in docs) if only_errors else len(docs)
    rest = f" and {len(names) - 1} more pages, up to {names[-1]}" if len(names) > 1 else ""
    msg.good(f"Wrote {n_shown} documents to {page}{rest}")
