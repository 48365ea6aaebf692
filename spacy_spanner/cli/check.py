"""`spacy spanner check`: statistics of a corpus, and problems to expect in training on it."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional

import typer
from wasabi import msg

from .options import print_table

if TYPE_CHECKING:
    from ..corpus.stats import Settings, Stats


# Rows of the table of counts, and the counts of `Stats` they show.
COUNTS = {
    "Documents": "docs",
    "  not annotated": "docs_unannotated",
    "Tokens": "tokens",
    "  longest document": "longest_doc",
    "Spans": "spans",
    "  nested": "nested",
    "  deepest nesting": "max_depth",
    "  crossing": "crossing",
    "  without tokens": "empty",
    "  duplicates": "duplicates",
    "  two labels": "two_labels",
    "  white space at an edge": "blank_edges",
    "  punctuation at an edge": "punct_edges",
}
RELATION_COUNTS = {"Relations": "relations", "  documents annotated": "docs_linked"}


class GoldSource(str, Enum):
    spans = "spans"
    ents = "ents"


def check_cli(
    corpus: Path = typer.Argument(..., help="A .spacy file or a folder of them", exists=True),
    dev: Optional[Path] = typer.Option(None, "--dev", "-d", help="Development data", exists=True),
    config: Optional[Path] = typer.Option(
        None, "--config", "-c", help="Training config to take the settings from", exists=True
    ),
    spans_key: Optional[str] = typer.Option(None, "--spans-key", "-sk", help="Span group  [sc]"),
    output: Optional[GoldSource] = typer.Option(None, help="Which annotation  [spans]"),
    max_width: Optional[int] = typer.Option(None, min=1, help="Widest span, in tokens"),
    window: Optional[int] = typer.Option(None, min=1, help="Tokens of a row  [256]"),
    overlap: Optional[int] = typer.Option(
        None, min=0, help="Tokens that rows of a long text share  [64]"
    ),
    like: Optional[Path] = typer.Option(
        None, help="Texts the model is for, as JSONL: warns if they are much longer"
    ),
    json_path: Optional[Path] = typer.Option(None, "--json", help="Write the statistics as JSON"),
) -> None:
    """Check a corpus before training on it.

    Prints labels, nesting, span widths, how many spans the configured width and window allow, and
    warnings that say what to change. Fails only where there is nothing to train on.
    """
    import srsly

    from ..corpus.advice import advice
    from ..corpus.settings import settings_from_config
    from ..corpus.stats import Settings, corpus_stats, text_lengths

    given: Dict[str, Any] = {
        "spans_key": spans_key,
        "output": output.value if output else None,
        "max_width": max_width,
        "window": window,
        "overlap": overlap,
    }
    settings = settings_from_config(config) if config else Settings()
    settings = replace(settings, **{k: v for k, v in given.items() if v is not None})
    if settings.overlap >= settings.window:
        raise typer.BadParameter("--overlap must be less than --window")
    train_stats = corpus_stats(corpus, settings)
    dev_stats = corpus_stats(dev, settings) if dev else None
    texts = text_lengths(like) if like else None
    warnings = advice(train_stats, settings, dev_stats, texts)
    print_labels(train_stats, dev_stats)
    print_stats(train_stats, dev_stats)
    print_limits(train_stats, settings)
    msg.divider("Advice")
    for warning in warnings:
        msg.warn(warning)
    if not warnings:
        msg.good("No problems found")
    if json_path:
        report = {
            "train": train_stats.as_dict(),
            "dev": dev_stats.as_dict() if dev_stats else None,
            "settings": vars(settings),
            "warnings": warnings,
        }
        json_path.parent.mkdir(parents=True, exist_ok=True)
        srsly.write_json(json_path, report)


def print_labels(train: Stats, dev: Optional[Stats]) -> None:
    msg.divider("Labels")
    names = [*(label for label, _ in train.labels.most_common())]
    names += sorted(set(dev.labels) - set(names)) if dev else []
    rows = []
    for name in names:
        row = [name, f"{train.labels[name]:,}"]
        row.append(f"{100 * train.labels[name] / max(train.spans, 1):.1f}")
        rows.append([*row, f"{dev.labels[name]:,}"] if dev else row)
    header = ["Label", "Train", "%", "Dev"] if dev else ["Label", "Spans", "%"]
    print_table(rows, header)


def print_stats(train: Stats, dev: Optional[Stats]) -> None:
    msg.divider("Documents and spans")
    columns = [train, dev] if dev else [train]
    shown = {**COUNTS, **(RELATION_COUNTS if any(s.docs_linked for s in columns) else {})}
    rows = [(title, *(f"{getattr(s, name):,}" for s in columns)) for title, name in shown.items()]
    print_table(rows, ["", "Train", "Dev"] if dev else ["", "Count"])


def print_limits(train: Stats, settings: Settings) -> None:
    from ..corpus.stats import SHARES

    msg.divider("Widths (tokens)")
    rows = [(f"{share} %", train.width_for(share)) for share in SHARES]
    print_table(rows, ["Spans held", "by width"], n_texts=0)
    spans = max(train.spans, 1)
    if settings.max_width is None:
        msg.info("No max_width: spans of any width can be found")
    else:
        held = 100 * (1 - train.too_wide / spans)
        msg.info(f"max_width = {settings.max_width} holds {held:.2f} % of the spans")
    held = 100 * (1 - train.cut / spans)
    msg.info(
        f"window = {settings.window}, overlap = {settings.overlap} hold {held:.2f} % of the spans; "
        f"{train.docs_cut:,} documents are longer than the window"
    )
