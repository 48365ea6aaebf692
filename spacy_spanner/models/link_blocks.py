"""Where links of relations are looked for: in whole rows, or in each sentence of a row by itself.

Axes: B rows, L tokens, S stretches of tokens, M tokens of the longest, D width, N links.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import List, Tuple

import numpy
import torch
from torch import Tensor

from ..contract import Tokens
from ..grouping import like_lengths

PADDING = 128  # tokens; with more, another block is cheaper


@dataclass
class LinkBlock:
    """Stretches of tokens of like length, inside of which tokens may be linked."""

    row: Tensor  # (S,) row that a stretch is in
    first: Tensor  # (S,) its first token there
    number: Tensor  # (B, L) stretch that a token is in, -1 for none
    index: Tensor  # (S, M) tokens in the flattened rows; padding points to some token
    mask: Tensor  # (S, M) bool

    def take(self, values: Tensor) -> Tensor:
        """Values of tokens, stretch by stretch.  (B, L, ...) -> (S, M, ...)"""
        taken = values.flatten(0, 1).index_select(0, self.index.flatten())
        return taken.view(*self.index.shape, *values.shape[2:])

    @cached_property
    def pairs(self) -> Tensor:
        """Pairs of tokens that exist.  (S, M, M) bool"""
        return self.mask[:, :, None] & self.mask[:, None, :]

    def place(
        self, row: Tensor, first: Tensor, second: Tensor
    ) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        """Two tokens of each row (N,) as stretch and positions in it, and whether they are both in
        one; what is not gets values in range.  (N,) each"""
        number = self.number[row, first]
        inside = (number >= 0) & (number == self.number[row, second])
        number = torch.where(inside, number, 0)
        start = self.first[number]
        return number, (first - start) * inside, (second - start) * inside, inside


def link_blocks(tokens: Tokens) -> List[LinkBlock]:
    """All tokens of a batch of rows. Sentences come in blocks of like length: in a table of a whole
    row most cells would be pairs of different sentences."""
    device, sentences = tokens.mask.device, tokens.sentences
    n_rows, length = tokens.mask.shape
    if sentences is None:
        every = torch.arange(n_rows, device=device)  # (B,)
        index = torch.arange(n_rows * length, device=device).view(n_rows, length)
        number = every[:, None].expand(n_rows, length)
        return [LinkBlock(every, torch.zeros_like(every), number, index, tokens.mask)]
    blocks = []
    counts = numpy.array(sentences.lengths)
    for group in like_lengths(counts, lambda longest: len(counts), lambda longest: PADDING):
        rank = numpy.full(len(counts), -1)
        rank[group] = numpy.arange(len(group))
        steps = numpy.arange(counts[group].max())  # (M,)
        mask = steps < counts[group][:, None]  # (S, M)
        first = sentences.first[group]  # (S,)
        index = (first[:, None] + steps) * mask
        row, start = numpy.divmod(first, length)
        arrays = {"row": row, "first": start, "number": rank, "index": index, "mask": mask}
        block = LinkBlock(**{name: torch.from_numpy(a).to(device) for name, a in arrays.items()})
        block.number = block.number[sentences.number]  # (B, L)
        blocks.append(block)
    return blocks
