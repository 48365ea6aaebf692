"""`spacy spanner quickstart`: four questions, then the commands from annotated files to results."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

import typer

Step = Tuple[str, List[str]]  # what it does, the arguments of `python -m spacy`


def quickstart_cli(
    train: Optional[str] = typer.Option(None, "--train", "-t", help="Annotated file to learn from"),
    dev: Optional[str] = typer.Option(None, "--dev", "-d", help="Annotated file to measure on"),
    lang: Optional[str] = typer.Option(None, "--lang", "-l", help="Language code  [en]"),
    nested: Optional[bool] = typer.Option(
        None, "--nested/--flat", help="Whether spans may overlap  [nested]"
    ),
    gpu: bool = typer.Option(
        False, "--gpu", help="A pretrained transformer on a GPU, in place of a small encoder"
    ),
    texts: str = typer.Option(
        "corpus/dev.spacy", help="File or folder that the model is to annotate"
    ),
) -> None:
    """Print the commands to run for your files.

    Missing options are prompted for if there is a terminal; otherwise the language is English and
    spans may overlap. Nothing is run and nothing is written.
    """
    from ..corpus.convert import require_language
    from ..errors import Errors, UserError

    train = answer(train, "--train", lambda: typer.prompt("Annotated file to learn from", err=True))
    dev = answer(dev, "--dev", lambda: typer.prompt("Annotated file to measure on", err=True))
    ask_lang = "Language of the texts (code)"
    lang = answer(lang, "--lang", lambda: typer.prompt(ask_lang, "en", err=True), default="en")
    ask_nested = "May a span lie inside or across another?"
    nested = answer(
        nested, "--nested", lambda: typer.confirm(ask_nested, True, err=True), default=True
    )
    require_language(lang)
    for path in (train, dev):
        if not Path(path).exists():
            raise UserError(Errors.S182.format(path=path))
    for what, command in steps(train, dev, lang=lang, nested=nested, gpu=gpu, texts=texts):
        print(f"# {what}\n{shlex.join(['python', '-m', 'spacy', *command])}")


def answer(given: Any, option: str, ask: Callable[[], Any], *, default: Any = None) -> Any:
    """The value of an option, else the answer of the user, else the default where there is one."""
    from ..errors import Errors, UserError

    if given is not None:
        return given
    if can_ask():
        return ask()
    if default is None:
        raise UserError(Errors.S181.format(option=option))
    return default


def can_ask() -> bool:
    """There is a terminal."""
    return sys.stdin.isatty()


def steps(train: str, dev: str, *, lang: str, nested: bool, gpu: bool, texts: str) -> List[Step]:
    """The commands to run, in order."""
    device = ["--gpu-id", "0"] if gpu else []
    corpora = {"train": "corpus/train.spacy", "dev": "corpus/dev.spacy"}
    language = ["--lang", lang]
    encoder = ["--encoder", "huggingface"] if gpu else []
    output = [] if nested else ["--output", "ents"]
    options = ["--corpus", corpora["train"], *encoder, *output, *language, "-o", "config.cfg"]
    paths = [part for name, path in corpora.items() for part in (f"--paths.{name}", path)]
    model = "training/model-best"
    return [
        ("Convert", ["spanner", "convert", train, corpora["train"], *language]),
        ("The same for the other file", ["spanner", "convert", dev, corpora["dev"], *language]),
        ("Look for mistakes", ["spanner", "check", corpora["train"], "--dev", corpora["dev"]]),
        ("Write a config", ["spanner", "config", "auto", *options]),
        ("Train", ["train", "config.cfg", "--output", "training", *paths, *device]),
        ("Measure", ["evaluate", model, corpora["dev"], *device]),
        ("Use", ["spanner", "annotate", texts, "-m", model, "-o", "annotated", *device]),
    ]
