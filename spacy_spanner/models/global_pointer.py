"""Global Pointer and Efficient Global Pointer (Su et al. 2022, section 3).

Axes: B rows, L tokens, D width, C labels, N spans, X columns of the pair table (see `pointer_scorers`).
"""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional

import torch
from torch import Tensor, nn

from ..contract import Cost, Decoded, Facts, Gold, SpanModule, Tokens
from ..dropout import Dropout
from ..spans.bands import all_known, band_mask
from .builder import architecture
from .cell_losses import GoldCells, binary_loss, multilabel_loss
from .pointer_scorers import EfficientPairScorer, PairScorer, check_pointer, lecun_linear


class GlobalPointer(SpanModule):
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
        loss: Literal["multilabel", "binary"] = "multilabel",
        max_width: Optional[int] = None,
        dropout: float = 0.0,
    ):
        """
        efficient: One query and key for all labels; for many labels.
        head_size: Width of queries and keys; even where `use_rope` is set. 32 suits small encoders.
        use_rope: Rotary position embedding, so that a score depends on the distance of the ends.
        scale: Divide products by the square root of `head_size`.
        hidden_width: Width of a GELU layer below queries and keys; null for none, as in the paper.
            Small encoders need one.
        loss: "multilabel", or the paper's ablation "binary", cross-entropy over cells.
        max_width: Widest span to look at; null for no other bound than the component's.
        dropout: Of the token vectors before the head.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.dropout = Dropout(dropout)
        self.hidden: nn.Module = nn.Identity()
        if hidden_width is not None:
            self.hidden = nn.Sequential(lecun_linear(width, hidden_width), nn.GELU())
        self.scorer = (EfficientPairScorer if efficient else PairScorer)(
            width=hidden_width or width,
            n_labels=n_labels,
            head_size=head_size,
            use_rope=use_rope,
            scale=scale,
        )
        self.cell_loss = {"multilabel": multilabel_loss, "binary": binary_loss}[loss]
        self.max_width = max_width

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        check_pointer(cls.__name__, options)
        return Facts(max_width=options["max_width"])

    def widest(self, length: int, max_width: Optional[int]) -> int:
        """The widest span to look at in rows of this length."""
        return min(w for w in (length, self.max_width, max_width) if w is not None)

    def table_of(self, tokens: Tokens) -> PairTable:
        """The form of the table of a batch of rows."""
        length = tokens.mask.shape[1]
        return PairTable(length, self.widest(length, tokens.max_width))

    def logits(self, tokens: Tokens) -> Tensor:
        per_token = self.scorer.per_token(self.hidden(self.dropout(tokens.real)))  # (T, K)
        return self.scorer.pairs(tokens.pad(per_token), self.table_of(tokens).band)  # (B, C, L, X)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        table = self.table_of(encoded)
        candidates = table.spans(encoded.mask)  # (B, L, X)
        if gold.known is not None:
            candidates = candidates & table.known(gold.known)
        return self.cell_loss(self.logits(encoded), table.gold(gold.spans), candidates[:, None])

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        logits, table = self.logits(encoded), self.table_of(encoded)  # (B, C, L, X)
        over = logits > torch.logit(thresholds)[:, None, None]
        row, label, start, column = (over & table.spans(encoded.mask)[:, None]).nonzero(
            as_tuple=True
        )
        end = (column if table.band is None else start + column) + 1
        scores = torch.sigmoid(logits[row, label, start, column])
        return Decoded(torch.stack([row, start, end, label], dim=1), scores)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        table = PairTable(length, self.widest(length, max_width))
        return self.n_labels * length * (table.band or length)

    def cost(self) -> Cost:
        return Cost(token=2)  # a row and a column of the table


class PairTable:
    """Cells for the spans of rows of one length: all pairs of tokens (X = L), or a band of the
    pairs that are near enough (X = W) where that is far smaller.

    widest: Widest span that counts; no more than the length.
    """

    def __init__(self, length: int, widest: int):
        self.length, self.widest = length, widest
        # A band of a quarter takes as long as one large product.
        self.band: Optional[int] = widest if 4 * widest < length else None

    def spans(self, mask: Tensor) -> Tensor:
        """Which cells are spans of unpadded tokens; `mask` is (B, L).  (B, L, X)"""
        if self.band is not None:
            return band_mask(mask, self.band)
        near = torch.ones((self.length, self.length), dtype=torch.bool, device=mask.device)
        near = near.triu().tril(self.widest - 1)
        return mask[:, None, :] & near  # tokens are a prefix: with the last, the first is one

    def known(self, known: Tensor) -> Tensor:
        """Which cells touch annotated tokens only; `known` is (B, L).  (B, L, X)"""
        if self.band is not None:
            return all_known(known, self.band)
        unknown = (~known).cumsum(1)  # (B, L): unknown tokens up to and with each
        return unknown[:, None, :] == (unknown - (~known).long())[:, :, None]

    def gold(self, spans: Tensor) -> GoldCells:
        """The cells of a span table (N, 4)."""
        row, start, end, label = spans.unbind(1)
        shift = end - 1 - start
        inside = shift < self.widest
        if self.band is None:
            return GoldCells(row, label, start, end - 1, inside)
        return GoldCells(row, label, start, shift.clamp(max=self.band - 1), inside)


build_global_pointer = architecture(GlobalPointer, fixed={"efficient": False})
build_efficient_global_pointer = architecture(
    GlobalPointer,
    fixed={"efficient": True},
    removed={
        "type_input": ("pointer", "the label terms are computed from queries and keys (eq 7)")
    },
)
