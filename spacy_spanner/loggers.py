"""spaCy's console logger, which also prints the heads' summaries after training."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any, Callable, List, Optional, Tuple, Union

from spacy.language import Language
from spacy.training.loggers import console_logger_v3
from thinc.api import Model

from .contract import Reports
from .shim import ModuleShim


def console_logger(
    progress_bar: Optional[str] = None,
    console_output: bool = True,
    output_file: Optional[Union[str, Path]] = None,
) -> Callable[..., Tuple[Callable, Callable]]:
    """Options as for `spacy.ConsoleLogger.v3`."""
    set_up_table = console_logger_v3(progress_bar, console_output, output_file)

    def set_up(
        nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> Tuple[Callable, Callable]:
        log_step, finish_table = set_up_table(nlp, stdout, stderr)

        def finish() -> None:
            finish_table()
            if console_output:
                for line in summary(nlp):
                    print(line, file=stdout, flush=True)

        return log_step, finish

    return set_up


def summary(nlp: Language) -> List[str]:
    """The lines of all heads in the pipeline, under the names of their components."""
    lines = []
    for name, pipe in nlp.pipeline:
        model: Any = getattr(pipe, "model", None)
        if isinstance(model, Model):
            shims = [shim for shim in model.shims if isinstance(shim, ModuleShim) and shim.is_built]
            parts = [part for shim in shims for part in shim.module.modules()]
            reports = [part.summary() for part in parts if isinstance(part, Reports)]
            lines += [f"{name}: {line}" for report in reports for line in report]
    return lines
