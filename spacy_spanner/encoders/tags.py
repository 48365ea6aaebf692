"""Part-of-speech embeddings (the tag part of Locate and Label's encoder, Shen et al. 2021).

spaCy's `MultiHashEmbed` mixes its tables by a maxout layer; here the tag's vector is kept apart.

Axes: U distinct tags of a batch, D width.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, List, Literal, Optional, Tuple

import numpy
from spacy.attrs import POS, TAG
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import Warnings
from ..shim import shim_of
from .torch_layer import Encoder, to_device, uniform, word_layer

ATTRS = {"TAG": TAG, "POS": POS}


@dataclass
class Watch:
    """State of the warning about missing tags. Not stored: a loaded model warns again."""

    waiting: bool = False  # for the first training step; documents have no tags before it
    warned: bool = False


class TagTable(nn.Module):
    """The sum of two rows a tag, so that two tags hardly ever have the same vector."""

    def __init__(self, *, n_rows: int, width: int):
        super().__init__()
        self.rows = nn.Parameter(uniform(n_rows, width))

    def forward(self, rows: Tensor) -> Tensor:  # (U, 2) -> (U, D)
        return F.embedding(rows, self.rows).sum(dim=1)


def read_tags(model: Encoder, tags: numpy.ndarray, vocab: Vocab) -> Tuple[Tensor]:
    """Two table rows for each distinct tag; warns once where there are no tags."""
    watch: Watch = model.attrs["watch"]
    watch.waiting = watch.waiting and not shim_of(model).module.training
    if not (watch.waiting or watch.warned or tags.any()):
        watch.warned = True
        name = "tag_" if model.attrs["attr"] == TAG else "pos_"
        warnings.warn(Warnings.SW10.format(attr=name), stacklevel=2)
    halves = numpy.stack([tags, tags >> numpy.uint64(32)], axis=1)  # (U, 2)
    rows = halves % numpy.uint64(model.attrs["n_rows"])
    return (to_device(rows.astype("int64"), shim_of(model)),)


def init(model: Encoder, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    """Build the table; no warning before the first training step."""
    shim_of(model).build()
    model.attrs["watch"].waiting, model.attrs["watch"].warned = True, False


def build_tag_embed(
    width: int = 25,
    attr: Literal["TAG", "POS"] = "TAG",
    n_rows: int = 500,
    dropout: float = 0.0,
    learn_rate_scale: float = 1.0,
) -> Model[List[Doc], List[Floats2d]]:
    """Vectors of the tokens' part-of-speech tags.

    width: Width of the vectors.
    attr: "TAG" for `token.tag_`, "POS" for `token.pos_`. A component before this one must set them,
        in training too: name it in `annotating_components`.
    n_rows: Rows of the table that tags are hashed to.
    dropout: On the token vectors.
    """
    return word_layer(
        "TagEmbed",
        partial(TagTable, n_rows=n_rows, width=width),
        read_tags,
        attr=ATTRS[attr],
        width=width,
        init=init,
        dropout=dropout,
        learn_rate_scale=learn_rate_scale,
        attrs={"n_rows": n_rows, "watch": Watch()},
    )
