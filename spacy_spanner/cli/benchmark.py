"""`spacy spanner benchmark`: what pipelines cost on this machine."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer
from wasabi import msg

from .options import print_table

if TYPE_CHECKING:
    from ..timing.measure import Measured


def benchmark_cli(
    pipelines: List[str] = typer.Argument(..., help="Trained pipelines"),
    texts: Path = typer.Option(
        ..., "--texts", "-t", exists=True, help="Texts: .txt (one a line), .jsonl or .spacy"
    ),
    limit: int = typer.Option(500, "--limit", "-n", min=1, help="Maximum number of texts"),
    rounds: int = typer.Option(
        3, "--rounds", "-r", min=1, help="Measured rounds, after one to warm up"
    ),
    threads: int = typer.Option(0, min=0, help="Threads of torch  [its default]"),
    json_file: Optional[Path] = typer.Option(None, "--json", help="Write the figures here"),
    page: Optional[Path] = typer.Option(None, help="Write an HTML page here"),
) -> None:
    """Measure pipelines on the same texts, in turn.

    Words per second in batches, latency of single texts, peak memory, the time to start, and what each
    component takes. Every pipeline has a process of its own; matrix products are the fastest ones.
    """
    from ..corpus.texts import read_texts
    from ..errors import Errors, UserError
    from ..timing.measure import benchmark_page, measure

    found = [text for text in islice(read_texts(texts), limit) if text.strip()]
    if not found:
        raise UserError(Errors.S028.format(path=texts))
    measured = measure(pipelines, found, rounds=rounds, threads=threads)
    show_measured(measured)
    if json_file is not None:
        json_file.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        msg.good(f"Wrote the figures to {json_file}")
    if page is not None:
        note = f"{texts} · {len(found):,} texts · {rounds} rounds"
        page.write_text(benchmark_page(measured, note=note), encoding="utf-8")
        msg.good(f"Wrote the page to {page}")


def show_measured(measured: List[Measured]) -> None:
    """Two tables: pipelines, and their components."""
    rows = [
        (
            run["pipeline"],
            f"{run['words_per_second']:,.0f}",
            *(f"{value:.1f}" for value in run["latency_ms"].values()),
            f"{run['memory_mb']:,.0f}",
            f"{run['start_seconds']['all']:.2f}",
            run["products"],
        )
        for run in measured
    ]
    head = ("Pipeline", "Words/s", "p50 ms", "p95 ms", "p99 ms", "MB", "Start s", "Products")
    msg.table(rows, header=head, divider=True, aligns=("l", *"rrrrrr", "l"))
    parts = [
        (run["pipeline"], name, f"{100 * part['share']:.1f}", f"{part['words_per_second']:,.0f}")
        for run in measured
        for name, part in run["components"].items()
    ]
    print_table(parts, ("Pipeline", "Component", "% of time", "Words/s"), n_texts=2)
