"""Several encoders side by side, with a BiLSTM over the concatenated vectors if wanted.

thinc's `concatenate.v1` cannot take its place: a transformer listener gives documents without tokens
vectors of width 0, which it refuses, and stored models have one node for all of this.

Axes: T tokens of the batch, D joined width.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, List, Optional, Tuple

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ..bridge import shim_of
from ..dropout import Dropout
from ..errors import Errors
from ..forking import forks_wait
from ..sentences import found_starts, marked_starts
from ..shim import ModuleShim
from .packing import PackedBiLSTM
from .torch_layer import Encoder, check_option, check_rates, flatten, grad_mode, no_tokens, split


class Join(nn.Module):
    """Dropout on the joined vectors, then the BiLSTM, then dropout on its states."""

    def __init__(
        self,
        *,
        width: int,
        lstm_width: Optional[int],
        lstm_layers: int,
        dropout: float,
        output_dropout: float,
    ):
        super().__init__()
        self.dropout, self.output_dropout = Dropout(dropout), Dropout(output_dropout)
        self.lstm = None
        if lstm_width is not None:
            self.lstm = PackedBiLSTM(
                width=width, hidden=lstm_width // 2, layers=lstm_layers, dropout=dropout
            )

    def forward(self, x: Tensor, lengths: numpy.ndarray) -> Tensor:  # (T, D) -> (T, nO)
        x = self.dropout(x)
        return self.output_dropout(x if self.lstm is None else self.lstm(x, lengths)[0])


@forks_wait
def forward(model: Encoder, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable]:
    """The parts, concatenated, through the module; gradients go back to each part."""
    lengths = numpy.array([len(doc) for doc in docs], dtype="int64")
    if not lengths.any():
        return no_tokens(model, docs)
    shim = shim_of(model)
    outputs, backprops = zip(*[part(docs, is_train) for part in model.layers], strict=True)
    parts = [flatten(model, vectors) for vectors in outputs]
    joined = torch.cat(parts, dim=1)  # (T, D)
    if joined.shape[1] != model.get_dim("nI"):
        raise ValueError(Errors.S006.format(got=joined.shape[1], expected=model.get_dim("nI")))
    shim.module.train(is_train)
    with grad_mode(is_train):
        joined.requires_grad_(is_train)
        rows = sentence_lengths(docs) if model.attrs["by_sentence"] else lengths[lengths > 0]
        states = shim.module(joined, rows)  # (T, nO)

    def backprop(d_docs: List[Floats2d]) -> List[Doc]:
        states.backward(flatten(model, d_docs))
        assert joined.grad is not None
        d_parts = torch.split(joined.grad, [part.shape[1] for part in parts], dim=1)
        for vectors, backprop_part, d_part in zip(outputs, backprops, d_parts, strict=True):
            d_vectors = split(d_part.contiguous(), lengths.tolist())
            for i in numpy.flatnonzero(lengths == 0).tolist():
                d_vectors[i] = model.ops.alloc2f(*vectors[i].shape)  # a listener's has no width
            backprop_part(d_vectors)
        return []

    return split(states, lengths.tolist()), backprop


def sentence_lengths(docs: List[Doc]) -> numpy.ndarray:
    """Tokens of all sentences, as they are marked or else by rules."""
    lengths = [
        numpy.diff(marked_starts(doc) or found_starts(doc), append=len(doc))
        for doc in docs
        if len(doc)
    ]
    return numpy.concatenate(lengths)


def init(model: Encoder, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    """Initialize the parts, then build the module for the sum of their widths."""
    for part in model.layers:
        part.initialize(X)
    model.set_dim("nI", sum(part_width(part, X) for part in model.layers))
    if model.has_dim("nO") is None:
        model.set_dim("nO", model.get_dim("nI"))
    shim_of(model).build(width=model.get_dim("nI"))


def part_width(part: Encoder, docs: Optional[List[Doc]]) -> int:
    """The width of a part's vectors."""
    if part.has_dim("nO") or not docs:
        return part.get_dim("nO")
    # A listener of a transformer shows its width only in its output.
    return max(vectors.shape[1] for vectors in part.predict(docs))


def build_joined_encoder(
    *parts: Model[List[Doc], List[Floats2d]],
    lstm_width: Optional[int] = None,
    lstm_layers: int = 1,
    dropout: float = 0.0,
    output_dropout: float = 0.0,
    by_sentence: bool = False,
    learn_rate_scale: float = 1.0,
) -> Model[List[Doc], List[Floats2d]]:
    """The vectors of all parts side by side; with `lstm_width`, the states of a BiLSTM over them.

    parts: Encoders of any kind, also listeners; `[....*.name]` blocks in a config.
    lstm_width: Width of the BiLSTM's states, half of it in each direction. None: no BiLSTM.
    lstm_layers: Layers of the BiLSTM.
    dropout: On the joined vectors and between the layers of the BiLSTM.
    output_dropout: On the result.
    by_sentence: The BiLSTM reads each sentence by itself, as components before it or else rules have
        them; otherwise whole documents.
    learn_rate_scale: Of the BiLSTM alone; parts have their own.
    """
    check_option("JoinedEncoder", "parts", parts, len(parts) > 0, "there must be at least one")
    even = lstm_width is None or (lstm_width > 0 and lstm_width % 2 == 0)
    check_option("JoinedEncoder", "lstm_width", lstm_width, even, "it must be even and positive")
    check_rates("JoinedEncoder", dropout=dropout, output_dropout=output_dropout)
    maker = partial(
        Join,
        lstm_width=lstm_width,
        lstm_layers=lstm_layers,
        dropout=dropout,
        output_dropout=output_dropout,
    )
    return Model(
        "JoinedEncoder",
        forward,
        init=init,
        layers=parts,
        shims=[ModuleShim(maker, learn_rate_scale=learn_rate_scale)],
        dims={"nI": None, "nO": lstm_width},
        attrs={"by_sentence": by_sentence},
    )
