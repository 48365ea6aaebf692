"""Which axes of the weights hold labels, so that a trained head can be given more of them.

A head marks such a parameter where it makes it. Labels are added by building a head with more of them
and copying the old weights to their places in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from .errors import Errors

AXES, FRESH = "_label_axes", "_fresh"  # attributes of a marked parameter

# Logit of a new class that competes with trained ones, before it has learned anything: low enough to
# leave the probabilities of the others as they are.
NEW_CLASS_LOGIT = -10.0


@dataclass(frozen=True)
class LabelAxis:
    """An axis of `fixed` entries, then `blocks` times one entry for each label; each entry takes
    `size` consecutive numbers."""

    fixed: int = 0
    blocks: int = 1
    size: int = 1

    def places(self, old: int, new: int) -> Tensor:
        """Where the numbers of an axis of length `old` are on one of length `new`, which has more
        labels.  (old,)"""
        n_old, n_new = ((n // self.size - self.fixed) // self.blocks for n in (old, new))
        blocks = torch.arange(self.blocks)[:, None] * n_new + torch.arange(n_old)
        entries = torch.cat([torch.arange(self.fixed), self.fixed + blocks.flatten()])
        return (entries[:, None] * self.size + torch.arange(self.size)).flatten()


LABELS = LabelAxis()
CLASSES = LabelAxis(fixed=1)  # class 0 is none


def mark(parameter: Tensor, *axes: Optional[LabelAxis], fresh: Optional[float] = None) -> None:
    """Say which of the first axes of a parameter hold labels; None for one that does not.

    fresh: Value of new entries; None for what the head's `__init__` gives them.
    """
    setattr(parameter, AXES, axes)
    setattr(parameter, FRESH, fresh)


def mark_rows(layer: nn.Linear, axis: LabelAxis) -> None:
    """Mark the outputs of a linear layer."""
    for parameter in layer.parameters():
        mark(parameter, axis)


def mark_classes(layer: nn.Linear, axis: LabelAxis = CLASSES) -> None:
    """Mark the outputs of a linear layer that compete with each other: new ones are improbable at
    first."""
    mark(layer.weight, axis, fresh=0.0)
    if layer.bias is not None:
        mark(layer.bias, axis, fresh=NEW_CLASS_LOGIT)


def with_old_weights(module: nn.Module, old: Dict[str, Any]) -> Dict[str, Any]:
    """The state of a fresh module with more labels, with the weights of the `old` state in it."""
    state = dict(old)
    for name, parameter in module.named_parameters():
        axes, before = getattr(parameter, AXES, ()), old[name]
        if not axes and before.shape != parameter.shape:
            raise ValueError(Errors.S195.format(name=type(module).__name__, parameter=name))
        if axes:
            state[name] = grown(parameter.detach(), before, axes, getattr(parameter, FRESH))
    return state


def grown(like: Tensor, old: Tensor, axes: Any, fresh: Optional[float]) -> Tensor:
    """A tensor of the shape of `like`, which has the old values at their places."""
    values = like.clone() if fresh is None else torch.full_like(like, fresh)
    whole = [None] * (old.dim() - len(axes))
    places = [
        torch.arange(n_old) if axis is None else axis.places(n_old, n_new)
        for axis, n_old, n_new in zip([*axes, *whole], old.shape, like.shape, strict=True)
    ]
    values[torch.meshgrid(*places, indexing="ij")] = old.to(values)
    return values
