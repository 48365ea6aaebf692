"""The torch side of a pretrained transformer: groups of sequences in, one vector for each word out.

Axes: B sequences of a group, L their longest, P pieces of all groups with padding, M pairs of a word
and one of its pieces, T words, D width.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any, ContextManager, List, NamedTuple, Optional

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import Errors
from ..grouping import like_lengths
from .huggingface_files import KINDS, make_config, make_encoder
from .pieces import PieceBatch, PieceReader, Windows

# Pieces read at once: on a CPU what fits its caches, on a GPU what keeps it busy.
CPU_TOKENS, GPU_TOKENS = 1024, 16384
LAYER = re.compile(r"\.layers?\.(\d+)\.")


class Group(NamedTuple):
    """Sequences of similar length."""

    ids: Tensor  # (B, L)
    mask: Optional[Tensor]  # (B, L) None: no padding
    embedded: Optional[Tensor] = None  # (B, L, D) the embeddings of the pieces, where looked up


class PieceModule(nn.Module, ABC):
    """Reads sequences of pieces in groups of similar length, and makes one vector of each word's pieces.

    reader: Knows the tokenizer.
    pad: The number of the piece that fills up short sequences.
    pooling: How the vectors of a word's pieces become one; a word without pieces has zeros.
    max_batch_tokens: Pieces that the encoder reads at once, padding among them. None: what suits
        the device.
    """

    def __init__(
        self, reader: PieceReader, *, pad: int, pooling: str, max_batch_tokens: Optional[int]
    ):
        super().__init__()
        self.reader = reader
        self.pad = pad
        self.pooling = pooling
        self.max_batch_tokens = max_batch_tokens

    @abstractmethod
    def encode(self, group: Group) -> Tensor:
        """The vectors of the pieces of a group.  (B, L, D)"""

    def prepared(self, groups: List[Group]) -> List[Group]:
        """What is looked up for all groups at once."""
        return groups

    @property
    def device(self) -> torch.device:
        return next((p.device for p in self.parameters()), torch.device("cpu"))

    def forward(self, batch: PieceBatch) -> Tensor:  # (T, D)
        device = self.device
        lengths = numpy.array([len(ids) for ids in batch.ids])
        groups: List[Group] = []
        starts = numpy.empty(len(lengths), dtype="int64")  # of each sequence among all pieces
        n_pieces = 0
        budget = self.max_batch_tokens or (CPU_TOKENS if device.type == "cpu" else GPU_TOKENS)
        for rows in like_lengths(lengths, lambda size: budget // size, lambda _: budget // 32):
            longest = int(lengths[rows[0]])
            starts[rows] = n_pieces + numpy.arange(len(rows)) * longest
            n_pieces += len(rows) * longest
            groups.append(self.group(batch, rows, lengths, device))
        outputs = [self.encode(group).flatten(0, 1).float() for group in self.prepared(groups)]
        pieces = torch.cat(outputs) if len(outputs) > 1 else outputs[0]  # (P, D)
        return self.pool(pieces, starts[batch.sequence] + batch.position, batch)

    def group(
        self, batch: PieceBatch, rows: numpy.ndarray, lengths: numpy.ndarray, device: torch.device
    ) -> Group:
        longest = int(lengths[rows[0]])
        ids = numpy.full((len(rows), longest), self.pad, dtype="int64")
        for row, number in enumerate(rows.tolist()):
            ids[row, : lengths[number]] = batch.ids[number]
        mask = None
        if lengths[rows[-1]] < longest:
            unpadded = numpy.arange(longest) < lengths[rows][:, None]
            mask = torch.from_numpy(unpadded.astype("int64")).to(device)
        return Group(torch.from_numpy(ids).to(device), mask)

    def pool(self, pieces: Tensor, places: numpy.ndarray, batch: PieceBatch) -> Tensor:  # (T, D)
        """places: Of the piece of each pair among all pieces.  (M,)"""
        counts = numpy.bincount(batch.word, minlength=batch.n_words)  # (T,)
        starts = numpy.cumsum(counts) - counts
        if self.pooling == "first":
            places = places[starts[counts > 0]]
            counts = numpy.minimum(counts, 1)
            starts = numpy.cumsum(counts) - counts
        return F.embedding_bag(
            torch.from_numpy(places).to(pieces.device),
            pieces,
            torch.from_numpy(starts).to(pieces.device),
            mode="max" if self.pooling == "max" else "mean",
        )


class HuggingFaceModule(PieceModule):
    """encoder: A transformer of the library, without the layer that pools whole texts.
    layers: So many of the last layers are mixed, with weights that are learned.
    frozen_layers: The embeddings and so many of the lowest layers keep their weights. None: all do.
    precision: Of the products on a GPU.
    """

    def __init__(
        self,
        encoder: Any,
        reader: PieceReader,
        *,
        pooling: str = "mean",
        layers: int = 1,
        frozen_layers: Optional[int] = 0,
        max_batch_tokens: Optional[int] = None,
        gradient_checkpointing: bool = False,
        precision: Optional[torch.dtype] = None,
    ):
        pad = encoder.config.pad_token_id or 0
        super().__init__(reader, pad=pad, pooling=pooling, max_batch_tokens=max_batch_tokens)
        self.encoder = encoder
        self.learns = frozen_layers is not None
        self.precision = precision
        self.mix = nn.Parameter(torch.zeros(layers)) if layers > 1 else None
        for name, parameter in self.encoder.named_parameters(prefix="encoder"):
            lies_below = frozen_layers is None or depth(name, self.n_layers) <= frozen_layers
            parameter.requires_grad = frozen_layers == 0 or not lies_below
        if gradient_checkpointing:
            encoder.gradient_checkpointing_enable({"use_reentrant": False})

    @property
    def n_layers(self) -> int:
        return self.encoder.config.num_hidden_layers

    def prepared(self, groups: List[Group]) -> List[Group]:
        """In training, the embeddings of all pieces are looked up at once: each look-up has a gradient
        as large as the vocabulary."""
        lookup = self.encoder.get_input_embeddings()
        if not torch.is_grad_enabled() or not lookup.weight.requires_grad or len(groups) == 1:
            return groups
        embedded = lookup(torch.cat([group.ids.flatten() for group in groups]))  # (P, D)
        parts = embedded.split([group.ids.numel() for group in groups])
        return [
            group._replace(embedded=part.unflatten(0, group.ids.shape))
            for group, part in zip(groups, parts, strict=True)
        ]

    def encode(self, group: Group) -> Tensor:  # (B, L, D)
        with self.half_precision(group.ids.device):
            output = self.encoder(
                input_ids=group.ids if group.embedded is None else None,
                inputs_embeds=group.embedded,
                attention_mask=group.mask,
                output_hidden_states=self.mix is not None,
                return_dict=True,
            )
            return self.mixed(output)

    def mixed(self, output: Any) -> Tensor:  # (B, L, D)
        if self.mix is None:
            return output.last_hidden_state
        last = torch.stack(output.hidden_states[-len(self.mix) :])  # (k, B, L, D)
        return torch.einsum("k,kbld->bld", self.mix.softmax(0).to(last.dtype), last)

    def half_precision(self, device: torch.device) -> ContextManager:
        if self.precision is None or device.type == "cpu":
            return nullcontext()
        return torch.autocast(device.type, dtype=self.precision)


def depth(name: str, n_layers: int) -> int:
    """The layer of a parameter: 0 for embeddings, then the layers from 1."""
    found = LAYER.search(name)
    if found:
        return int(found.group(1)) + 1
    return 0 if "embeddings" in name else n_layers + 1


def make_module(
    *, config: str, tokenizer: str, max_pieces: int, windows: Windows, overlap: Any, **options: Any
) -> HuggingFaceModule:
    """The module of a stored encoder, with random weights.

    config, tokenizer: JSON.
    """
    from tokenizers import Tokenizer

    settings = make_config(json.loads(config))
    encoder = make_encoder(settings)
    read = Tokenizer.from_str(tokenizer)
    last = max(read.get_vocab().values(), default=0)
    longest = settings.max_position_embeddings - KINDS[settings.model_type]
    if last >= settings.vocab_size or not 0 < max_pieces <= longest:
        reason = "the tokenizer has more pieces, or longer sequences, than the encoder"
        raise ValueError(Errors.S005.format(reason=reason))
    reader = PieceReader(read, max_pieces=max_pieces, windows=windows, overlap=overlap)
    return HuggingFaceModule(encoder, reader, **options)
