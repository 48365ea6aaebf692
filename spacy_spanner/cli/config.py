"""`spacy spanner config`: one complete training config for a system and an encoder."""

from __future__ import annotations

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
        None, help="Where results go: spans, ents or both  [the system's own]"
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
    from spacy.vocab import Vocab

    from ..corpus.convert import require_language
    from ..corpus.docs import read_docs
    from ..corpus.pairs import choose_output
    from ..corpus.stats import Settings, corpus_stats
    from ..errors import Errors, UserError, Warnings
    from ..recipe import fit_to_corpus, follow_paper, recommend, widest
    from ..training_config import join_config, names, read_recipe

    for name, value, choices in [
        ("output", output, (None, "spans", "ents", "both")),
        ("optimize", optimize, ("accuracy", "efficiency")),
    ]:
        if value not in choices:
            known = ", ".join(filter(None, choices))
            raise UserError(Errors.S104.format(option=name, value=value, choices=known))
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
    stats = None
    if corpus is not None:
        gold = choose_output(output or "auto", read_docs(corpus, Vocab()), spans_key=spans_key)
        stats = corpus_stats(corpus, Settings(output=gold, spans_key=spans_key))
        if not stats.spans:
            source = "`doc.ents`" if gold == "ents" else f"`doc.spans['{spans_key}']`"
            raise UserError(Errors.S250.format(path=corpus, source=source))
    notes: List[str] = []
    flat = False
    if system == "auto":
        assert stats is not None
        if output is None and gold == "ents" and stats.keys:
            keys = ", ".join(sorted(stats.keys))
            msg.warn(Warnings.SW21.format(path=corpus, key=spans_key, keys=keys))
        choice = recommend(stats, encoder=encoder, vectors=vectors, transformer=transformer)
        system, encoder, flat, notes = choice
        # Where the gold is in a span group, flat entities are learned from it, too.
        output = output or ("ents" if gold == "ents" else "both")
    encoder = encoder or ("lstm" if optimize == "accuracy" else "hash")
    for value, kind in [(system, "systems"), (encoder, "encoders")]:
        if value not in names(kind):
            known = ", ".join(names(kind))
            raise UserError(Errors.S110.format(kind=kind[:-1], name=value, names=known))
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
        return
    for line in notes:
        msg.info(line)
    output_file.parent.mkdir(parents=True, exist_ok=True)
    config.to_disk(output_file)
    msg.good(f"Wrote {output_file}")
    wanted = " --paths.vectors VECTORS" if encoder == "vectors" and vectors is None else ""
    print(
        f"python -m spacy train {output_file} --output training "
        f"--paths.train {corpus or 'train.spacy'} --paths.dev dev.spacy{wanted}"
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
