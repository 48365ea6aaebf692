"""`spacy spanner config`: one complete training config for a system and an encoder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer
from wasabi import msg

if TYPE_CHECKING:
    from thinc.api import Config


def config_cli(
    system: str = typer.Argument(
        ...,
        help="The system, such as global_pointer; or ner, spancat (spaCy's own, for comparison)",
    ),
    encoder: str = typer.Option(
        "hash",
        "--encoder",
        "-e",
        help="hash, vectors, huggingface, transformer (spacy-transformers), tuned or tuned_intnet",
    ),
    lang: str = typer.Option("en", "--lang", "-l", help="Language code"),
    output: Optional[str] = typer.Option(
        None, "--output", help="Where results go: spans, ents or both  [the system's own]"
    ),
    spans_key: str = typer.Option("sc", "--spans-key", help="Key of the span group"),
    max_width: Optional[int] = typer.Option(
        None, "--max-width", help="Widest span, for systems with such a limit"
    ),
    transformer: Optional[str] = typer.Option(
        None, "--transformer", help="Name or folder of the pretrained transformer"
    ),
    mixed_precision: bool = typer.Option(
        False, "--mixed-precision", help="Half precision inside the transformer (GPU)"
    ),
    output_file: Path = typer.Option(
        Path("config.cfg"),
        "--output-file",
        "-o",
        help="File to write, or - for standard output",
        allow_dash=True,
    ),
    force: bool = typer.Option(False, "--force", "-F", help="Overwrite an existing file"),
) -> None:
    """Write one complete config that `spacy train` takes as it is."""
    from ..corpus.convert import require_language
    from ..errors import Errors, UserError
    from ..training_config import join_config, names

    for value, kind in [(system, "systems"), (encoder, "encoders")]:
        if value not in names(kind):
            known = ", ".join(names(kind))
            raise UserError(Errors.S110.format(kind=kind[:-1], name=value, names=known))
    if output not in (None, "spans", "ents", "both"):
        choices = "spans, ents, both"
        raise UserError(Errors.S104.format(option="output", value=output, choices=choices))
    if str(output_file) != "-" and output_file.exists() and not force:
        raise UserError(Errors.S111.format(path=output_file))
    require_language(lang)
    config = join_config(
        system,
        encoder,
        lang=lang,
        output=output,
        spans_key=spans_key,
        max_width=max_width,
        transformer=transformer,
        mixed_precision=mixed_precision,
    )
    config = completed(config, encoder)
    if str(output_file) == "-":
        print(config.to_str())
        return
    output_file.parent.mkdir(parents=True, exist_ok=True)
    config.to_disk(output_file)
    msg.good(f"Wrote {output_file}")
    vectors = " --paths.vectors VECTORS" if encoder == "vectors" else ""
    print(
        f"python -m spacy train {output_file} --output training "
        f"--paths.train train.spacy --paths.dev dev.spacy{vectors}"
    )


def completed(config: Config, encoder: str) -> Config:
    """The config with all defaults, or the extra that its encoder needs."""
    from ..errors import Errors, UserError
    from ..training_config import complete

    try:
        return complete(config)
    except (ValueError, ImportError) as error:
        package = "spacy-transformers"
        if encoder != "transformer" or find_spec(package.replace("-", "_")) is not None:
            raise
        extra = "spacy-spanner[transformers]"
        reason = Errors.S107.format(encoder=encoder, package=package, extra=extra)
        raise UserError(reason) from error
