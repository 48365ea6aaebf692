"""An encoder whose gradients are weighed, so that components that share one can count differently."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from .torch_layer import Encoder, check_option


def forward(model: Encoder, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable]:
    """The vectors of the encoder as they are; gradients times the weight."""
    vectors, backprop_encoder = model.layers[0](docs, is_train)
    weight = model.attrs["weight"]

    def backprop(d_vectors: List[Floats2d]) -> Any:
        return backprop_encoder([weight * d_array for d_array in d_vectors])

    return vectors, backprop


def init(model: Encoder, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    encoder = model.layers[0]
    encoder.initialize(X)
    if encoder.has_dim("nO"):
        model.set_dim("nO", encoder.get_dim("nO"))


def build_weighted_encoder(tok2vec: Model[List[Doc], List[Floats2d]], weight: float) -> Encoder:
    """The same vectors, and gradients times a weight.

    tok2vec: An encoder, usually a listener of one that is shared.
    weight: Of what a component teaches the encoder, over 0.
    """
    check_option("WeightedEncoder", "weight", weight, weight > 0, "it must be positive")
    width = tok2vec.get_dim("nO") if tok2vec.has_dim("nO") else None
    return Model(
        "WeightedEncoder",
        forward,
        init=init,
        layers=[tok2vec],
        dims={"nO": width},
        attrs={"weight": weight},
    )
