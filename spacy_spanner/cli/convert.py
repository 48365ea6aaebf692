"""`spacy spanner convert`: annotated files to .spacy files."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer
from wasabi import msg

if TYPE_CHECKING:
    from ..corpus.convert import Converted


class Alignment(str, Enum):
    strict = "strict"
    contract = "contract"
    expand = "expand"


class JoinBy(str, Enum):
    none = "none"
    doc = "doc"


def convert_cli(
    inputs: List[Path] = typer.Argument(..., help="Files, or folders of brat files", exists=True),
    output: Path = typer.Argument(..., help="A folder, or one file in .spacy for all inputs"),
    format: str = typer.Option(
        "auto", "--format", "-f", help="Format of the inputs; auto detects it from their content"
    ),
    lang: str = typer.Option(
        "en", "--lang", "-l", help="Language, whose tokenizer splits raw text"
    ),
    spans_key: str = typer.Option("sc", "--spans-key", "-sk", help="Span group to write"),
    alignment_mode: Alignment = typer.Option(
        Alignment.strict, "--alignment-mode", "-a", help="Character spans that end within a token"
    ),
    text_field: Optional[str] = typer.Option(None, help="JSON: field with the text  [text]"),
    tag_field: List[str] = typer.Option(
        [],
        help="Hugging Face, CoNLL-U: field of the tags; once for each level of nesting  [ner_tags, NER]",
    ),
    tag_names: Optional[str] = typer.Option(
        None, help="Names of tags given as numbers: O,B-PER,... or a file"
    ),
    token_column: int = typer.Option(0, help="CoNLL: column of the token"),
    tag_column: List[int] = typer.Option(
        [-1], help="CoNLL: column of the tag; once for each level of nesting"
    ),
    folds: int = typer.Option(
        0, min=0, help="Cross-validation: so many pairs of NAME-0-train and NAME-0-test"
    ),
    join: JoinBy = typer.Option(
        JoinBy.none, help="doc: one document of all sentences that share a document id"
    ),
) -> None:
    """Convert annotated text to .spacy files.

    Reads JSON lines (tokens or text), Prodigy, doccano, Label Studio, spaCy 2 and SpERT JSON, NYT and
    WebNLG, SciERC, ADE, Hugging Face tokens and tags, CoNLL columns, CoNLL-U, GermEval 2014, brat and
    .spacy, also compressed with gzip. All spans go to doc.spans, the outermost ones also to doc.ents,
    relations and document ids to doc.user_data. A malformed line stops the conversion before anything is
    written.
    """
    from ..corpus.convert import convert
    from ..corpus.record import ReadOptions
    from ..corpus.tagged import parse_names

    options = ReadOptions(
        token_column=token_column,
        tag_columns=tag_column,
        tag_fields=tag_field,
        tag_names=parse_names(tag_names) if tag_names is not None else (),
        text_field=text_field,
    )
    results = convert(
        inputs,
        output,
        format=format,
        lang=lang,
        spans_key=spans_key,
        alignment_mode=alignment_mode.value,
        options=options,
        join=join is JoinBy.doc,
        folds=folds,
        progress=True,
    )
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
    for text in summary.warnings:
        msg.warn(text)
    if summary.misaligned:
        placed = summary.misaligned - summary.dropped
        advice = (
            ". Correct the offsets, or keep these spans with --alignment-mode expand or contract"
        )
        msg.warn(
            f"{summary.misaligned:,} spans begin or end within a token: {summary.dropped:,} were "
            f"left out, {placed:,} moved to token boundaries ({alignment_mode})"
            f"{advice if summary.dropped else ''}. Among them:",
            "\n".join(summary.examples),
        )
    if summary.lost_relations:
        msg.warn(f"{summary.lost_relations:,} relations were left out with their spans")
    if summary.duplicates:
        msg.warn(f"{summary.duplicates:,} repeated spans were kept once")
    for what, count in summary.skipped.items():
        msg.warn(f"{count:,} {what} were left out")
