"""A pretrained transformer as an encoder: the thinc side, and how its weights learn."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Literal, Optional, Tuple, cast

import torch
from spacy.tokens import Doc
from thinc.api import Model, Optimizer, PyTorchGradScaler
from thinc.types import Floats2d
from torch import Tensor, nn

from ..errors import Errors
from ..forking import forks_wait
from ..shim import ModuleShim, Size, flatten, shim_of, split
from .huggingface_files import Pretrained, load_pretrained
from .huggingface_module import depth, make_module
from .piece_options import piece_options
from .torch_layer import Encoder, check_option, grad_mode, no_tokens, with_options_of

NAME = "HuggingFaceEncoder"
PRECISIONS = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class HuggingFaceShim(ModuleShim):
    """layer_decay: Each layer learns slower than the one above it by this factor."""

    def __init__(
        self,
        maker: Callable[..., nn.Module],
        *,
        learn_rate_scale: float = 1.0,
        layer_decay: float = 1.0,
        scales_gradients: bool = False,
    ):
        super().__init__(maker, learn_rate_scale=learn_rate_scale)
        self.layer_decay = layer_decay
        self._grad_scaler = PyTorchGradScaler(enabled=scales_gradients)

    def check_sizes(self, sizes: Dict[str, Size], state: Dict[str, Tensor], limit: int) -> None:
        super().check_sizes(sizes, state, limit)
        numbers = list(numbers_of(read_object(str(sizes.get("config")))))
        for name, number in numbers:
            is_count = name.endswith(("num_hidden_layers", "n_layers"))
            if abs(number) > (len(state) if is_count else max(limit, 1 << 20)):
                reason = f"its header says {name} = {number}, which its tensors are too few for"
                raise ValueError(Errors.S004.format(reason=reason))

    def step_options(self, name: str, parameter: nn.Parameter) -> Tuple[float, bool]:
        n_layers = self.module.n_layers
        below = max(0, n_layers - depth(name, n_layers))
        # Biases and the scales of norms are vectors; decay would pull them away from their rest.
        return self.learn_rate_scale * self.layer_decay**below, parameter.dim() > 1

    def backward(self, output: Tensor, gradient: Tensor) -> None:
        """Gradients of half precision are scaled on their way through the encoder, and are added to
        those that are there when they are whole again."""
        if not self.scales:
            output.backward(gradient)
            return
        self._grad_scaler.to_(output.device)
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        before = [p.grad for p in parameters]
        for parameter in parameters:
            parameter.grad = None
        output.backward(self._grad_scaler.scale(gradient))
        self._grad_scaler.unscale([p.grad for p in parameters if p.grad is not None])
        for parameter, grad in zip(parameters, before, strict=True):
            if parameter.grad is None:
                parameter.grad = grad
            elif grad is not None:
                parameter.grad += grad

    @property
    def scales(self) -> bool:
        return self._grad_scaler._enabled and self.device.type == "cuda"

    def finish_update(self, optimizer: Optimizer) -> None:
        if self.scales and self._grad_scaler.found_inf:
            self.module.zero_grad(set_to_none=True)  # the step is left out
        else:
            super().finish_update(optimizer)
        if self.scales:
            self._grad_scaler.update()


def read_object(text: str) -> Dict[str, Any]:
    """A stored JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise ValueError(Errors.S004.format(reason=f"its header cannot be read ({err})")) from err
    if not isinstance(found, dict):
        raise ValueError(Errors.S004.format(reason="its header is not one of an encoder"))
    return found


def numbers_of(value: Any, name: str = "") -> Iterator[Tuple[str, int]]:
    """All whole numbers in a JSON value, with the names they have there."""
    if isinstance(value, int):
        yield name, value
    elif isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else ((name, item) for item in value)
        for key, item in items:
            yield from numbers_of(item, key)


@forks_wait
def forward(model: Encoder, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable]:
    if not any(len(doc) for doc in docs):
        return no_tokens(model, docs)
    shim = cast(HuggingFaceShim, shim_of(model))
    module = shim.module
    learns = is_train and module.learns
    module.train(learns)
    batch = module.reader.read(docs)
    with grad_mode(learns):
        flat = module(batch)  # (T, D)

    def backprop(d_docs: List[Floats2d]) -> List[Doc]:
        if flat.requires_grad:
            shim.backward(flat, flatten(model, d_docs))
        return []

    return split(flat, [len(doc) for doc in docs]), backprop


def init(
    model: Encoder,
    X: Optional[List[Doc]] = None,
    Y: Any = None,
    *,
    name: str,
    revision: Optional[str],
) -> None:
    set_pretrained(model, load_pretrained(name, revision), name)


def set_pretrained(model: Encoder, pretrained: Pretrained, name: str) -> None:
    """Build the module with the weights of a pretrained model."""
    module: Any = shim_of(model).build(
        config=pretrained.config, tokenizer=pretrained.tokenizer, max_pieces=pretrained.max_pieces
    )
    got, expected = module.encoder.config.hidden_size, model.get_dim("nO")
    if got != expected:
        raise ValueError(Errors.S084.format(name=name, got=got, expected=expected))
    module.encoder.load_state_dict(pretrained.state)


@with_options_of(piece_options)
def build_huggingface_encoder(
    name: str,
    *,
    width: int,
    revision: Optional[str] = None,
    layers: int = 1,
    frozen: bool = False,
    frozen_layers: int = 0,
    gradient_checkpointing: bool = False,
    mixed_precision: Literal["none", "bf16", "fp16"] = "none",
    learn_rate_scale: float = 1.0,
    layer_decay: float = 1.0,
    **pieces: Any,
) -> Model[List[Doc], List[Floats2d]]:
    """A pretrained transformer of the library transformers; docs/encoders.md has all options."""
    check = partial(check_option, NAME)
    check("layers", layers, layers > 0, "it must be positive")
    check("frozen_layers", frozen_layers, frozen_layers >= 0, "it must not be negative")
    check("layer_decay", layer_decay, 0 < layer_decay <= 1, "it must be above 0 and at most 1")
    maker = partial(
        make_module,
        **piece_options(NAME, **pieces),
        layers=layers,
        frozen_layers=None if frozen else frozen_layers,
        gradient_checkpointing=gradient_checkpointing,
        precision=PRECISIONS[mixed_precision],
    )
    shim = HuggingFaceShim(
        maker,
        learn_rate_scale=learn_rate_scale,
        layer_decay=layer_decay,
        scales_gradients=mixed_precision == "fp16",
    )
    start = partial(init, name=name, revision=revision)
    return Model(NAME, forward, init=start, shims=[shim], dims={"nO": width})
