"""All parameters of a pipeline in one fixed order, thinc's and torch's alike, and their gradients.

Gradients are added up before any optimizer call: a rank whose share of a batch gave some parameter no
gradient (or no examples at all) takes part with zeros, so that no rank waits for another forever.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union, cast

import torch
from spacy.language import Language
from thinc.api import Model
from thinc.types import FloatsXd
from thinc.util import torch2xp, xp2torch
from torch import Tensor, nn

from ..errors import Errors
from .ranks import Ranks

BUCKET = 2**24  # numbers that are sent at once: 64 MB


@dataclass(frozen=True)
class Parameter:
    """A parameter wherever it lives.

    owner: The layer of thinc that holds it, or the parameter of a torch module itself.
    key: What the optimizer knows it by: the id of its layer or shim, and its name.
    """

    owner: Union[Model, nn.Parameter]
    key: Tuple[int, str]

    def value(self) -> Tensor:
        """The weights."""
        if isinstance(self.owner, nn.Parameter):
            return self.owner.data
        return xp2torch(self.owner.get_param(self.key[1]))

    def set_value(self, value: Tensor) -> None:
        """Replace the weights."""
        if isinstance(self.owner, nn.Parameter):
            self.owner.data = value
        else:
            self.owner.set_param(self.key[1], cast(FloatsXd, torch2xp(value)))

    def gradient(self) -> Optional[Tensor]:
        """The gradient; None where there is none."""
        if isinstance(self.owner, nn.Parameter):
            return self.owner.grad
        name = self.key[1]
        return xp2torch(self.owner.get_grad(name)) if self.owner.has_grad(name) else None

    def set_gradient(self, gradient: Tensor) -> None:
        """Replace the gradient."""
        if isinstance(self.owner, nn.Parameter):
            self.owner.grad = gradient
        else:
            self.owner.set_grad(self.key[1], cast(FloatsXd, torch2xp(gradient)))


def trained_pipes(nlp: Language, frozen: Sequence[str]) -> List[Any]:
    """The components that learn."""
    return [
        pipe
        for name, pipe in nlp.pipeline
        if name not in frozen
        and getattr(pipe, "is_trainable", False)
        and isinstance(getattr(pipe, "model", None), Model)
    ]


def parameters_of(pipes: Iterable[Any]) -> List[Parameter]:
    """Each parameter once, in the order of the pipeline."""
    found: Dict[Any, Parameter] = {}
    for node in (node for pipe in pipes for node in pipe.model.walk()):
        # thinc numbers nodes and shims separately: a key alone would be ambiguous
        for shim in node.shims:
            if isinstance(shim._model, nn.Module):
                for name, weights in shim._model.named_parameters():
                    found["shim", shim.id, name] = Parameter(weights, (shim.id, name))
        for name in node.param_names:
            if node.has_param(name):
                found["node", node.id, name] = Parameter(node, (node.id, name))
    return list(found.values())


def copy_weights(parameters: List[Parameter], ranks: Ranks) -> None:
    """All ranks begin with the weights of rank 0."""
    shapes = [(p.key[1], tuple(p.value().shape)) for p in parameters]
    digests = ranks.of_all(hashlib.sha256(repr(shapes).encode()).hexdigest())
    if len(set(digests)) > 1:
        raise ValueError(Errors.S057)
    for parameter in parameters:
        value = parameter.value().clone()
        ranks.copy_first_(value)
        parameter.set_value(value)


def add_gradients(parameters: List[Parameter], ranks: Ranks, *, share: float) -> None:
    """Give every rank the mean gradient, each rank counting by its share of the examples."""
    gradients = [parameter.gradient() for parameter in parameters]
    flags = [0 if gradient is None else 1 for gradient in gradients]
    present = torch.tensor(flags, dtype=torch.uint8, device=ranks.device)
    ranks.any_(present)
    used = [i for i, flag in enumerate(present.tolist()) if flag]
    for bucket in buckets([parameters[i] for i in used]):
        parts = [part_of(parameter, share) for parameter in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        ranks.sum_(flat)
        for parameter, part, new in zip(
            bucket, parts, flat.split([part.numel() for part in parts])
        ):
            parameter.set_gradient(new.view_as(part).clone())


def part_of(parameter: Parameter, share: float) -> Tensor:
    """The term of this rank in the sum."""
    gradient = parameter.gradient()
    return torch.zeros_like(parameter.value()) if gradient is None else gradient * share


def buckets(parameters: List[Parameter]) -> Iterator[List[Parameter]]:
    """Parameters of one number type that together are not much larger than a bucket."""
    bucket: List[Parameter] = []
    for parameter in parameters:
        is_full = sum(p.value().numel() for p in bucket) >= BUCKET
        if bucket and (is_full or parameter.value().dtype != bucket[0].value().dtype):
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket


def share_overflow(pipes: Iterable[Any], ranks: Ranks) -> None:
    """In mixed precision a shim skips a step whose gradients overflowed: all ranks or none."""
    scalers: List[Any] = [
        shim._grad_scaler
        for pipe in pipes
        for node in pipe.model.walk()
        for shim in node.shims
        if hasattr(shim, "_grad_scaler")
    ]
    if not scalers:
        return
    found = torch.tensor(
        [bool(scaler.found_inf) for scaler in scalers], dtype=torch.uint8, device=ranks.device
    )
    ranks.any_(found)
    for scaler, flag in zip(scalers, found.tolist()):
        scaler._found_inf = bool(flag)
