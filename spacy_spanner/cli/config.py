"""`spacy spanner config`: one complete training config for a system and an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer
from wasabi import msg


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
        None, "--output", help="Where results go: spans, ents or both (default: the system's own)"
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
    force: bool = typer.Option(False, "--force", "-F", help="Overwrite the file if it is there"),
):
    """Write one complete config that `spacy train` takes as it is."""
    from ..training_config import complete, join_config, names

    for value, kind in [(system, "systems"), (encoder, "encoders")]:
        if value not in names(kind):
            msg.fail(
                f"There is no {kind[:-1]} '{value}'", "Choose: " + ", ".join(names(kind)), exits=1
            )
    if output not in (None, "spans", "ents", "both"):
        msg.fail(f"--output {output} is not possible", "Choose: spans, ents, both", exits=1)
    if str(output_file) != "-" and output_file.exists() and not force:
        msg.fail(f"{output_file} is there already", "Use --force to overwrite it", exits=1)
    try:
        joined = join_config(
            system,
            encoder,
            lang=lang,
            output=output,
            spans_key=spans_key,
            max_width=max_width,
            transformer=transformer,
            mixed_precision=mixed_precision,
        )
    except ValueError as error:
        msg.fail("No config was written", str(error), exits=1)
    config = complete(joined)
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
