"""Global Pointer and Efficient Global Pointer (Su et al. 2022, section 3).

Axes: B rows, L tokens, D width, C labels, N spans, X columns of the pair table (see `pointer_scorers`).
"""

from __future__ import annotations

from functools import partial
from typing import Callable, List, Literal, Optional

import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ..bridge import SpanTableModel, span_table_model
from ..contract import Decoded, Gold, SpanModule, Tokens
from ..dropout import Dropout
from ..errors import Errors
from ..spans.bands import all_known, band_mask
from .cell_losses import GoldCells, binary_loss, multilabel_loss
from .pointer_scorers import (
    EfficientPairScorer,
    PairScorer,
    TokenPairScorer,
    TypeInput,
    check_sizes,
    lecun_linear,
)

Loss = Literal["multilabel", "binary"]


class GlobalPointer(SpanModule):
    """Scores every span of a row for every label, and finds those over the threshold.

    make_scorer: Called with width= and n_labels=; gives the module that scores pairs of tokens.
    hidden_width: Width of a layer between the token vectors and the scorer; None for none.
    loss: "multilabel" as in the paper, or its ablation "binary".
    max_width: Widest span to look at, if the component knows no smaller bound.
    dropout: Of the token vectors, in training.
    """

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        make_scorer: Callable[..., TokenPairScorer],
        hidden_width: Optional[int] = None,
        loss: Loss = "multilabel",
        max_width: Optional[int] = None,
        dropout: float = 0.0,
    ):
        super().__init__(width=width, n_labels=n_labels)
        self.dropout = Dropout(dropout)
        self.hidden: nn.Module = nn.Identity()
        if hidden_width is not None:
            self.hidden = nn.Sequential(lecun_linear(width, hidden_width), nn.GELU())
        self.scorer = make_scorer(width=hidden_width or width, n_labels=n_labels)
        self.cell_loss = {"multilabel": multilabel_loss, "binary": binary_loss}[loss]
        self.max_width = max_width

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

    def padding(self, length: int) -> int:
        return super().padding(length) // 2  # a token costs a row and a column of the table


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


def build_global_pointer(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]] = None,
    head_size: int = 64,
    use_rope: bool = True,
    scale: bool = True,
    hidden_width: Optional[int] = None,
    loss: Loss = "multilabel",
    max_width: Optional[int] = None,
    dropout: float = 0.0,
    learn_rate_scale: float = 1.0,
) -> SpanTableModel:
    """Global Pointer over any tok2vec.

    head_size: Width of the queries and keys of each label; even where `use_rope` is set.
    use_rope: Rotary position embedding, so that a score depends on the distance of the ends.
    scale: Divide products by the square root of `head_size`.
    hidden_width: Width of a GELU layer below queries and keys; null for none, as in the paper.
    loss: "multilabel", or "binary" for cross-entropy over cells.
    max_width: Widest span to look at; null for all.
    dropout: Of the token vectors before the head.
    learn_rate_scale: Factor on the learning rate of the head; about 20 over a transformer.
    """
    scorer = partial(PairScorer, head_size=head_size, use_rope=use_rope, scale=scale)
    return _build(tok2vec, scorer, hidden_width, loss, max_width, dropout, learn_rate_scale)


def build_efficient_global_pointer(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]] = None,
    head_size: int = 64,
    use_rope: bool = True,
    scale: bool = True,
    type_input: TypeInput = "pointer",
    hidden_width: Optional[int] = None,
    loss: Loss = "multilabel",
    max_width: Optional[int] = None,
    dropout: float = 0.0,
    learn_rate_scale: float = 1.0,
) -> SpanTableModel:
    """Efficient Global Pointer over any tok2vec; options as for Global Pointer, and

    type_input: "pointer" or "hidden", what the term of each label is computed from.
    """
    scorer = partial(
        EfficientPairScorer,
        head_size=head_size,
        use_rope=use_rope,
        scale=scale,
        type_input=type_input,
    )
    return _build(tok2vec, scorer, hidden_width, loss, max_width, dropout, learn_rate_scale)


def _build(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]],
    scorer: partial,
    hidden_width: Optional[int],
    loss: Loss,
    max_width: Optional[int],
    dropout: float,
    learn_rate_scale: float,
) -> SpanTableModel:
    options = scorer.keywords
    check_sizes(head_size=options["head_size"], use_rope=options["use_rope"], max_width=max_width)
    if hidden_width is not None and hidden_width < 1:
        raise ValueError(Errors.S061.format(hidden_width=hidden_width))
    maker = partial(
        GlobalPointer,
        make_scorer=scorer,
        hidden_width=hidden_width,
        loss=loss,
        max_width=max_width,
        dropout=dropout,
    )
    return span_table_model(
        tok2vec, maker, flat=False, max_width=max_width, learn_rate_scale=learn_rate_scale
    )
