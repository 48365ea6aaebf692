"""From documents to a torch module and back: the thinc side that all encoders share.

Axes: T tokens of the batch, U distinct values among them, D width.
"""

from __future__ import annotations

from inspect import Parameter, cleandoc, signature
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, get_type_hints

import numpy
import torch
from spacy.attrs import ORTH
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F

from ..dropout import RATE, is_rate
from ..errors import Errors
from ..forking import forks_wait
from ..shim import ModuleShim, flatten, shim_of, split

Encoder = Model[List[Doc], List[Floats2d]]
Read = Callable[[Encoder, numpy.ndarray, Vocab], Tuple[Any, ...]]
Build = TypeVar("Build", bound=Callable[..., Any])


def word_layer(
    name: str,
    maker: Callable[..., nn.Module],
    read: Read,
    *,
    attr: int = ORTH,
    width: Optional[int] = None,
    init: Optional[Callable] = None,
    dropout: float = 0.0,
    learn_rate_scale: float = 1.0,
    attrs: Optional[Dict[str, Any]] = None,
) -> Encoder:
    """An encoder that looks at each token by itself and encodes each distinct value once a batch.

    maker: Makes the module; it gives one vector for each distinct value.  (U, D)
    read: Called with the model, the distinct values of `attr` (U,) and the vocab; gives the
        arguments of the module.
    attr: The token attribute that is encoded.
    width: D, if it is known before `init`.
    init: Replaces the init that builds the module without sizes.
    dropout: On the token vectors: tokens of the same value are dropped out separately.
    """
    check_rates(name, dropout=dropout)
    return Model(
        name,
        forward,
        init=build if init is None else init,
        shims=[ModuleShim(maker, learn_rate_scale=learn_rate_scale)],
        dims={"nO": width},
        attrs={"attr": attr, "dropout": dropout, "read": read, **(attrs or {})},
    )


def build(model: Encoder, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    """Build a module that needs no sizes."""
    shim_of(model).build()


@forks_wait
def forward(model: Encoder, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable]:
    """Vectors of the distinct values, then of all tokens."""
    lengths = [len(doc) for doc in docs]
    if not any(lengths):
        return no_tokens(model, docs)
    tokens = numpy.concatenate([doc.to_array(model.attrs["attr"]) for doc in docs])
    values, inverse = numpy.unique(tokens, return_inverse=True)  # (U,), (T,)
    shim = shim_of(model)
    shim.module.train(is_train)
    inputs = model.attrs["read"](model, values, docs[0].vocab)
    with grad_mode(is_train):
        vectors = shim.module(*inputs)  # (U, D)
        flat = F.embedding(to_device(inverse, shim), vectors)  # (T, D)
        flat = F.dropout(flat, model.attrs["dropout"], training=is_train)

    def backprop(d_docs: List[Floats2d]) -> List[Doc]:
        flat.backward(flatten(model, d_docs))
        return []

    return split(flat, lengths), backprop


def no_tokens(model: Encoder, docs: List[Doc]) -> Tuple[List[Floats2d], Callable]:
    """The output for a batch in which no document has a token."""
    return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda d_docs: []


def grad_mode(is_train: bool) -> Any:
    """Gradients in training alone."""
    return torch.enable_grad() if is_train else torch.inference_mode()


def to_device(array: numpy.ndarray, shim: ModuleShim) -> Tensor:
    """An array as a tensor on the device of the module."""
    return torch.from_numpy(numpy.ascontiguousarray(array)).to(shim.device)


def uniform(n_rows: int, width: int) -> Tensor:
    """Rows from U(±sqrt(3 / width)), so that each number has variance 1 / width.  (n_rows, D)"""
    bound = (3 / width) ** 0.5
    return torch.empty(n_rows, width).uniform_(-bound, bound)


def check_option(name: str, option: str, value: Any, holds: bool, reason: str) -> None:
    """Refuse a setting that cannot work, when the architecture is built."""
    if not holds:
        raise ValueError(Errors.S041.format(name=name, option=option, value=value, reason=reason))


def check_rates(name: str, **rates: float) -> None:
    """Refuse rates of dropout that cannot be."""
    for option, rate in rates.items():
        check_option(name, option, rate, is_rate(rate), RATE)


def with_options_of(shared: Callable[..., Any]) -> Callable[[Build], Build]:
    """A builder of an architecture gets the options of `shared`, its keyword arguments with defaults,
    and their doc-string in place of its `**` parameter: spaCy reads the signature to fill in defaults
    and to refuse wrong names and types."""
    _, _, meanings = cleandoc(shared.__doc__ or "").partition("\n\n")

    def decorate(build: Build) -> Build:
        parameters = dict(signature(build).parameters)
        more = next(n for n, p in parameters.items() if p.kind is Parameter.VAR_KEYWORD)
        del parameters[more]
        for name, option in signature(shared).parameters.items():
            if option.kind is Parameter.KEYWORD_ONLY and option.default is not Parameter.empty:
                parameters.setdefault(name, option)
        hints = {**get_type_hints(shared), **get_type_hints(build)}
        build.__annotations__ = {name: hints[name] for name in [*parameters, "return"]}
        typed = [p.replace(annotation=hints[name]) for name, p in parameters.items()]
        build.__doc__ = f"{cleandoc(build.__doc__ or '')}\n{meanings}".rstrip()
        vars(build)["__signature__"] = signature(build).replace(
            parameters=typed, return_annotation=hints["return"]
        )
        return build

    return decorate
