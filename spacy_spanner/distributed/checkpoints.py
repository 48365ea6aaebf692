"""`model-last` and `model-best`, whole at any moment, with what training needs to go on."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Tuple

import safetensors.torch
import torch
from safetensors import safe_open
from spacy.language import Language
from thinc.api import Optimizer
from thinc.util import torch2xp, xp2torch

from .parameters import Parameter

LAST, BEST = "model-last", "model-best"
STATE = "training_state.safetensors"
MOMENTS = ("mom1", "mom2")


@dataclass
class Progress:
    """How far training is. `step` is the last one that was finished, -1 before the first."""

    step: int = -1
    results: List[Tuple[float, int]] = field(default_factory=list)  # score and step
    words: int = 0


def save_checkpoint(
    nlp: Language,
    output: Path,
    *,
    progress: Progress,
    optimizer: Optimizer,
    parameters: List[Parameter],
    is_best: bool,
) -> None:
    """Write beside and swap: who is killed meanwhile finds the checkpoint before."""
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


def swap(fresh: Path, target: Path) -> None:
    """Folders cannot be replaced in one step; `restore` mends what stops between the two."""
    old = target.with_name(f".{target.name}.old")
    restore(target)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def restore(target: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        old.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def save_state(
    path: Path, progress: Progress, optimizer: Optimizer, parameters: List[Parameter]
) -> None:
    tensors: Dict[str, torch.Tensor] = {}
    for name in MOMENTS:
        moments = getattr(optimizer, name)
        for i, parameter in enumerate(parameters):
            if parameter.key in moments:
                tensors[f"{name}.{i}"] = xp2torch(moments[parameter.key]).cpu().contiguous()
    updates = [optimizer.nr_update.get(parameter.key, 0) for parameter in parameters]
    facts = {
        "step": progress.step,
        "results": progress.results,
        "words": progress.words,
        "updates": updates,
    }
    safetensors.torch.save_file(tensors, path, metadata={"progress": json.dumps(facts)})


def load_state(path: Path, optimizer: Optimizer, parameters: List[Parameter]) -> Progress:
    """Put the moments back into the optimizer; its schedules are left to the caller."""
    with safe_open(path, framework="pt") as file:
        facts: Dict[str, Any] = json.loads(file.metadata()["progress"])
    for name, moment in safetensors.torch.load_file(path).items():
        kind, number = name.split(".")
        parameter = parameters[int(number)]
        getattr(optimizer, kind)[parameter.key] = torch2xp(moment.to(parameter.value().device))
    for parameter, count in zip(parameters, facts["updates"]):
        optimizer.nr_update[parameter.key] = count
    results = [(score, step) for score, step in facts["results"]]
    return Progress(facts["step"], results, facts["words"])
