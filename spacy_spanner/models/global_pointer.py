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
    max_width: Widest span to look at. Memory is then linear in the length of a row.
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

    def band_width(self, length: int) -> Optional[int]:
        """The width of the band, or None where all pairs fit into it anyway."""
        return None if self.max_width is None or self.max_width >= length else self.max_width

    def logits(self, tokens: Tokens) -> Tensor:
        per_token = self.scorer.per_token(self.hidden(self.dropout(tokens.real)))  # (T, K)
        return self.scorer.pairs(
            tokens.pad(per_token), self.band_width(tokens.mask.shape[1])
        )  # (B, C, L, X)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        width = self.band_width(encoded.mask.shape[1])
        candidates = span_cells(encoded.mask, width)  # (B, L, X)
        if gold.known is not None:
            candidates = candidates & known_cells(gold.known, width)
        return self.cell_loss(
            self.logits(encoded), gold_cells(gold.spans, width), candidates[:, None]
        )

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        logits = self.logits(encoded)  # (B, C, L, X)
        width = self.band_width(encoded.mask.shape[1])
        over = logits > torch.logit(thresholds)[:, None, None]
        row, label, start, column = (over & span_cells(encoded.mask, width)[:, None]).nonzero(
            as_tuple=True
        )
        end = (column if width is None else start + column) + 1
        scores = torch.sigmoid(logits[row, label, start, column])
        return Decoded(torch.stack([row, start, end, label], dim=1), scores)

    def cells(self, length: int) -> int:
        return self.n_labels * length * (self.band_width(length) or length)

    def padding(self, length: int) -> int:
        return super().padding(length) // 2  # a token costs a row and a column of the table


def span_cells(mask: Tensor, width: Optional[int]) -> Tensor:
    """Which cells are spans of real tokens; `mask` is (B, L).  (B, L, X)"""
    if width is not None:
        return band_mask(mask, width)
    length = mask.shape[1]
    upper = torch.ones((length, length), dtype=torch.bool, device=mask.device).triu()
    return (
        mask[:, None, :] & upper
    )  # real tokens are a prefix: with the last one, the first is real


def known_cells(known: Tensor, width: Optional[int]) -> Tensor:
    """Which cells touch annotated tokens only; `known` is (B, L).  (B, L, X)"""
    if width is not None:
        return all_known(known, width)
    unknown = (~known).cumsum(1)  # (B, L): unknown tokens up to and with each
    return unknown[:, None, :] == (unknown - (~known).long())[:, :, None]


def gold_cells(spans: Tensor, width: Optional[int]) -> GoldCells:
    """The cells of a span table (N, 4)."""
    row, start, end, label = spans.unbind(1)
    if width is None:
        return GoldCells(row, label, start, end - 1, torch.ones_like(row, dtype=torch.bool))
    column = end - 1 - start
    return GoldCells(row, label, start, column.clamp(max=width - 1), column < width)


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
