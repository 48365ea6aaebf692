"""Character encoders of words: BiLSTM (Lample et al. 2016), CNN (Ma and Hovy 2016) and IntNet (Xin
et al. 2018, the character encoder of Hire-NER, Luo et al. 2020).

Axes: U words, K characters of a word, S characters of all words together, E width of a character
embedding, D width of a word.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterator, List, Literal, Tuple

import numpy
import torch
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F

from ..dropout import Dropout
from ..shim import shim_of
from .packing import PackedBiLSTM
from .torch_layer import (
    Encoder,
    check_option,
    check_rates,
    to_device,
    uniform,
    with_options_of,
    word_layer,
)

EXACT = 0x180  # code points with a row of their own: Latin up to Extended-A
GROUPS = (4, 8, 12, 20)  # words up to these lengths are padded together


def read_characters(
    model: Encoder, words: numpy.ndarray, vocab: Vocab
) -> Tuple[Tensor, numpy.ndarray]:
    """The characters of distinct words, and the length of each word."""
    texts = [vocab.strings[word] for word in words.tolist()]
    rows, lengths = character_rows(texts, model.attrs["n_chars"], model.attrs["max_chars"])
    return to_device(rows, shim_of(model)), lengths


def character_rows(
    texts: List[str], n_chars: int, max_chars: int
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The table rows of all characters, word after word (S,), and the length of each word (U,).

    Latin characters have rows of their own, all others share the rest by code point. Of a word
    longer than `max_chars` the middle is left out: its beginning and end say more about it."""
    head = (max_chars + 1) // 2
    tail = max_chars - head
    cut = [
        text if len(text) <= max_chars else text[:head] + text[len(text) - tail :] for text in texts
    ]
    cut = [text or "\0" for text in cut]  # a token may be the empty string
    lengths = numpy.fromiter(map(len, cut), dtype="int64", count=len(cut))
    encoded = "".join(cut).encode("utf-32-le", "surrogatepass")
    points = numpy.frombuffer(encoded, dtype="<u4").astype("int64")  # (S,)
    return numpy.where(points < EXACT, points, EXACT + points % (n_chars - EXACT)), lengths


def grouped(lengths: numpy.ndarray) -> Iterator[Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]:
    """Words of similar length: their numbers (n,), the positions of their characters among all of
    them (n, K), and which of those are unpadded (n, K)."""
    starts = numpy.cumsum(lengths) - lengths
    order = numpy.argsort(lengths, kind="stable")
    bounds = numpy.searchsorted(lengths[order], GROUPS, side="right")
    for words in numpy.split(order, bounds):
        if len(words):
            steps = numpy.arange(int(lengths[words].max()))
            mask = steps < lengths[words, None]
            yield words, numpy.where(mask, starts[words, None] + steps, 0), mask


class CharTable(nn.Module):
    """Character embeddings with dropout."""

    def __init__(self, *, n_chars: int, width: int, dropout: float):
        super().__init__()
        self.rows = nn.Parameter(uniform(n_chars, width))
        self.dropout = Dropout(dropout)

    def forward(self, chars: Tensor) -> Tensor:  # (S,) -> (S, E)
        return self.dropout(F.embedding(chars, self.rows))


class CharBiLSTM(nn.Module):
    """The last states of both directions, or the mean of all states."""

    def __init__(self, *, table: partial, char_width: int, hidden_width: int, pool: str):
        super().__init__()
        self.table = table()
        self.lstm = PackedBiLSTM(width=char_width, hidden=hidden_width)
        self.pool = pool

    def forward(self, chars: Tensor, lengths: numpy.ndarray) -> Tensor:
        states, last = self.lstm(self.table(chars), lengths)  # (S, D), (U, D)
        if self.pool == "last":
            return last
        words = numpy.repeat(numpy.arange(len(lengths)), lengths)
        on_device = torch.from_numpy(words).to(last.device)
        sums = torch.zeros_like(last).index_add(0, on_device, states)  # (U, D)
        return sums / torch.from_numpy(lengths).to(last.device, last.dtype)[:, None]


class CharCNN(nn.Module):
    """One convolution, then the maximum over the characters of a word."""

    def __init__(self, *, table: partial, char_width: int, filters: int, kernel: int):
        super().__init__()
        self.table = table()
        self.convolve = nn.Conv1d(char_width, filters, kernel, padding=kernel // 2)

    def forward(self, chars: Tensor, lengths: numpy.ndarray) -> Tensor:
        return by_group(self.table(chars), lengths, self.encode)

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:  # (n, E, K), (n, 1, K) -> (n, D)
        return self.convolve(x).masked_fill(~mask, float("-inf")).amax(dim=2)


class Convolutions(nn.Module):
    """Convolutions of several kernel widths side by side."""

    def __init__(self, width: int, filters: int, kernels: List[int]):
        super().__init__()
        self.kernels = nn.ModuleList(
            nn.Conv1d(width, filters, kernel, padding=kernel // 2) for kernel in kernels
        )

    def forward(self, x: Tensor) -> Tensor:  # (n, width, K) -> (n, filters * kernels, K)
        return F.relu(torch.cat([convolve(x) for convolve in self.kernels], dim=1))


class IntNet(nn.Module):
    """Convolutions of several kernel widths, then blocks that each read the channels of all before
    them through a narrow layer; the maximum over the characters of every channel."""

    def __init__(
        self,
        *,
        table: partial,
        char_width: int,
        first_filters: int,
        filters: int,
        kernels: List[int],
        layers: int,
    ):
        super().__init__()
        self.table = table()
        self.first = Convolutions(char_width, first_filters, kernels)
        self.narrow, self.wide = nn.ModuleList(), nn.ModuleList()
        channels = first_filters * len(kernels)
        for _ in range((layers - 1) // 2):
            self.narrow.append(nn.Conv1d(channels, filters, 1))
            self.wide.append(Convolutions(filters, filters, kernels))
            channels += filters * len(kernels)

    def forward(self, chars: Tensor, lengths: numpy.ndarray) -> Tensor:
        return by_group(self.table(chars), lengths, self.encode)

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:  # (n, E, K), (n, 1, K) -> (n, D)
        # Biases make padding non-zero; each kernel must read zeros there.
        channels = self.first(x) * mask
        for narrow, wide in zip(self.narrow, self.wide, strict=True):
            new = wide(F.relu(narrow(channels)) * mask) * mask
            channels = torch.cat([new, channels], dim=1)
        return channels.amax(dim=2)  # zeros of padding never win: all channels are >= 0


def by_group(
    x: Tensor, lengths: numpy.ndarray, encode: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Run `encode` over groups of words of similar length.  (S, E) -> (U, D)"""
    found, numbers = [], []
    for words, positions, mask in grouped(lengths):
        padded = F.embedding(torch.from_numpy(positions).to(x.device), x)  # (n, K, E)
        on_device = torch.from_numpy(mask).to(x.device)[:, None]  # (n, 1, K)
        found.append(encode(padded.transpose(1, 2) * on_device, on_device))  # (n, D)
        numbers.append(words)
    inverse = numpy.argsort(numpy.concatenate(numbers))
    return F.embedding(torch.from_numpy(inverse).to(x.device), torch.cat(found))


def char_layer(
    name: str,
    maker: partial,
    *,
    width: int,
    char_width: int = 25,
    n_chars: int = 1024,
    max_chars: int = 40,
    dropout: float = 0.0,
    learn_rate_scale: float = 1.0,
) -> Encoder:
    """The common part of the character encoders: the table of characters and the reading of words.

    char_width: Width of a character embedding.
    n_chars: Rows of the character table.
    max_chars: Longer words lose their middle.
    dropout: On the character embeddings.
    """
    check_option(
        name, "n_chars", n_chars, n_chars > EXACT, f"{EXACT} Latin characters have their own rows"
    )
    check_option(name, "max_chars", max_chars, max_chars > 1, "a word needs a beginning and an end")
    check_rates(name, dropout=dropout)
    table = partial(CharTable, n_chars=n_chars, width=char_width, dropout=dropout)
    return word_layer(
        name,
        partial(maker, table=table, char_width=char_width),
        read_characters,
        width=width,
        learn_rate_scale=learn_rate_scale,
        attrs={"n_chars": n_chars, "max_chars": max_chars},
    )


@with_options_of(char_layer)
def build_char_bilstm(
    hidden_width: int = 25, pool: Literal["last", "mean"] = "last", **shared: Any
) -> Model[List[Doc], List[Floats2d]]:
    """Vectors of width 2 * hidden_width from a BiLSTM over the characters of each word.

    hidden_width: Width of the LSTM's state in each direction.
    pool: "last" concatenates the last states of both directions, "mean" takes the mean of all states.
    """
    maker = partial(CharBiLSTM, hidden_width=hidden_width, pool=pool)
    return char_layer("CharBiLSTM", maker, width=2 * hidden_width, **shared)


@with_options_of(char_layer)
def build_char_cnn(
    filters: int = 50, kernel: int = 3, **shared: Any
) -> Model[List[Doc], List[Floats2d]]:
    """Vectors of width `filters`: one convolution over the characters of each word and the maximum.

    kernel: Characters that a filter sees at once; odd.
    """
    check_option("CharCNN", "kernel", kernel, kernel % 2 == 1, "it must be odd")
    maker = partial(CharCNN, filters=filters, kernel=kernel)
    return char_layer("CharCNN", maker, width=filters, **shared)


@with_options_of(char_layer)
def build_int_net(
    char_width: int = 32,
    first_filters: int = 32,
    filters: int = 16,
    kernels: List[int] = [3, 5],  # noqa: B006 - read only; spaCy wants the default in the signature
    layers: int = 7,
    dropout: float = 0.5,
    **shared: Any,
) -> Model[List[Doc], List[Floats2d]]:
    """Vectors of width len(kernels) * (first_filters + (layers - 1) / 2 * filters); 160 by default.

    first_filters: Filters of each kernel width in the first layer.
    filters: Filters of each kernel width in the later layers, and of the narrow layers.
    kernels: Characters that filters see at once; odd.
    layers: The first convolution and two layers for each block; odd.
    """
    odd = bool(kernels) and all(kernel % 2 == 1 for kernel in kernels)
    check_option("IntNet", "kernels", kernels, odd, "there must be some and all must be odd")
    check_option("IntNet", "layers", layers, layers % 2 == 1, "one layer and two for each block")
    maker = partial(
        IntNet, first_filters=first_filters, filters=filters, kernels=kernels, layers=layers
    )
    width = len(kernels) * (first_filters + (layers - 1) // 2 * filters)
    shared.update(char_width=char_width, dropout=dropout)
    return char_layer("IntNet", maker, width=width, **shared)
