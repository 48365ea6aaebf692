"""Write the config of each system and train it: same encoder, data, steps and seed."""

import subprocess
import sys
from pathlib import Path
from typing import List

import typer
from wasabi import msg

from spacy_spanner.training_config import component_of, is_ours


def run(*command: str) -> None:
    """A command of spaCy; its exit code is ours if it fails."""
    result = subprocess.run([sys.executable, "-m", "spacy", *command])
    if result.returncode:
        raise typer.Exit(result.returncode)


def main(
    systems: List[str] = typer.Argument(..., help="Names that `spacy spanner config` knows"),
    train: str = typer.Option(...),
    dev: str = typer.Option(...),
    output: Path = typer.Option(..., help="A folder; each system gets one below it"),
    encoder: str = typer.Option("hash"),
    transformer: str = typer.Option("roberta-base"),
    lang: str = typer.Option("en"),
    spans_key: str = typer.Option("sc"),
    max_width: int = typer.Option(10, help="Widest span that spancat looks at"),
    steps: int = typer.Option(1000),
    eval_frequency: int = typer.Option(100),
    seed: int = typer.Option(0),
    gpu_id: int = typer.Option(-1),
) -> None:
    for system in systems:
        msg.divider(system)
        config = str(output / f"{system}.cfg")
        data = ["--encoder", encoder, "--lang", lang, "--spans-key", spans_key, "--output", "spans"]
        if encoder in ("transformer", "huggingface"):
            data += ["--transformer", transformer]
        if not is_ours(component_of(system)):
            data += ["--max-width", str(max_width)]
        run("spanner", "config", system, *data, "--force", "-o", config)
        paths = ["--paths.train", train, "--paths.dev", dev, "--output", str(output / system)]
        numbers = {
            "--training.max_steps": steps,
            "--training.eval_frequency": eval_frequency,
            "--system.seed": seed,
            "--gpu-id": gpu_id,
        }
        run("train", config, *paths, *(str(part) for item in numbers.items() for part in item))


if __name__ == "__main__":
    typer.run(main)
