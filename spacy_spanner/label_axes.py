"""Which axes of the weights hold labels, so that a trained head can be given more of them.

A head marks such a parameter where it makes it. Labels are added by building a head with more of them
and copying the old weights to their places in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor, nn

from .errors import Errors

MARK = "_label_axes"  # attribute of a marked parameter

# Logit of a new label before it has learned anything: low enough to leave the probabilities of labels
# that it competes with as they are.
NEW_LOGIT = -10.0


@dataclass(frozen=True)
class LabelAxis:
    """An axis of `fixed` entries, then `blocks` times one entry for each label; each entry takes
    `size` consecutive numbers."""

    fixed: int = 0
    blocks: int = 1
    size: int = 1

    def positions(self, old: int, new: int) -> Tensor:
        """The positions of the entries of an axis of length `old` on one of length `new`, which has
        more labels.  (old,)"""
        n_old, n_new = ((n // self.size - self.fixed) // self.blocks for n in (old, new))
        blocks = torch.arange(self.blocks)[:, None] * n_new + torch.arange(n_old)
        entries = torch.cat([torch.arange(self.fixed), self.fixed + blocks.flatten()])
        return (entries[:, None] * self.size + torch.arange(self.size)).flatten()


LABELS = LabelAxis()
CLASSES = LabelAxis(fixed=1)  # class 0 is none


@dataclass(frozen=True)
class Mark:
    """Which of the first axes of a parameter hold labels (None for one that does not), and what new
    entries start from: `factor` times their value after the head's `__init__`, plus `offset`."""

    axes: Tuple[Optional[LabelAxis], ...]
    factor: float = 1.0
    offset: float = 0.0

    def grown(self, fresh: Tensor, old: Tensor) -> Tensor:
        """The fresh values with the old ones at their places."""
        values = self.factor * fresh + self.offset
        whole = [None] * (old.dim() - len(self.axes))
        places = [
            torch.arange(n_old) if axis is None else axis.positions(n_old, n_new)
            for axis, n_old, n_new in zip([*self.axes, *whole], old.shape, fresh.shape, strict=True)
        ]
        values[torch.meshgrid(*places, indexing="ij")] = old.to(values)
        return values


def mark(parameter: Tensor, *axes: Optional[LabelAxis], **start: float) -> None:
    """Say which axes of a parameter hold labels; `start` as for `Mark`."""
    setattr(parameter, MARK, Mark(axes, **start))


def mark_layer(layer: nn.Linear, axis: LabelAxis = CLASSES) -> None:
    """Mark the outputs of a linear layer. New ones start as improbable, whatever the input."""
    mark(layer.weight, axis, factor=0.0)
    if layer.bias is not None:
        mark(layer.bias, axis, factor=0.0, offset=NEW_LOGIT)


def with_old_weights(module: nn.Module, old: Dict[str, Any]) -> Dict[str, Any]:
    """The state of a fresh module with more labels, with the weights of the `old` state in it."""
    state = dict(old)
    for name, parameter in module.named_parameters():
        found: Optional[Mark] = getattr(parameter, MARK, None)
        if found is not None:
            state[name] = found.grown(parameter.detach(), old[name])
        elif old[name].shape != parameter.shape:
            raise ValueError(Errors.S195.format(name=type(module).__name__, parameter=name))
    return state
