"""`spacy spanner train`: `spacy train` on one process or, under `torchrun`, on several."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Optional

import typer
from wasabi import Printer


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
    from spacy.cli._util import (
        import_code,
        parse_config_overrides,
        setup_gpu,
        show_validation_error,
    )
    from spacy.training.initialize import init_nlp
    from spacy.util import load_config, logger

    from ..distributed.checkpoints import CheckpointError
    from ..distributed.ranks import joined_ranks, local_gpu
    from ..distributed.training import Stopped, Trainer

    if resume and output is None:
        raise typer.BadParameter("--resume needs --output, the folder of the run")
    if verbose:
        logger.setLevel(logging.DEBUG)
    overrides = parse_config_overrides(ctx.args)
    import_code(code_path)
    device = local_gpu(gpu_id)
    with joined_ranks(gpu_id) as ranks:
        msg = Printer(no_print=not ranks.is_first)
        if output is not None and ranks.is_first:
            output.mkdir(parents=True, exist_ok=True)
            msg.info(f"Saving to output directory: {output}")
        setup_gpu(device, silent=not ranks.is_first)
        with show_validation_error(config_path):
            config = load_config(config_path, overrides=overrides, interpolate=False)
        with show_validation_error(config_path, hint_fill=False):
            nlp = init_nlp(config, use_gpu=device)
        trainer = Trainer(nlp, output, ranks)
        msg.info(f"Pipeline: {nlp.pipe_names}; processes: {ranks.size}")
        try:
            trainer.train(resume=resume)
        except CheckpointError as error:
            msg.fail("Cannot resume", str(error))
            raise typer.Exit(1) from None
        except Stopped as error:
            Printer().fail("Training has stopped", str(error))
            raise typer.Exit(error.exit_code) from None
        msg.good("Training is done")
