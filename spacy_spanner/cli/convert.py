"""`spacy spanner convert`: annotated files to .spacy files."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, List

import typer
from wasabi import msg

if TYPE_CHECKING:
    from ..corpus.convert import Converted


class Format(str, Enum):
    auto = "auto"
    jsonl = "jsonl"
    conll = "conll"
    germeval = "germeval"
    brat = "brat"
    spert = "spert"


class Alignment(str, Enum):
    strict = "strict"
    contract = "contract"
    expand = "expand"


class Join(str, Enum):
    none = "none"
    doc = "doc"


def convert_cli(
    inputs: List[Path] = typer.Argument(..., help="Files, or folders of brat files", exists=True),
    output: Path = typer.Argument(..., help="A folder, or one file in .spacy for all inputs"),
    format: Format = typer.Option(Format.auto, "--format", "-f", help="Format of the inputs"),
    lang: str = typer.Option("en", "--lang", "-l", help="Language, whose tokenizer cuts raw text"),
    spans_key: str = typer.Option("sc", "--spans-key", "-sk", help="Span group to write"),
    alignment_mode: Alignment = typer.Option(
        Alignment.strict, "--alignment-mode", "-a", help="Character spans that end within a token"
    ),
    token_column: int = typer.Option(0, "--token-column", help="CoNLL: column of the token"),
    tag_column: List[int] = typer.Option(
        [-1], "--tag-column", help="CoNLL: column of the tag; once for each level of nesting"
    ),
    join: Join = typer.Option(
        Join.none, "--join", help="doc: one document of all sentences that share a document id"
    ),
) -> None:
    """Convert annotated text to .spacy files.

    Reads JSON lines (tokens or text), CoNLL columns (IOB1, IOB2, BIOES, BILOU), GermEval 2014 TSV,
    brat standoff and SpERT JSON. All spans go to doc.spans, the outermost ones also to doc.ents,
    relations and document ids to doc.user_data. A malformed line stops the conversion before
    anything is written.
    """
    from ..corpus.convert import convert
    from ..corpus.record import CorpusError

    try:
        results = convert(
            inputs,
            output,
            format=format.value,
            lang=lang,
            spans_key=spans_key,
            alignment_mode=alignment_mode.value,
            token_column=token_column,
            tag_columns=tag_column,
            join=join is Join.doc,
            progress=True,
        )
    except (CorpusError, ImportError, OSError) as error:  # ImportError: no such language
        msg.fail("Nothing was converted", str(error), exits=1)
    for result in results:
        print_result(result, alignment_mode.value)


def print_result(result: Converted, alignment_mode: str) -> None:
    summary = result.summary
    msg.good(f"{result.target} ({', '.join(sorted(set(result.formats)))})")
    nested = 100 * summary.nested / max(summary.spans, 1)
    labels = ", ".join(f"{label} {count:,}" for label, count in summary.labels.most_common())
    rows = [
        ("Documents", f"{summary.docs:,}"),
        ("Tokens", f"{summary.tokens:,}"),
        ("Spans", f"{summary.spans:,}"),
        ("Nested", f"{summary.nested:,} ({nested:.1f} %)"),
        ("Labels", labels or "none"),
        ("Misaligned", f"{summary.misaligned:,}"),
    ]
    if summary.relations or summary.lost_relations:
        rows.append(("Relations", f"{summary.relations:,}"))
    msg.table(rows, aligns=("l", "l"))
    if summary.misaligned:
        placed = summary.misaligned - summary.dropped
        msg.warn(
            f"{summary.misaligned:,} spans begin or end within a token: {summary.dropped:,} were "
            f"left out, {placed:,} moved to token boundaries ({alignment_mode}). Among them:",
            "\n".join(summary.examples),
        )
    if summary.lost_relations:
        msg.warn(f"{summary.lost_relations:,} relations were left out with their spans")
    if summary.duplicates:
        msg.warn(f"{summary.duplicates:,} repeated spans were kept once")
    for what, count in summary.skipped.items():
        msg.warn(f"{count:,} {what} were left out")
