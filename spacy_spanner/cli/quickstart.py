"""`spacy spanner quickstart`: four questions, then the commands from annotated files to results."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

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
    texts: Optional[str] = typer.Option(
        None, help="File or folder that the model is to annotate  [the development data]"
    ),
) -> None:
    """Print the commands to run for your files.

    Missing options are prompted for if there is a terminal; otherwise the language is English and
    spans may overlap. Files in .spacy are used where they are. Nothing is run and nothing is written.
    """
    from spacy.vocab import Vocab

    from ..corpus.convert import require_language
    from ..corpus.docs import SUFFIX, read_docs
    from ..corpus.pairs import annotated_kinds
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
    kinds = {"spans": True, "ents": True}  # as `convert` writes them
    if train.endswith(SUFFIX):
        kinds = annotated_kinds(read_docs(Path(train), Vocab()), "sc")
    # In a shell of their own, so that an error ends none in which somebody works.
    print("(\nset -e")  # no comments: pasted into zsh, they are commands
    for what, command in steps(
        train, dev, lang=lang, nested=nested, gpu=gpu, texts=texts, kinds=kinds
    ):
        print(f"echo {shlex.quote(what)} >&2")
        print(shlex.join(["python", "-m", "spacy", *command]))
    print(")")


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


def steps(
    train: str,
    dev: str,
    *,
    lang: str,
    nested: bool,
    gpu: bool,
    texts: Optional[str],
    kinds: Dict[str, bool],
) -> List[Step]:
    """The commands to run, in order.

    kinds: What the training data will have, "spans" and "ents".
    """
    from ..corpus.docs import SUFFIX

    device = ["--gpu-id", "0"] if gpu else []
    language = ["--lang", lang]
    converted: List[Step] = []
    corpora = {"train": train, "dev": dev}
    for name, path in corpora.items():
        if not path.endswith(SUFFIX):
            corpora[name] = f"corpus/{name}{SUFFIX}"
            convert = ["spanner", "convert", path, corpora[name], *language]
            converted.append(("The same for the other file" if converted else "Convert", convert))
    encoder = ["--encoder", "huggingface"] if gpu else []
    ents = ["--output", "ents"]
    output = [] if nested or not kinds["ents"] else ents
    source = ents if kinds["ents"] and not kinds["spans"] else []
    options = ["--corpus", corpora["train"], *encoder, *output, *language, "-o", "config.cfg"]
    paths = [part for name, path in corpora.items() for part in (f"--paths.{name}", path)]
    model, files = "training/model-best", [corpora["train"], "--dev", corpora["dev"]]
    annotate = ["spanner", "annotate", texts or corpora["dev"], "-m", model, "-o", "annotated"]
    return [
        *converted,
        ("Look for mistakes", ["spanner", "check", *files, *source]),
        ("Write a config", ["spanner", "config", "auto", *options]),
        ("Train", ["train", "config.cfg", "--output", "training", *paths, *device]),
        ("Measure", ["evaluate", model, corpora["dev"], *device]),
        ("Use", [*annotate, *device]),
    ]
