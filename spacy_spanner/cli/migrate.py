"""`spacy spanner migrate`: from spacy-transformers to the encoder over current transformers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer
from wasabi import msg

if TYPE_CHECKING:
    from spacy.language import Language


def migrate_cli(
    source: Path = typer.Argument(
        ..., help="A config file, or the folder of a trained pipeline", exists=True
    ),
    target: Path = typer.Argument(..., help="File or folder to write"),
    check: Optional[Path] = typer.Option(
        None,
        help="Documents that the old pipeline annotated (.spacy); the new one must give the same",
        exists=True,
    ),
    force: bool = typer.Option(False, "--force", "-F", help="Overwrite what is there"),
) -> None:
    """Rewrite a config, or convert a trained pipeline, that uses spacy-transformers.

    The result needs the extra huggingface alone. A pipeline is converted with the weights it has.
    Its output is compared with that of the old one: on the documents of --check, or, where
    spacy-transformers is installed, on a few sentences.
    """
    from thinc.api import Config

    from ..migration.config import migrate_config

    if target.exists() and not force:
        msg.fail(f"{target} is there already", "Use --force to overwrite it", exits=1)
    try:
        if source.is_dir():
            migrate_folder(source, target, check)
            return
        migrated = migrate_config(Config().from_disk(source, interpolate=False))
    except ValueError as error:
        msg.fail("Nothing was migrated", str(error), exits=1)
    target.parent.mkdir(parents=True, exist_ok=True)
    migrated.config.to_disk(target)
    print_notes(migrated.notes)
    msg.good(f"Wrote {target}")


def migrate_folder(source: Path, target: Path, check: Optional[Path]) -> None:
    import spacy

    from ..migration.pipeline import migrate_pipeline

    result = migrate_pipeline(source)
    result.nlp.to_disk(target)
    print_notes(result.notes)
    msg.good(f"Wrote {target}")
    compare(source, spacy.load(target), check)


def compare(source: Path, nlp: Language, check: Optional[Path]) -> None:
    """Tell whether the output is the same; exit code 1 if it is not."""
    import spacy
    from spacy.tokens import DocBin

    from ..migration.check import SAMPLE, blank_copies, differences

    if check is not None:
        old = list(DocBin().from_disk(check).get_docs(nlp.vocab))
    elif find_spec("spacy_transformers") is not None:
        old = list(spacy.load(source).pipe(SAMPLE))
    else:
        msg.warn(
            "The output was not compared with that of the old pipeline",
            "Annotate some texts where spacy-transformers is installed (python -m spacy apply), "
            "and give the file to --check.",
        )
        return
    different = differences(old, nlp.pipe(blank_copies(nlp, old)))
    if different:
        title = f"The output differs in {len(different)} of {len(old)} documents"
        msg.fail(title, "\n".join(different[:10]), exits=1)
    msg.good(f"The output is the same in {len(old)} documents")


def print_notes(notes: List[str]) -> None:
    for note in notes:
        msg.warn(note)
