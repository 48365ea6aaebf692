"""All parameters of a pipeline in one fixed order, thinc's and torch's alike, and their gradients.

Gradients are added up before any optimizer call: a rank whose share of a batch gave some parameter no
gradient (or no examples at all) takes part with zeros, so that no rank waits for another in vain.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple, cast

import torch
from spacy.language import Language
from thinc.api import Model
from thinc.types import FloatsXd
from thinc.util import torch2xp, xp2torch
from torch import Tensor, nn

from ..errors import Errors
from .ranks import Ranks

BUCKET = 2**24  # numbers that are sent at once: 64 MB


class Parameter(Protocol):
    """A parameter wherever it lives. `key` is what the optimizer knows it by."""

    @property
    def key(self) -> Tuple[int, str]: ...

    def value(self) -> Tensor: ...

    def set_value(self, value: Tensor) -> None: ...

    def gradient(self) -> Optional[Tensor]: ...

    def set_gradient(self, gradient: Tensor) -> None: ...


@dataclass
class ThincParameter:
    node: Model
    name: str

    @property
    def key(self) -> Tuple[int, str]:
        return self.node.id, self.name

    def value(self) -> Tensor:
        return xp2torch(self.node.get_param(self.name))

    def set_value(self, value: Tensor) -> None:
        self.node.set_param(self.name, cast(FloatsXd, torch2xp(value)))

    def gradient(self) -> Optional[Tensor]:
        return xp2torch(self.node.get_grad(self.name)) if self.node.has_grad(self.name) else None

    def set_gradient(self, gradient: Tensor) -> None:
        self.node.set_grad(self.name, cast(FloatsXd, torch2xp(gradient)))


@dataclass
class TorchParameter:
    key: Tuple[int, str]
    parameter: nn.Parameter

    def value(self) -> Tensor:
        return self.parameter.data

    def set_value(self, value: Tensor) -> None:
        self.parameter.data = value

    def gradient(self) -> Optional[Tensor]:
        return self.parameter.grad

    def set_gradient(self, gradient: Tensor) -> None:
        self.parameter.grad = gradient


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
    found: List[Parameter] = []
    for pipe in pipes:
        for node in pipe.model.walk():
            for shim in node.shims:
                module = shim._model
                if isinstance(module, nn.Module):
                    found += [
                        TorchParameter((shim.id, name), parameter)
                        for name, parameter in module.named_parameters()
                    ]
            found += [ThincParameter(node, n) for n in node.param_names if node.has_param(n)]
    # thinc counts nodes and shims apart: a key alone would not tell them from each other
    return list({(type(parameter), parameter.key): parameter for parameter in found}.values())


def copy_weights(parameters: List[Parameter], ranks: Ranks) -> None:
    """All ranks begin with the weights of rank 0."""
    shapes = [(name, tuple(p.value().shape)) for p in parameters for name in [p.key[1]]]
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
