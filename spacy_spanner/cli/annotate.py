"""`spacy spanner annotate`: files in, entities out, in shards that survive a stop."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer
from wasabi import msg

from ..errors import Errors, Warnings

if TYPE_CHECKING:
    from ..distributed.annotate import Totals


class InputFormat(str, Enum):
    auto = "auto"
    text = "text"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"
    spacy = "spacy"


class OutputFormat(str, Enum):
    jsonl = "jsonl"
    parquet = "parquet"
    spacy = "spacy"


class Engine(str, Enum):
    local = "local"
    ray = "ray"
    spark = "spark"


def annotate_cli(
    inputs: List[str] = typer.Argument(
        ..., help="Files, folders, quoted patterns, or - for standard input"
    ),
    model: str = typer.Option(..., "--model", "-m", help="A trained pipeline"),
    output: Path = typer.Option(..., "--output", "-o", help="Folder of the results"),
    format: OutputFormat = typer.Option(OutputFormat.jsonl, "--format", "-f"),
    input_format: InputFormat = typer.Option(
        InputFormat.auto, help="By the ending of each name, or text for -"
    ),
    text_field: str = typer.Option("text", help="In JSONL, CSV and Parquet"),
    source: List[str] = typer.Option(
        [], "--source", "-s", help="Only these: ents, or keys of span groups  [all]"
    ),
    relations: bool = typer.Option(False, "--relations", "-r", help="Write relations as well"),
    batch_words: int = typer.Option(4000, "--batch-words", "-b", min=1, help="Words of a batch"),
    shard_size: int = typer.Option(1000, min=1, help="Records in a result file"),
    n_process: int = typer.Option(1, "--n-process", "-n", min=1, help="Processes of this machine"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
    threads: int = typer.Option(
        0, min=0, help="Of torch in each worker  [1 where there are several]"
    ),
    fast_transformer: bool = typer.Option(
        True,
        "--fast-transformer/--no-fast-transformer",
        help="Run spacy-transformers by our encoder where vectors are the same",
    ),
    engine: Engine = typer.Option(Engine.local, "--engine", "-e"),
    actors: int = typer.Option(2, min=1, help="Workers of Ray or Spark"),
    address: Optional[str] = typer.Option(
        None, help="Ray cluster or Spark master  [one on this machine]"
    ),
) -> None:
    """Annotate documents with a trained pipeline.

    Every shard of records becomes one file of the output folder, whole or not at all. The same command
    resumes a run that was stopped. Records that cannot be annotated are listed in rejects/.
    """
    from ..distributed.inputs import display_name
    from ..distributed.signals import Interrupted, handled, interrupt

    try:
        with handled(interrupt):  # before the other imports, which take seconds
            from ..distributed.annotate import annotate_files
            from ..distributed.engines import Workers
            from ..distributed.worker import WorkerSettings

            settings = WorkerSettings(
                model=str(Path(model).resolve()) if Path(model).is_dir() else model,
                output=str(output.resolve()),
                format=format.value,
                text_field=text_field,
                sources=tuple(source),
                relations=relations,
                batch_words=batch_words,
                gpu_id=gpu_id,
                threads=threads,
                fast_transformer=fast_transformer,
            )
            totals = annotate_files(
                inputs,
                settings,
                engine=engine.value,
                workers=Workers(n_process if engine == Engine.local else actors, address),
                input_format=input_format.value,
                shard_size=shard_size,
                progress=True,
            )
    except Interrupted as stop:
        message = Errors.S121.format(signal=stop, path=display_name(output))
        msg.fail("The run has stopped", message)
        raise typer.Exit(stop.exit_code) from None
    show_totals(totals, display_name(output))


def show_totals(totals: Totals, output: str) -> None:
    """Say what a run did."""
    if totals.earlier:
        msg.info(f"{totals.earlier:,} of {totals.shards:,} shards were already there")
    if totals.damaged:
        msg.warn(f"{totals.damaged:,} finished shards were damaged and have been done again")
    if totals.products:
        msg.info(f"Matrix products: {totals.products}")
    if totals.encoder:
        msg.info(f"Transformer: {totals.encoder}")
    speed = totals.words / max(totals.seconds, 1e-9)
    msg.good(
        f"{totals.docs:,} documents in {totals.seconds:,.1f} s ({speed:,.0f} words/s): {output}"
    )
    if totals.no_sources:
        msg.warn(Warnings.SW22.format(sources=", ".join(totals.no_sources)))
    if totals.rejects:
        msg.warn(f"{totals.rejects:,} records were rejected: see {output}/rejects")
