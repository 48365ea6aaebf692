"""`spacy spanner config`: one complete training config for a system and an encoder."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer
from wasabi import msg

if TYPE_CHECKING:
    from thinc.api import Config


def config_cli(
    system: str = typer.Argument(
        ...,
        help="The system, such as global_pointer; auto, which takes one that suits --corpus; or ner, "
        "spancat (spaCy's own, for comparison)",
    ),
    encoder: Optional[str] = typer.Option(
        None,
        "--encoder",
        "-e",
        help="hash, vectors, lstm, huggingface, transformer (spacy-transformers), tuned or "
        "tuned_intnet  [hash; lstm for accuracy; auto chooses]",
    ),
    corpus: Optional[Path] = typer.Option(
        None,
        "--corpus",
        "-c",
        help="Training data (.spacy) that the steps should suit",
        exists=True,
    ),
    recipe: Optional[str] = typer.Option(
        None,
        help="paper: the settings of the system's paper instead of ours, or of one of its baselines "
        "(bert_crf, bilstm_crf, cnn_bilstm_crf, rnn_bilstm_crf); paper/genia and so on: those for a corpus",
    ),
    optimize: str = typer.Option(
        "efficiency", help="efficiency, or accuracy: the encoder lstm in a larger form"
    ),
    vectors: Optional[str] = typer.Option(
        None, help="Name or folder of a pipeline with static vectors"
    ),
    no_fit: bool = typer.Option(
        False,
        "--no-fit",
        help="Do not fit threshold and confidences on the development data when training saves",
    ),
    lang: str = typer.Option("en", "--lang", "-l", help="Language code"),
    output: Optional[str] = typer.Option(
        None, help="Where results go: spans, ents or both  [the system's own, or what --corpus has]"
    ),
    spans_key: str = typer.Option("sc", help="Key of the span group"),
    max_width: Optional[int] = typer.Option(
        None, help="Widest span, for systems with such a limit"
    ),
    transformer: Optional[str] = typer.Option(
        None, help="Name or folder of the pretrained transformer"
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
    from spacy.util import is_package

    from ..corpus.convert import require_language
    from ..errors import Errors, UserError, Warnings
    from ..recipe import fit_to_corpus, follow_paper, read_gold, recommend, widest
    from ..training_config import join_config, names, read_recipe

    for name, value, choices in [
        ("output", output, (None, "spans", "ents", "both")),
        ("optimize", optimize, ("accuracy", "efficiency")),
    ]:
        if value not in choices:
            known = ", ".join(filter(None, choices))
            raise UserError(Errors.S104.format(option=name, value=value, choices=known))
    if system == "auto" and recipe is not None:
        raise UserError(Errors.S256.format(names=", ".join(names("papers"))))
    if system == "auto" and corpus is None:
        raise UserError(Errors.S241)
    paper = None
    if recipe is not None or system in set(names("papers")) - set(names("systems")):
        form, _, variant = (recipe or "paper").partition("/")
        for given, offered in [(form, ["paper"]), (system, names("papers"))]:
            if given not in offered:
                reason = Errors.S110.format(kind="recipe", name=given, names=", ".join(offered))
                raise UserError(reason)
        if corpus is None or encoder is not None:
            raise UserError(Errors.S161)
        paper = read_recipe(system, variant)
        system, encoder = paper["recipe"].pop("system", system), paper["recipe"]["encoder"]
    if str(output_file) != "-" and output_file.exists() and not force:
        raise UserError(Errors.S111.format(path=output_file))
    require_language(lang)
    if system != "auto":
        require_name("system", system)
    stats, flat = None, False
    notes: List[str] = []
    if corpus is not None:
        stats, output, notes = read_gold(corpus, system, output=output, spans_key=spans_key)
    if vectors is not None and not (is_package(vectors) or Path(vectors).exists()):
        notes.append(Warnings.SW27.format(vectors=vectors))
    if system == "auto":
        assert stats is not None
        choice = recommend(stats, encoder=encoder, vectors=vectors, transformer=transformer)
        system, encoder, flat, reasons = choice
        notes.extend(reasons)
    encoder = encoder or ("lstm" if optimize == "accuracy" else "hash")
    require_name("encoder", encoder)
    refuse_without_effect(
        system,
        encoder,
        output=output,
        optimize=optimize,
        mixed_precision=mixed_precision,
        of_paper=paper is not None,
    )
    if max_width is None and stats is not None:
        max_width = widest(system, stats)
    config = join_config(
        system,
        encoder,
        lang=lang,
        output=output,
        spans_key=spans_key,
        max_width=max_width,
        # The papers have taggers of one level.
        levels=1 if stats is None or paper is not None else stats.levels_for(99),
        transformer=transformer,
        mixed_precision=mixed_precision,
        optimize=optimize,
        vectors=vectors,
        fit=not no_fit and paper is None,
        paper=paper,
        words=None if stats is None else stats.tokens,
    )
    if flat and output == "both":
        config["components"][system]["overlaps"] = "best"
    if stats is not None:
        length = (fit_to_corpus if paper is None else follow_paper)(config, stats)
        notes.append(", ".join(f"{name} = {value}" for name, value in length.items()))
    config = completed(config, encoder)
    if str(output_file) == "-":
        print(config.to_str())
        for line in notes:
            print(line, file=sys.stderr)
        return
    for line in notes:  # warnings have a code
        (msg.warn if line.startswith("[SW") else msg.info)(line)
    output_file.parent.mkdir(parents=True, exist_ok=True)
    config.to_disk(output_file)
    msg.good(f"Wrote {output_file}")
    train = corpus or Path("train.spacy")
    beside = train.with_name("dev.spacy")
    paths = ["--paths.train", train, "--paths.dev", beside if beside.exists() else beside.name]
    wanted = ["--paths.vectors", "VECTORS"] if encoder == "vectors" and vectors is None else []
    command = ["python", "-m", "spacy", "train", output_file, "--output", "training"]
    print(shlex.join(map(str, [*command, *paths, *wanted])))


def require_name(kind: str, name: str) -> None:
    """Refuse a system or an encoder that there is not."""
    from ..errors import Errors, UserError
    from ..training_config import names

    known = names(f"{kind}s")
    if name not in known:
        raise UserError(Errors.S110.format(kind=kind, name=name, names=", ".join(known)))


def refuse_without_effect(
    system: str,
    encoder: str,
    *,
    output: Optional[str],
    optimize: str,
    mixed_precision: bool,
    of_paper: bool,
) -> None:
    """Refuse options that this system or this encoder does not have.

    of_paper: The recipe of a paper says which encoder it is.
    """
    from ..errors import Errors, UserError
    from ..training_config import component_of, names, own_output, read_overlay

    own, can_change = own_output(component_of(system)["factory"])
    if output not in (None, own) and not can_change:
        reason = f"{system} writes {own} alone"
        raise UserError(Errors.S255.format(option="output", reason=reason, instead=""))
    overlays = {name: read_overlay("encoders", name).to_str() for name in names("encoders")}
    for option, wanted, setting, lack in [
        ("optimize accuracy", optimize == "accuracy", "[accuracy]", "has no larger form"),
        ("mixed-precision", mixed_precision, "mixed_precision =", "is no transformer"),
    ]:
        having = [name for name, overlay in overlays.items() if setting in overlay]
        if wanted and encoder not in having:
            reason = f"the encoder {encoder} {lack}"
            instead = "" if of_paper else f", or choose --encoder {' or '.join(having)}"
            raise UserError(Errors.S255.format(option=option, reason=reason, instead=instead))


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
