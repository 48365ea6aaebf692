"""`spacy spanner train`: `spacy train` on one process or, under `torchrun`, on several."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional

import typer
from wasabi import Printer

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Config


def train_cli(
    ctx: typer.Context,  # only read for overrides
    config_path: Path = typer.Argument(..., help="Config file", exists=True, allow_dash=True),
    output: Optional[Path] = typer.Option(
        None, "--output", "--output-path", "-o", help="Folder of the trained pipeline"
    ),
    code_path: Optional[Path] = typer.Option(
        None, "--code", "-c", help="Python file with registered functions to import"
    ),
    verbose: bool = typer.Option(False, "--verbose", "-V", help="Show debug output"),
    gpu_id: int = typer.Option(
        -1, "--gpu-id", "-g", help="GPU of the first process of a machine, or -1 for the CPU"
    ),
    resume: bool = typer.Option(False, "--resume", help="Resume from model-last"),
) -> None:
    """Train as `spacy train` does, with one process for each GPU:

    torchrun --nproc-per-node 4 -m spacy spanner train config.cfg --output training --gpu-id 0

    Settings of the config can be given as options, such as --training.max_steps 1000. Every process
    reads batches of the configured size; the gradients of all are averaged.
    """
    from spacy.cli._util import import_code, parse_config_overrides, setup_gpu
    from spacy.util import logger

    from ..acceleration import remember_codecs, use_fastest_ops
    from ..distributed.checkpoints import CheckpointError
    from ..distributed.ranks import joined_ranks, local_gpu
    from ..distributed.training import Stopped, Trainer
    from .command import show

    if resume and output is None:
        raise typer.BadParameter("--resume needs --output, the folder to resume from")
    if verbose:
        logger.setLevel(logging.DEBUG)
    config = read_config(config_path, parse_config_overrides(ctx.args))
    import_code(code_path)
    device = local_gpu(gpu_id)
    with joined_ranks(gpu_id) as ranks:
        msg = Printer(no_print=not ranks.is_first)
        if output is not None and ranks.is_first:
            output.mkdir(parents=True, exist_ok=True)
            msg.info(f"Saving to output directory: {output}")
        setup_gpu(device, silent=not ranks.is_first)
        remember_codecs()
        products = use_fastest_ops()
        require_documents(config, "dev")
        nlp = initialized(config, device)
        trainer = Trainer(nlp, output, ranks)
        msg.info(
            f"Pipeline: {nlp.pipe_names}; processes: {ranks.size}; matrix products: {products}"
        )
        try:
            trainer.train(resume=resume)
        except CheckpointError as error:
            msg.fail("Cannot resume", str(error))
            raise typer.Exit(1) from None
        except Stopped as error:
            show(error)  # at once: torchrun may end this process while it leaves the group
            raise typer.Exit(error.exit_code) from None
        msg.good("Training is done")


def read_config(path: Path, overrides: Dict[str, Any]) -> Config:
    """The config with the settings of the command line, which must be settings it can have."""
    from spacy.util import CONFIG_SECTION_ORDER, load_config
    from thinc.api import Config

    from ..training_config import check_overrides

    config = load_config(path, interpolate=False)
    check_overrides(config, overrides)
    text = config.to_str(interpolate=False)
    return Config(section_order=CONFIG_SECTION_ORDER).from_str(
        text, interpolate=False, overrides=overrides
    )


def initialized(config: Config, device: int) -> Language:
    """The pipeline, ready to be trained. If that fails, an empty corpus is the most likely cause,
    which components report differently or not at all."""
    from spacy.training.initialize import init_nlp

    try:
        return init_nlp(config, use_gpu=device)
    except Exception:
        require_documents(config, "train")
        raise


def require_documents(config: Config, part: str) -> None:
    from spacy.util import get_lang_class, registry

    from ..errors import Errors, UserError

    filled = config.interpolate()
    if part not in filled.get("corpora", {}):
        return
    corpus = registry.resolve({"corpus": filled["corpora"][part]})["corpus"]
    nlp = get_lang_class(filled["nlp"]["lang"])()
    if next(iter(corpus(nlp)), None) is None:
        raise UserError(Errors.S109.format(part=part))
