"""`python -m benchmarks`: accuracy, speed and the report; see `make bench`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

ONE_THREAD = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Tensors of ever other sizes otherwise leave gaps that glibc does not give back: gigabytes.
    "MALLOC_MMAP_THRESHOLD_": "1048576",
}

app = typer.Typer(
    help=__doc__,
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Options that several commands have.
DATA = typer.Option(
    Path("assets"), "--data", help="Folder of corpora: NAME/train.jsonl, NAME/dev.jsonl"
)
VECTORS = typer.Option(None, "--vectors", help="Pipeline with vectors, from `spacy init vectors`")
TRANSFORMER = typer.Option(None, "--transformer", help="Name or folder of the transformer")
MINUTES = typer.Option(15.0, "--minutes", help="Most minutes of one training")
