"""`spacy spanner quantize`: a smaller and faster pipeline, and what it costs in F."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import typer
from wasabi import msg

from .options import SpanOutput, print_table


def quantize_cli(
    pipeline: str = typer.Argument(..., help="A trained pipeline over our Hugging Face encoder"),
    output: Path = typer.Option(..., "--output", "-o", help="Folder of the new pipeline"),
    corpus: Path = typer.Option(..., exists=True, help="Gold to compare by (.spacy)"),
    spans_key: str = typer.Option("sc", "--spans-key", "-sk", help="Span group to score"),
    score: SpanOutput = typer.Option(SpanOutput.auto, help="The span group or doc.ents"),
    limit: int = typer.Option(200, "--limit", "-n", min=1, help="Texts that speed is measured on"),
    threads: int = typer.Option(1, min=1, help="Of torch and onnxruntime"),
    force: bool = typer.Option(False, "--force", "-F", help="Overwrite the folder"),
) -> None:
    """Give the transformer of a pipeline int8 weights, run by onnxruntime.

    The new pipeline is for prediction alone. It needs the extra onnx wherever it is loaded. Words per
    second, size and F are shown before and after.
    """
    import spacy

    from ..analysis.systems import load_systems
    from ..corpus.texts import read_texts
    from ..errors import Errors, UserError
    from ..quantization.pipeline import quantize
    from ..timing.measure import measure

    if output.exists() and not force:
        raise UserError(Errors.S111.format(path=output))
    texts = [text for text in read_texts(corpus) if text.strip()][:limit]
    if not texts:
        raise UserError(Errors.S028.format(path=corpus))
    quantize(spacy.load(pipeline)).to_disk(output)
    msg.good(f"Saved the pipeline to {output}")
    both = [pipeline, str(output)]
    systems, _ = load_systems(both, str(corpus), output=score.value, spans_key=spans_key)
    show_change(systems, measure(both, texts, rounds=3, threads=threads), both)


def show_change(systems: List[Any], measured: List[Any], pipelines: List[str]) -> None:
    """A table of both, and the difference of F."""
    from ..analysis.scores import overall, paired_bootstrap

    rows = [
        ("Words/s", *(f"{figures['words_per_second']:,.0f}" for figures in measured)),
        ("p95 of a text, ms", *(f"{figures['latency_ms']['p95']:.1f}" for figures in measured)),
        ("Memory, MB", *(f"{figures['memory_mb']:,.0f}" for figures in measured)),
        ("On disk, MB", *(f"{folder_mb(name):,.1f}" for name in pipelines)),
        ("F", *(f"{100 * overall(system).f_score:.2f}" for system in systems)),
    ]
    print_table(rows, ("", "Before", "After"))
    change = paired_bootstrap(systems[1], systems[0])
    msg.text(
        f"F changed by {100 * change.value:+.2f} (95 % interval {100 * change.low:+.2f} to "
        f"{100 * change.high:+.2f}, by a paired bootstrap with {change.resamples} draws)"
    )


def folder_mb(pipeline: str) -> float:
    """Size of a pipeline on disk."""
    import spacy

    folder = Path(pipeline)
    if not folder.is_dir():  # a package
        folder = spacy.util.get_package_path(pipeline)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
