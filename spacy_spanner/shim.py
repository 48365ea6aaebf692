"""A torch module inside a thinc model: built late, stored as safetensors, never unpickled."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from typing import Any, Callable, Dict, Iterator, Optional, Tuple, Union, cast

import safetensors.torch
import torch
from safetensors import SafetensorError
from thinc.api import Optimizer, get_torch_default_device
from thinc.shims.shim import Shim
from thinc.types import FloatsXd
from thinc.util import torch2xp, xp2torch
from torch import nn

from .errors import Errors

HEADER = "spacy-spanner"  # the metadata entry of our weight files
Size = Union[int, str]  # a number, or text such as the configuration of a pretrained encoder

# oneDNN, which torch uses on a CPU, keeps what it compiled for the last 1,024 shapes of tensors: with
# texts of all lengths memory grows for a hundred thousand documents. It reads this at its first use.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8")

# A forked worker that inherits torch's thread pool waits for threads which do not exist there.
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class ModuleShim(Shim):
    """Holds a torch module that `maker` builds once its sizes are known.

    maker: Called with `sizes` as keyword arguments; gives the module.
    learn_rate_scale: Multiplies the optimizer's learning rate for this module alone: a fresh head
        starves at the rate that suits the pretrained transformer below it.
    """

    _model: Optional[nn.Module]

    def __init__(self, maker: Callable[..., nn.Module], *, learn_rate_scale: float = 1.0):
        super().__init__(None)
        self.maker = maker
        self.learn_rate_scale = learn_rate_scale
        self.sizes: Dict[str, Size] = {}

    @property
    def is_built(self) -> bool:
        """Whether there is a module yet."""
        return self._model is not None

    @property
    def module(self) -> Any:
        """The module; raises S007 where it is not built."""
        if self._model is None:
            raise ValueError(Errors.S007)
        return self._model

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next((p.device for p in self.module.parameters()), get_torch_default_device())

    def build(self, **sizes: Size) -> nn.Module:
        """Make a fresh module of these sizes."""
        self.sizes = sizes
        self._model = self.maker(**sizes).to(get_torch_default_device())
        return self._model

    def copy(self) -> ModuleShim:
        """A copy that the optimizer tells apart: it keeps its moments by the shim's id."""
        copied = copy.deepcopy(self)
        copied.id = ModuleShim(self.maker).id
        return copied

    def step_options(self, name: str, parameter: nn.Parameter) -> Tuple[float, bool]:
        """By what the learning rate of this parameter is multiplied, and whether its weights decay."""
        return self.learn_rate_scale, True

    def finish_update(self, optimizer: Optimizer) -> None:
        """Let the optimizer change each tensor that has a gradient."""
        for name, parameter in self.module.named_parameters():
            if parameter.grad is None:
                continue
            scale, decays = self.step_options(name, parameter)
            decay = optimizer.L2
            optimizer.L2 = decay if decays else 0.0
            weights, _ = optimizer(
                (self.id, name),
                cast(FloatsXd, torch2xp(parameter.data)),
                cast(FloatsXd, torch2xp(parameter.grad)),
                lr_scale=scale,
            )
            optimizer.L2 = decay
            parameter.data = xp2torch(weights, device=parameter.device)
            parameter.grad = None

    @contextlib.contextmanager
    def use_params(self, params: Dict[Any, Any]) -> Iterator[None]:
        """Averaged weights for the time of the context, where the optimizer keeps averages."""
        swapped = {}
        for name, parameter in self._named_parameters():
            if (self.id, name) in params:
                swapped[name] = parameter.data
                parameter.data = xp2torch(params[(self.id, name)], device=parameter.device)
        try:
            yield
        finally:
            for name, parameter in self._named_parameters():
                if name in swapped:
                    parameter.data = swapped[name]

    def _named_parameters(self) -> Iterator[Any]:
        return iter(()) if self._model is None else self._model.named_parameters()

    def to_device(self, device_type: str, device_id: int) -> None:
        if self._model is not None:
            self._model.to(torch_device(device_type, device_id))

    def to_bytes(self) -> bytes:
        """Safetensors with the sizes in the header; nothing at all while there is no module."""
        if self._model is None:
            return b""
        state = {k: v.detach().cpu().contiguous() for k, v in self._model.state_dict().items()}
        return safetensors.torch.save(state, metadata={HEADER: json.dumps(self.sizes)})

    def from_bytes(self, bytes_data: bytes) -> ModuleShim:
        """Build the module of the stored sizes and load its weights; refuses any other file."""
        if not bytes_data:
            self._model, self.sizes = None, {}
            return self
        sizes = read_sizes(bytes_data)
        try:
            state = safetensors.torch.load(bytes_data)
        except (SafetensorError, ValueError, KeyError) as err:
            raise ValueError(Errors.S004.format(reason=err)) from err
        module = self.build(**sizes)
        try:
            module.load_state_dict(state)
        except RuntimeError as err:
            raise ValueError(Errors.S005.format(reason=err)) from err
        return self


def torch_device(device_type: str, device_id: int) -> torch.device:
    """Where torch works when thinc is on this device: thinc's arrays of Apple's MPS are on the CPU."""
    if device_type == "gpu":
        return torch.device("cuda", device_id)
    default = get_torch_default_device()
    return default if default.type == "mps" else torch.device("cpu")


def read_sizes(bytes_data: bytes) -> Dict[str, Size]:
    """The sizes a weight file was written with; refuses what is not a weight file of ours."""
    if len(bytes_data) < 8:
        raise ValueError(Errors.S004.format(reason="the data is too short"))
    n_header = int.from_bytes(bytes_data[:8], "little")
    if n_header > len(bytes_data) - 8:
        raise ValueError(Errors.S004.format(reason="there is no safetensors header"))
    try:
        header = json.loads(bytes_data[8 : 8 + n_header])
        sizes = json.loads(header["__metadata__"][HEADER])
        return {str(k): v if isinstance(v, str) else int(v) for k, v in sizes.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        reason = "its header is not one of spacy-spanner"
        raise ValueError(Errors.S004.format(reason=reason)) from err
