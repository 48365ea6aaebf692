"""A torch module inside a thinc model: built late, stored as safetensors, never unpickled."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union, cast

import numpy
import safetensors.torch
import torch
from thinc.api import Model, Optimizer, get_torch_default_device
from thinc.shims.shim import Shim
from thinc.types import Floats2d, FloatsXd
from thinc.util import torch2xp, xp2torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .errors import Errors
from .label_axes import with_old_weights

HEADER = "spacy-spanner"  # the metadata entry of our weight files
MOST = 100_000  # tensors of a file; reading the header of more takes too much memory
LEAST_LIMIT = 1 << 16  # a size up to this does no harm before it is checked
Size = Union[int, str]  # a number, or text such as the configuration of a pretrained encoder

# oneDNN, which torch uses on a CPU, keeps what it compiled for the last 1,024 shapes of tensors: with
# texts of all lengths memory grows for a hundred thousand documents. It reads this at its first use.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8")


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
        """The device of the weights."""
        return next((p.device for p in self.module.parameters()), get_torch_default_device())

    def build(self, **sizes: Size) -> nn.Module:
        """Make a fresh module of these sizes."""
        self.sizes = sizes
        self._model = self.maker(**sizes).to(get_torch_default_device())
        return self._model

    def grow(self, **sizes: Size) -> None:
        """Make room for more labels: what was learned stays, the new labels start afresh."""
        old, module = self.module, self.maker(**sizes).to(self.device)
        module.load_state_dict(with_old_weights(module, old.state_dict()))
        self.sizes, self._model = sizes, module.train(old.training)
        self._renew_id()

    def copy(self) -> ModuleShim:
        """A copy with an identity of its own for the optimizer."""
        copied = copy.deepcopy(self)
        copied._renew_id()
        return copied

    def _renew_id(self) -> None:
        """The optimizer keeps moments and averages by the shim's id: those of other weights, or of
        another shape, must not be found."""
        self.id = ModuleShim(self.maker).id

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
            changed = xp2torch(weights, device=parameter.device)
            # Where they were changed in place, a view of a view of them at every step would stay.
            if changed.data_ptr() != parameter.data_ptr():
                parameter.data = changed
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
        state, sizes = read_weights(bytes_data)
        limit = max([LEAST_LIMIT, *(n for t in state.values() if t.numel() for n in t.shape)])
        self.check_sizes(sizes, state, limit)
        try:
            with torch.device("meta"), Unfilled():  # takes no memory, whatever the sizes
                check_state(self.maker(**sizes), state)
            self.build(**sizes).load_state_dict(state)
        except ValueError:
            raise
        except Exception as err:  # the library of an encoder has its own error for every wrong size
            raise ValueError(Errors.S005.format(reason=err)) from err
        return self

    def check_sizes(self, sizes: Dict[str, Size], state: Dict[str, Tensor], limit: int) -> None:
        """Refuse sizes that the tensors cannot have, before anything is made of them.

        limit: The longest axis of a tensor, or a number that does no harm."""
        for name, size in sizes.items():
            if isinstance(size, int) and not 0 <= size <= limit:
                reason = f"its header says {name} = {size}, but no tensor is that large"
                raise ValueError(Errors.S004.format(reason=reason))


class Unfilled(TorchFunctionMode):
    """Fills no weights. Without it, the first of them on the meta device takes torch seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in ("normal_", "uniform_"):  # those of tensors, and those of nn.init
            return args[0] if args else kwargs["tensor"]
        if func is torch.eye:
            return torch.empty(args[0], args[-1])
        return func(*args, **kwargs)


def torch_device(device_type: str, device_id: int) -> torch.device:
    """The torch device for a thinc device: thinc keeps arrays of Apple's MPS on the CPU."""
    if device_type == "gpu":
        return torch.device("cuda", device_id)
    default = get_torch_default_device()
    return default if default.type == "mps" else torch.device("cpu")


def read_weights(bytes_data: bytes) -> Tuple[Dict[str, Tensor], Dict[str, Size]]:
    """The tensors of a weight file, and the sizes it was written with; refuses what is not a weight
    file of ours."""
    n_header = int.from_bytes(bytes_data[:8], "little")
    if n_header > len(bytes_data) - 8 or bytes_data.count(b"data_offsets", 8, 8 + n_header) > MOST:
        raise ValueError(Errors.S004.format(reason="there is no safetensors header"))
    try:
        state = safetensors.torch.load(bytes_data)  # refuses a header that is not as it must be
    except Exception as err:  # it has many: its own for the format, torch's for the numbers
        raise ValueError(Errors.S004.format(reason=err)) from err
    try:
        header = json.loads(bytes_data[8 : 8 + n_header])
        sizes = json.loads(header["__metadata__"][HEADER])
        if not all(type(size) in (int, str) for size in sizes.values()):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        reason = "its header is not one of spacy-spanner"
        raise ValueError(Errors.S004.format(reason=reason)) from err
    for name, tensor in state.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            reason = f"{name} holds numbers that are not finite"
            raise ValueError(Errors.S004.format(reason=reason))
    return state, sizes


def check_state(module: nn.Module, state: Dict[str, Tensor]) -> None:
    """Refuse tensors that a module does not have, in name, shape or type. A part may name tensors
    that take the size of what is loaded (`resized`); it checks those itself."""
    expected = module.state_dict()
    free = {
        f"{path}.{name}".lstrip(".")
        for path, part in module.named_modules()
        for name in getattr(part, "resized", ())
    }

    def kind(name: str, tensor: Tensor) -> Any:
        return tensor.dtype, tensor.dim() if name in free else tensor.shape

    different = sorted(expected.keys() ^ state.keys())
    shared = expected.keys() & state.keys()
    different += sorted(n for n in shared if kind(n, expected[n]) != kind(n, state[n]))
    if different:
        reason = (
            f"{', '.join(different[:3])} ({len(different)} in all) differ in name, shape or type"
        )
        raise ValueError(Errors.S005.format(reason=reason))


def shim_of(model: Model) -> ModuleShim:
    """The shim that holds a model's torch module."""
    shim = model.shims[0]
    assert isinstance(shim, ModuleShim)
    return shim


def flatten(model: Model, vectors: Sequence[Floats2d]) -> Tensor:
    """The token vectors of documents, one after the other, on the device of the model's module.
    (T, D)

    Documents without tokens are left out: a transformer listener gives them no width."""
    flat = model.ops.xp.concatenate([array for array in vectors if len(array)])
    return xp2torch(flat, device=shim_of(model).device)


def split(
    flat: Tensor, lengths: Sequence[int], starts: Optional[Sequence[int]] = None
) -> List[Floats2d]:
    """The inverse of `flatten`: the vectors of each document, without their gradient.

    starts: Where each document begins, if not one after the other."""
    array = cast(Floats2d, torch2xp(flat.detach()))
    begin = numpy.cumsum([0, *lengths])[:-1].tolist() if starts is None else starts
    return [array[i : i + n] for i, n in zip(begin, lengths, strict=True)]
