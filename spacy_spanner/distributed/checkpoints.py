"""`model-last` and `model-best`, whole at any moment, with what training needs to resume."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Dict, List, Tuple

import safetensors.torch
import torch
from safetensors import safe_open
from spacy.language import Language
from thinc.api import Optimizer
from thinc.util import torch2xp, xp2torch

from ..errors import Errors, UserError
from .parameters import Parameter, parameters_of
from .ranks import Ranks

LAST, BEST = "model-last", "model-best"
STATE = "training_state.safetensors"
MOMENTS = ("mom1", "mom2")

# The last step that was finished, and score and step of every evaluation.
Progress = Tuple[int, List[Tuple[float, int]]]


class CheckpointError(UserError, ValueError):
    """There is no checkpoint, or it cannot be read."""


def save_checkpoint(
    nlp: Language,
    output: Path,
    *,
    progress: Progress,
    optimizer: Optimizer,
    parameters: List[Parameter],
    is_best: bool,
) -> None:
    """Write beside, then swap: a run that is killed in between leaves the previous checkpoint."""
    output.mkdir(parents=True, exist_ok=True)
    fresh = output / f".{LAST}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    nlp.to_disk(fresh)
    save_state(fresh / STATE, progress, optimizer, parameters)
    swap(fresh, output / LAST)
    if is_best:
        fresh = output / f".{BEST}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(output / LAST, fresh, ignore=shutil.ignore_patterns(STATE))
        swap(fresh, output / BEST)


def load_checkpoint(
    nlp: Language, output: Path, optimizer: Optimizer, pipes: List[Any], ranks: Ranks
) -> Progress:
    """Put the weights and moments of `model-last` into pipeline and optimizer. The schedules are left
    to the caller."""
    folder = output / LAST
    if ranks.is_first:
        restore(folder)
    ranks.of_first(None)  # the others read what rank 0 may have repaired
    if not folder.exists():
        raise CheckpointError(Errors.S059.format(path=folder))
    try:
        nlp.from_disk(folder)
        return load_state(folder / STATE, optimizer, parameters_of(pipes))
    except Exception as error:  # of many kinds: each part of a pipeline is read by its own code
        reason = f"{type(error).__name__}: {error}"
        raise CheckpointError(Errors.S123.format(path=folder, reason=reason)) from error


def swap(fresh: Path, target: Path) -> None:
    """Folders cannot be replaced in one step; `restore` repairs a swap that stops between the two."""
    old = target.with_name(f".{target.name}.old")
    restore(target)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def restore(target: Path) -> None:
    """Undo a swap that was stopped half-way."""
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        old.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def save_state(
    path: Path, progress: Progress, optimizer: Optimizer, parameters: List[Parameter]
) -> None:
    """Store progress and the optimizer's moments, which are known by the order of parameters."""
    tensors: Dict[str, torch.Tensor] = {}
    for name in MOMENTS:
        moments = getattr(optimizer, name)
        for i, parameter in enumerate(parameters):
            if parameter.key in moments:
                tensors[f"{name}.{i}"] = xp2torch(moments[parameter.key]).cpu().contiguous()
    updates = [optimizer.nr_update.get(parameter.key, 0) for parameter in parameters]
    facts = {"step": progress[0], "results": progress[1], "updates": updates}
    safetensors.torch.save_file(tensors, path, metadata={"progress": json.dumps(facts)})


def load_state(path: Path, optimizer: Optimizer, parameters: List[Parameter]) -> Progress:
    """The inverse of `save_state`."""
    with safe_open(path, framework="pt") as file:
        facts: Dict[str, Any] = json.loads(file.metadata()["progress"])
    for name, moment in safetensors.torch.load_file(path).items():
        kind, number = name.split(".")
        parameter = parameters[int(number)]
        getattr(optimizer, kind)[parameter.key] = torch2xp(moment.to(parameter.value().device))
    for parameter, count in zip(parameters, facts["updates"]):
        optimizer.nr_update[parameter.key] = count
    return facts["step"], [(score, step) for score, step in facts["results"]]
