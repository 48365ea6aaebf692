"""spaCy's own encoder in prediction: the same sums with fewer passes over memory.

The functions behind some nodes of a thinc model are replaced, its weights and its structure are not:
training and what is stored stay as they are. Nothing is kept between calls, so weights may change.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import numpy
import torch
from spacy.ml.featureextractor import forward as features_forward
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps
from thinc.layers.chain import forward as chain_forward
from thinc.layers.concatenate import forward as concatenate_forward
from thinc.layers.dropout import forward as dropout_forward
from thinc.layers.expand_window import forward as window_forward
from thinc.layers.hashembed import forward as hash_forward
from thinc.layers.layernorm import forward as norm_forward
from thinc.layers.list2ragged import forward as ragged_forward
from thinc.layers.maxout import forward as maxout_forward
from thinc.layers.ragged2list import forward as list_forward
from thinc.layers.residual import forward as residual_forward
from thinc.layers.with_array import forward as array_forward
from thinc.types import Floats2d
from torch import Tensor
from torch.nn.functional import layer_norm

from .forking import forks_wait

ROWS = 512  # of a block: its windows and pieces stay in the second cache of a core
EPSILON = 1e-8  # thinc's, of a norm
# Odd numbers by which the features of a word become one number.
MIX = numpy.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], dtype="uint64"
)


def use_fast_layers(model: Model) -> int:
    """Give the layers of spaCy's tok2vec in a model faster functions; what is not known stays.

    Returns how many were replaced."""
    found = 0
    for node in list(model.walk()):
        for fits, forward in ((is_hash_embed, embed_words), (is_window_encoder, encode_windows)):
            if fits(node):
                node._func = forward
                found += 1
    return found


def is_hash_embed(node: Model) -> bool:
    """Is it a `MultiHashEmbed` without static vectors?"""
    if node._func is not chain_forward or len(node.layers) != 5:
        return False
    read, _, embed, mix, _ = node.layers
    steps = (features_forward, ragged_forward, array_forward, array_forward, list_forward)
    if tuple(layer._func for layer in node.layers) != steps:
        return False
    tables = embed.layers[0]
    columns = tables.layers if tables._func is concatenate_forward else [tables]
    hashed = all(
        len(column.layers) == 2 and column.layers[1]._func is hash_forward for column in columns
    )
    return hashed and 1 <= len(read.attrs["columns"]) <= len(MIX) and is_maxout(mix.layers[0])


def is_window_encoder(node: Model) -> bool:
    """Is it a `MaxoutWindowEncoder`?"""
    if node._func is not array_forward:
        return False
    blocks = blocks_of(node)
    sizes = {block.layers[0].layers[0].attrs["window_size"] for block in blocks if is_block(block)}
    if not all(map(is_block, blocks)) or len(sizes) != 1:
        return False
    # So that documents never see each other, which is not checked again.
    return node.attrs["pad"] == len(blocks) * sizes.pop()


def blocks_of(node: Model) -> List[Model]:
    """The layers of a window encoder."""
    inner = node.layers[0]
    return list(inner.layers) if inner._func is chain_forward else [inner]


def is_block(node: Model) -> bool:
    """Is it a layer of a window encoder?"""
    if node._func is not residual_forward or node.layers[0]._func is not chain_forward:
        return False
    inner = node.layers[0].layers
    return len(inner) == 2 and inner[0]._func is window_forward and is_maxout(inner[1])


def is_maxout(node: Model) -> bool:
    """Is it a `Maxout` with norm and dropout?"""
    if node._func is not chain_forward or len(node.layers) != 2:
        return False
    inner, dropout = node.layers
    steps = [layer._func for layer in inner.layers]
    chained = inner._func is chain_forward and steps == [maxout_forward, norm_forward]
    return chained and dropout._func is dropout_forward


class Maxout:
    """The weights of a `Maxout` with norm, as the present call needs them: pieces come one after the
    other instead of side by side, so that their maximum is one of whole rows."""

    def __init__(self, node: Model):
        maxout, norm = node.layers[0].layers
        weights = tensor(maxout.get_param("W"))  # (O, P, I)
        self.width, self.n_pieces, n_inputs = weights.shape
        self.weights = weights.transpose(0, 1).reshape(-1, n_inputs).t()  # (I, P * O)
        self.bias = tensor(maxout.get_param("b")).t().reshape(-1)  # (P * O,)
        self.scale, self.shift = tensor(norm.get_param("G")), tensor(norm.get_param("b"))  # (O,)

    def __call__(self, x: Tensor) -> Tensor:
        """x: (N, I). Returns (N, O)."""
        pieces = torch.addmm(self.bias, x, self.weights).split(self.width, dim=1)
        best = pieces[0]
        for piece in pieces[1:]:
            best = torch.maximum(best, piece)
        return layer_norm(best, (self.width,), self.scale, self.shift, EPSILON)


def tensor(array: Any) -> Tensor:
    return torch.from_numpy(numpy.ascontiguousarray(array))


def no_backprop(gradient: Any) -> Any:
    """Never called: training takes thinc's own functions."""
    raise NotImplementedError


@forks_wait
def embed_words(
    model: Model[List[Doc], List[Floats2d]], docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """`MultiHashEmbed`, each word once: its features decide, and texts repeat most of their words."""
    read, _, embed, mix, _ = model.layers
    if is_train or not isinstance(model.ops, NumpyOps):
        return chain_forward(model, docs, is_train)
    features = read.predict(docs)
    lengths = [len(part) for part in features]
    if not sum(lengths):
        return chain_forward(model, docs, is_train)
    rows = numpy.concatenate(features)  # (T, F) uint64
    first, inverse = unique_rows(rows)
    words = embed.layers[0].predict(rows if first is None else rows[first])  # (U, F * D)
    with torch.inference_mode():
        vectors = Maxout(mix.layers[0])(tensor(words)).numpy()  # (U, O)
    if first is not None:
        vectors = vectors[inverse]  # (T, O)
    return split(vectors, lengths), no_backprop


def unique_rows(rows: numpy.ndarray) -> Tuple[Optional[numpy.ndarray], Optional[numpy.ndarray]]:
    """Where each different row is found first, and which of these each row is; None twice in the
    odd case that two of them are mixed to the same number."""
    mixed = (rows * MIX[: rows.shape[1]]).sum(axis=1, dtype="uint64")  # (T,)
    _, first, inverse = numpy.unique(mixed, return_index=True, return_inverse=True)
    if not numpy.array_equal(rows[first][inverse], rows):
        return None, None
    return first, inverse


def split(vectors: Any, lengths: List[int]) -> List[Floats2d]:
    """The vectors of each document."""
    ends = numpy.cumsum(lengths).tolist()
    return [vectors[end - length : end] for end, length in zip(ends, lengths, strict=True)]


@forks_wait
def encode_windows(model: Model, inputs: Any, is_train: bool) -> Tuple[Any, Callable]:
    """`MaxoutWindowEncoder`. Between documents lie as many rows of zeros as the layers reach; each
    layer computes those that later ones read."""
    if is_train or not isinstance(model.ops, NumpyOps) or not isinstance(inputs, list):
        return array_forward(model, inputs, is_train)
    lengths = [len(part) for part in inputs]
    if not sum(lengths):
        return array_forward(model, inputs, is_train)
    pad, blocks = model.attrs["pad"], blocks_of(model)
    reach = pad // len(blocks)
    x = tensor(model.layers[0].ops.flatten(inputs, pad=pad))  # (R, D)
    kept = numpy.array([length for length in lengths if length])
    # The rows of documents, each behind its padding.
    at = numpy.arange(int(kept.sum())) + numpy.repeat(numpy.arange(1, len(kept) + 1) * pad, kept)
    with torch.inference_mode():
        for number, block in enumerate(blocks, start=1):
            later = (len(blocks) - number) * reach  # rows beside a document that are still read
            rows = torch.from_numpy(near(at, later, len(x)) if later else at)
            out = convolve(block, x, rows, reach)
            if later:
                x = torch.empty_like(x).index_copy_(0, rows, out)
    return split(out.numpy(), lengths), no_backprop


def near(at: numpy.ndarray, distance: int, n_rows: int) -> numpy.ndarray:
    """Rows that are at most so far away from those that are given; these lie further from both ends."""
    mask = numpy.zeros(n_rows, dtype=bool)
    for shift in range(-distance, distance + 1):
        mask[at + shift] = True
    return numpy.flatnonzero(mask)


def convolve(block: Model, x: Tensor, rows: Tensor, reach: int) -> Tensor:
    """A layer at some rows of x (R, D), none of which lies at an end.  (N, D)"""
    n_rows, width = x.shape
    maxout = Maxout(block.layers[0].layers[1])
    n_inputs = (2 * reach + 1) * width
    windows = x.as_strided((n_rows - 2 * reach, n_inputs), (width, 1))
    parts = []
    for part in rows.split(ROWS):
        own = windows.index_select(0, part - reach)  # (N, I)
        out = maxout(own)
        parts.append(out.add_(own[:, reach * width : (reach + 1) * width]))
    return torch.cat(parts)
