"""End with one line if spaCy cannot use the GPU: spaCy itself would say so in a traceback."""

import spacy
import typer
from thinc.api import has_cupy
from wasabi import msg


def main(gpu_id: int = typer.Argument(0)) -> None:
    try:
        spacy.require_gpu(gpu_id)
    except ValueError as error:
        install = "" if has_cupy else " Install cupy: pip install 'spacy-spanner[cuda12x]'."
        print(f"GPU {gpu_id} cannot be used.{install} {' '.join(str(error).split())}")
        raise typer.Exit(1) from error
    msg.good(f"spaCy uses GPU {gpu_id}")


if __name__ == "__main__":
    typer.run(main)
