"""Global Pointer and Efficient Global Pointer (Su et al. 2022, section 3).

Axes: B rows, L tokens, D width, C labels, N spans, X columns of the pair table (see `pointer_scorers`).
"""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Tuple

import torch
from torch import Tensor

from ..contract import Cost, Decoded, Facts, Gold, ListsCandidates, SpanModule, Tokens
from ..dropout import Dropout
from ..errors import check
from ..label_axes import LABELS
from ..spans.pair_table import PairTable
from .builder import architecture
from .cell_losses import binary_loss, multilabel_loss, multilabel_loss_of_starts
from .pointer_scorers import EfficientPairScorer, PairScorer, check_pointer, hidden_layer
from .span_content import SpanContent, content_rules, sees_neighbours

CELL_LOSSES = {
    "multilabel": multilabel_loss,
    "multilabel_start": multilabel_loss_of_starts,
    "binary": binary_loss,
}


class GlobalPointer(SpanModule, ListsCandidates):
    """Scores every span of a row for every label, and finds those over the threshold."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        efficient: bool = False,
        head_size: int = 64,
        use_rope: bool = True,
        scale: bool = True,
        hidden_width: Optional[int] = None,
        loss: Literal["multilabel", "multilabel_start", "binary"] = "multilabel",
        max_width: Optional[int] = None,
        dropout: float = 0.0,
        content_width: Optional[int] = None,
        content_layers: int = 1,
        content_max_width: int = 10,
        content_product: bool = False,
        content_norm: bool = False,
    ):
        """
        efficient: One query and key for all labels; for many labels.
        head_size: Width of queries and keys; even where `use_rope` is set. 32 suits small encoders.
        use_rope: Rotary position embedding, so that a score depends on the distance of the ends.
        scale: Divide products by the square root of `head_size`.
        hidden_width: Width of a GELU layer below queries and keys; null for none, as in the paper.
            Small encoders need one.
        loss: "multilabel", over all spans of a row; "multilabel_start", over those with the same first
            token; or the paper's ablation "binary", cross-entropy over cells.
        max_width: Widest span to look at; null for no other bound than the component's.
        dropout: Of the token vectors before the head.
        content_width: Width of the vectors of spans (their ends, the mean of their tokens, their width)
            that also score them; null for none, as in the paper. Small encoders gain by them.
        content_layers: Convolutions over these vectors, in which a span sees those beside it.
        content_max_width: Widest span with such a vector; wider ones are scored by their ends alone.
        content_product: These vectors also hold the product of the ends.
        content_norm: Layer normalisation of these vectors.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.dropout = Dropout(dropout)
        self.hidden = hidden_layer(width, hidden_width)
        self.scorer = (EfficientPairScorer if efficient else PairScorer)(
            width=hidden_width or width,
            n_labels=n_labels,
            head_size=head_size,
            use_rope=use_rope,
            scale=scale,
        )
        self.cell_loss = CELL_LOSSES[loss]
        self.max_width = max_width
        self.content: Optional[SpanContent] = None
        if content_width is not None:
            self.content = SpanContent(
                width=width,
                n_out=n_labels,
                axis=LABELS,
                size=content_width,
                layers=content_layers,
                max_width=content_max_width,
                product=content_product,
                normalise=content_norm,
            )

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        check_pointer(cls.__name__, options)
        check(cls.__name__, options, content_rules(options))
        return Facts(max_width=options["max_width"], needs_sentences=sees_neighbours(options))

    def table_of(self, tokens: Tokens) -> PairTable:
        """The form of the table of a batch of rows."""
        return PairTable.bounded(tokens.mask.shape[1], self.max_width, tokens.max_width)

    def logits(self, tokens: Tokens) -> Tensor:
        """Scores of all pairs of tokens.  (B, C, L, X)"""
        per_token = self.scorer.per_token(self.hidden(self.dropout(tokens.unpadded)))  # (T, K)
        table = self.table_of(tokens)
        logits = self.scorer.pairs(tokens.pad(per_token), table.band)  # (B, C, L, X)
        if self.content is None:
            return logits
        by_content = self.content(tokens, table.widest).permute(0, 3, 1, 2)  # (B, C, L, W)
        return logits + table.of_band(by_content)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        table = self.table_of(encoded)
        candidates = table.spans(encoded.mask)  # (B, L, X)
        if gold.known is not None:
            candidates = candidates & table.known(gold.known)
        return self.cell_loss(self.logits(encoded), table.gold(gold.spans), candidates[:, None])

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        spans, odds = self.candidates(encoded, torch.logit(thresholds))
        return Decoded(spans, torch.sigmoid(odds))

    def candidates(self, encoded: Tokens, least: Tensor) -> Tuple[Tensor, Tensor]:
        logits, table = self.logits(encoded), self.table_of(encoded)  # (B, C, L, X)
        over = (logits > least[:, None, None]) & table.spans(encoded.mask)[:, None]
        row, label, start, column = over.nonzero(as_tuple=True)
        spans = torch.stack([row, start, table.end(start, column), label], dim=1)  # (N, 4)
        return spans, logits[row, label, start, column]

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        columns = PairTable.bounded(length, self.max_width, max_width).columns
        of_content = 0 if self.content is None else self.content.cells(length)
        return max(self.n_labels * length * columns, of_content)

    def cost(self) -> Cost:
        return Cost(token=2)  # a row and a column of the table


build_global_pointer = architecture(GlobalPointer, fixed={"efficient": False})
build_efficient_global_pointer = architecture(
    GlobalPointer,
    fixed={"efficient": True},
    removed={
        "type_input": ("pointer", "the label terms are computed from queries and keys (eq 7)")
    },
)
