"""Entities and relations by three Efficient Global Pointers (Su et al. 2022, Table 3: GPLinker).

Axes: B rows, L tokens, D width, C entity labels, R relation labels, N spans or gold cells, K links of
starts, P pairs of spans; S stretches of M tokens, in which links are looked for (see `link_blocks`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, Mapping, Optional, Tuple

import torch
from torch import Tensor

from ..contract import Facts, Gold, Tokens
from ..relations.bridge import Links, relation_table_model
from .builder import architecture
from .cell_losses import GoldCells, multilabel_loss
from .end_labels import EndLabels
from .link_blocks import LinkBlock, link_blocks
from .pointer_scorers import START_LOGIT, EfficientPairScorer, PairScorer, hidden_layer
from .relation_module import RelationModule


class RelationPointer(RelationModule):
    """Finds entities, and links the start of one to the start of another and the end to the end.
    Without entity labels there is no entity head, and the spans to link must be given."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        n_relations: int,
        n_given: int = 0,
        head_size: int = 64,
        use_rope: bool = True,
        dropout: float = 0.0,
        sum_labels: bool = True,
        max_width: Optional[int] = None,
        hidden_width: Optional[int] = None,
        links: Literal["efficient", "full"] = "efficient",
        link_rope: bool = False,
        start_logit: float = START_LOGIT,
        label_features: bool = False,
        learn_boundaries: bool = False,
    ):
        """
        head_size: Width of queries and keys; even where `use_rope` is set.
        use_rope: Rotary position embedding in the entity head.
        dropout: Of the token vectors that all three heads read.
        sum_labels: Sum each of the three losses over its labels, as in the authors' code; otherwise
            take the mean.
        max_width: Widest entity to look at; null for no other bound than the component's.
        hidden_width: Width of a GELU layer below queries and keys, one for entities and one for
            links; null for none, as in the paper. Small encoders need one.
        links: "efficient" has one query and key for all relation labels, as in the paper; "full" has
            one for each, which finds more where there are few labels.
        link_rope: Rotary position embedding in the links, so that they depend on the distance.
        start_logit: Score of links before training. Almost no pair is linked, so it is low; nearer to
            0, links are found earlier in training, and more false ones.
        label_features: Links see the entity labels of what begins, or ends, at the two tokens: those of
            the gold entities in training, those that were found or given in prediction.
        learn_boundaries: Learn the annotated sentence boundaries, and use them beside the rules where a
            document has none.
        """
        super().__init__(
            width=width,
            n_labels=n_labels,
            n_relations=n_relations,
            n_given=n_given,
            dropout=dropout,
            sum_labels=sum_labels,
            learn_boundaries=learn_boundaries,
            head_size=head_size,
            use_rope=use_rope,
            max_width=max_width,
            hidden_width=hidden_width,
        )
        self.hidden = hidden_layer(width, hidden_width)
        scorer = partial(
            {"efficient": EfficientPairScorer, "full": PairScorer}[links],
            width=hidden_width or width,
            n_labels=n_relations,
            head_size=head_size,
            scale=True,
            use_rope=link_rope,
            start_logit=start_logit,
        )
        self.starts, self.ends = scorer(), scorer()
        self.end_labels: Optional[EndLabels] = None
        if label_features:
            self.end_labels = EndLabels(self.n_end_labels, hidden_width or width)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        return super().facts({**options, "use_rope": options["use_rope"] or options["link_rope"]})

    def link_loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        blocks = link_blocks(encoded)
        n_stretches = sum(len(block.row) for block in blocks)
        loss = encoded.x.new_zeros(())
        for block in blocks:
            share = len(block.row) / n_stretches
            loss = loss + self.block_loss(block, encoded, gold) * share
        return loss

    def block_loss(self, block: LinkBlock, encoded: Tokens, gold: Gold) -> Tensor:
        assert gold.relations is not None and gold.ends is not None
        row, head_start, head_end, tail_start, tail_end, label = gold.relations.unbind(1)
        candidates = block.pairs  # (S, M, M)
        if gold.linked is not None:
            known = block.take(gold.linked)  # (S, M)
            candidates = candidates & known[:, :, None] & known[:, None, :]
        spans = torch.from_numpy(gold.ends).to(label.device)  # (N, 4)
        tables = self.link_tables(block, encoded, spans)  # (S, R, M, M) each
        loss = encoded.x.new_zeros(())
        ends = [(head_start, tail_start), (head_end - 1, tail_end - 1)]
        for logits, (head, tail) in zip(tables, ends, strict=True):
            number, first, second, inside = block.place(row, head, tail)
            cells = once(GoldCells(number, label, first, second, inside), logits)
            loss = loss + multilabel_loss(
                logits, cells, candidates[:, None], sum_labels=self.sum_labels
            )
        return loss

    def link_tables(
        self, block: LinkBlock, encoded: Tokens, spans: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """Scores of the links of starts and of ends, between the tokens of each stretch.
        (S, R, M, M) each

        spans: (N, 4) the labelled entities, each once."""
        x = self.hidden(block.take(encoded.x))  # (S, M, D)
        if self.end_labels is None:
            return self.starts(x), self.ends(x)
        row, start, end, label = spans.unbind(1)
        length, n_tokens = encoded.mask.shape[1], encoded.mask.numel()
        first, last = (
            block.take(
                self.end_labels(row * length + at, label, n_tokens).unflatten(0, (-1, length))
            )
            for at in (start, end - 1)
        )  # (S, M, D) each
        return self.starts(x + first), self.ends(x + last)

    def find_links(self, encoded: Tokens, ends: Tensor, thresholds: Tensor) -> Links:
        """A label holds for a pair of spans if the link of the starts and the link of the ends are both
        over its threshold. The score of a relation is the smaller of the two probabilities."""
        found, ends = [empty_links(encoded.x)], ends.unique(dim=0)
        for block in link_blocks(encoded):
            number, start, last, inside = block.place(ends[:, 0], ends[:, 1], ends[:, 2] - 1)
            own = torch.stack([number, start, last + 1], dim=1)[inside].unique(dim=0)  # (n, 3)
            links = self.link_block(block, encoded, ends, own, thresholds)
            at = links.relations[:, 0]
            table = links.relations.clone()
            table[:, 0] = block.row[at]
            table[:, 1:5] += block.first[at][:, None]
            found.append(Links(table, links.scores))
        return Links(
            torch.cat([links.relations for links in found]),
            torch.cat([links.scores for links in found]),
        )

    def link_block(
        self, block: LinkBlock, encoded: Tokens, ends: Tensor, spans: Tensor, thresholds: Tensor
    ) -> Links:
        """The relations inside the stretches of a block. Goes from the linked starts to the spans that
        begin there: there are few of them, while the pairs of all spans can be very many.

        ends: (N, 4) the labelled entities of the rows, each once.
        spans: (n, 3) those of the block, sorted by stretch and start, each once."""
        stretches, length = block.mask.shape
        place = spans[:, 0] * length + spans[:, 1]  # (N,): the cell of (S, M) where a span starts
        count = place.bincount(minlength=stretches * length)  # (S M,)
        first = count.cumsum(0) - count  # (S M,): the first span of each cell
        begins = (count > 0).view(stretches, 1, length)  # (S, 1, M)
        starts, all_ends = self.link_tables(block, encoded, ends)  # (S, R, M, M) each
        over = starts > torch.logit(thresholds)[:, None, None]
        over = over & begins[:, :, :, None] & begins[:, :, None, :]
        row, label, i, j = over.nonzero(as_tuple=True)  # (K,) each
        n_heads, n_tails = count[row * length + i], count[row * length + j]  # (K,)
        n_pairs = n_heads * n_tails  # (K,)
        link = torch.arange(len(row), device=row.device).repeat_interleave(n_pairs)  # (P,)
        number = torch.arange(len(link), device=row.device) - (n_pairs.cumsum(0) - n_pairs)[link]
        head = spans[first[row * length + i][link] + number // n_tails[link]]  # (P, 3)
        tail = spans[first[row * length + j][link] + number % n_tails[link]]  # (P, 3)
        end_logits = all_ends[row[link], label[link], head[:, 2] - 1, tail[:, 2] - 1]  # (P,)
        keep = (end_logits > torch.logit(thresholds)[label[link]]).nonzero()[:, 0]
        table = torch.column_stack([head, tail[:, 1:], label[link]])  # (P, 6)
        logits = torch.minimum(starts[row, label, i, j][link], end_logits)  # (P,)
        return Links(table[keep], torch.sigmoid(logits[keep]))

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        return super().cells(length, max_width) + 2 * self.n_relations * length * length


def once(cells: GoldCells, table: Tensor) -> GoldCells:
    """Each cell counted once: relations of different spans may begin, or end, at the same two
    tokens."""
    key = torch.where(cells.inside, cells.index(table), -1)  # (N,)
    order = key.argsort()
    again = torch.diff(key[order], prepend=key.new_full((1,), -1)) == 0  # (N,)
    return replace(cells, inside=torch.zeros_like(again).scatter(0, order, ~again))


def empty_links(like: Tensor) -> Links:
    relations = torch.zeros((0, 6), dtype=torch.int64, device=like.device)
    return Links(relations, like.new_zeros(0))


build_relation_pointer = architecture(RelationPointer, build=relation_table_model)
