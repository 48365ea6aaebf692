"""Entities and relations by three Efficient Global Pointers (Su et al. 2022, Table 3: GPLinker).

Axes: B rows, L tokens, D width, C entity labels, R relation labels, N spans, M relations, K links of
starts, P pairs of spans.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Mapping, Optional

import torch
from torch import Tensor

from ..contract import Decoded, Facts, Gold, SpanModule, Tokens, empty_decoded
from ..dropout import Dropout
from ..relations.bridge import Links, relation_table_model
from .builder import architecture
from .cell_losses import GoldCells, multilabel_loss
from .global_pointer import GlobalPointer
from .pointer_scorers import EfficientPairScorer, check_pointer


class RelationPointer(SpanModule):
    """Finds entities, and links the start of one to the start of another and the end to the end.
    Without entity labels there is no entity head, and the spans to link must be given."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        n_relations: int,
        head_size: int = 64,
        use_rope: bool = True,
        dropout: float = 0.0,
        sum_labels: bool = True,
        max_width: Optional[int] = None,
    ):
        """
        head_size: Width of queries and keys; even where `use_rope` is set.
        use_rope: Rotary position embedding in the entity head; links have none.
        dropout: Of the token vectors that all three heads read.
        sum_labels: Sum each of the three losses over its labels, as in the authors' code; otherwise
            take the mean.
        max_width: Widest entity to look at; null for no other bound than the component's.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.n_relations, self.sum_labels = n_relations, sum_labels
        self.dropout = Dropout(dropout)
        scorer = partial(EfficientPairScorer, head_size=head_size, scale=True)
        self.entities: Optional[GlobalPointer] = None
        if n_labels:
            self.entities = GlobalPointer(
                width=width,
                n_labels=n_labels,
                efficient=True,
                head_size=head_size,
                use_rope=use_rope,
                max_width=max_width,
            )
        self.starts = scorer(width=width, n_labels=n_relations, use_rope=False)
        self.ends = scorer(width=width, n_labels=n_relations, use_rope=False)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        check_pointer(cls.__name__, options)
        return Facts(max_width=options["max_width"])

    def encode(self, tokens: Tokens) -> Tokens:
        return tokens.with_states(self.dropout(tokens.x))

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """The sum of the losses of the three heads."""
        assert gold.relations is not None
        row, head_start, head_end, tail_start, tail_end, label = gold.relations.unbind(1)
        pairs = encoded.mask[:, :, None] & encoded.mask[:, None, :]  # (B, L, L)
        if encoded.sentences is not None:
            pairs = pairs & encoded.sentences.same()
        cells = partial(link_cells, pairs, self.n_relations, row, label)
        candidates = pairs
        if gold.known is not None:
            candidates = pairs & gold.known[:, :, None] & gold.known[:, None, :]
        link_loss = partial(
            multilabel_loss, candidates=candidates[:, None], sum_labels=self.sum_labels
        )
        loss = link_loss(self.starts(encoded.x), cells(head_start, tail_start))
        loss = loss + link_loss(self.ends(encoded.x), cells(head_end - 1, tail_end - 1))
        if self.entities is None:
            return loss
        share = self.n_labels if self.sum_labels else 1  # the entity head takes the mean
        return loss + share * self.entities.loss(encoded, gold)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """The entities; `link` finds the relations between them."""
        if self.entities is None:
            return empty_decoded(encoded.x)
        return self.entities.decode(encoded, thresholds)

    def link(self, encoded: Tokens, spans: Tensor, thresholds: Tensor) -> Links:
        """Relations between spans (N, 3) of the same row: a label holds for a pair if the link of
        the starts and the link of the ends are both over its threshold (R,). The score of a
        relation is the smaller of the two probabilities.

        Goes from the linked starts to the spans that begin there: there are few of them, while the
        pairs of all spans can be very many. Spans must be sorted by row and start, each once."""
        rows, length = encoded.mask.shape
        place = spans[:, 0] * length + spans[:, 1]  # (N,): the cell of (B, L) where a span starts
        count = place.bincount(minlength=rows * length)  # (B L,)
        first = count.cumsum(0) - count  # (B L,): the first span of each cell
        begins = (count > 0).view(rows, 1, length)  # (B, 1, L)
        starts = self.starts(encoded.x)  # (B, R, L, L)
        over = starts > torch.logit(thresholds)[:, None, None]
        over = over & begins[:, :, :, None] & begins[:, :, None, :]
        if encoded.sentences is not None:
            over = over & encoded.sentences.same()[:, None]
        row, label, i, j = over.nonzero(as_tuple=True)  # (K,) each
        n_heads, n_tails = count[row * length + i], count[row * length + j]  # (K,)
        n_pairs = n_heads * n_tails  # (K,)
        link = torch.arange(len(row), device=row.device).repeat_interleave(n_pairs)  # (P,)
        number = torch.arange(len(link), device=row.device) - (n_pairs.cumsum(0) - n_pairs)[link]
        head = spans[first[row * length + i][link] + number // n_tails[link]]  # (P, 3)
        tail = spans[first[row * length + j][link] + number % n_tails[link]]  # (P, 3)
        ends = self.ends(encoded.x)[row[link], label[link], head[:, 2] - 1, tail[:, 2] - 1]  # (P,)
        keep = (ends > torch.logit(thresholds)[label[link]]).nonzero()[:, 0]
        table = torch.column_stack([head, tail[:, 1:], label[link]])  # (P, 6)
        logits = torch.minimum(starts[row, label, i, j][link], ends)  # (P,)
        return Links(table[keep], torch.sigmoid(logits[keep]))

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        entities = 0 if self.entities is None else self.entities.cells(length, max_width)
        return entities + 2 * self.n_relations * length * length


def link_cells(
    pairs: Tensor, labels: int, row: Tensor, label: Tensor, first: Tensor, second: Tensor
) -> GoldCells:
    """Gold cells of a link table (B, R, L, L), each counted once: relations of different spans
    may begin, or end, at the same two tokens. Those outside the `pairs` (B, L, L) that may be
    linked do not count."""
    _, length, columns = pairs.shape
    key = ((row * labels + label) * length + first) * columns + second  # (M,)
    order = key.argsort()
    again = torch.diff(key[order], prepend=key.new_full((1,), -1)) == 0  # (M,)
    once = torch.zeros_like(again).scatter(0, order, ~again)
    return GoldCells(row, label, first, second, once & pairs[row, first, second])


build_relation_pointer = architecture(RelationPointer, build=relation_table_model)
