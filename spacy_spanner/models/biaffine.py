"""Biaffine NER (Yu et al. 2020): every span classified by the states of its first and last token.

Axes: B rows, L tokens, D width, H hidden width, C labels, K = C + 1 classes (0 is none), N spans,
X columns of the pair table (see `global_pointer`), M candidates of a row.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Cost, Decoded, Facts, Gold, SpanModule, Tokens
from ..dropout import Dropout
from ..errors import check
from ..label_axes import CLASSES, LabelAxis, mark, mark_layer
from ..spans.bands import last_tokens, pair_products
from ..spans.geometry import crosses, iou
from ..spans.pair_table import N_WIDTHS, PairTable, width_class
from ..spans.soft_nms import pad_by_row
from .builder import architecture
from .pointer_scorers import START_LOGIT


class BiaffineNER(SpanModule):
    """Start and end layers, biaffine scores of all classes, softmax; spans are taken by rank."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        hidden_width: int = 150,
        nested: bool = True,
        max_width: Optional[int] = None,
        dropout: float = 0.2,
        width_bias: bool = False,
    ):
        """
        hidden_width: Width of the start and the end layer.
        nested: Find spans inside others, but none that cross; otherwise none that overlap.
        max_width: Widest span to look at; null for no other bound than the component's.
        dropout: On the token vectors and on the outputs of the start and end layers.
        width_bias: Learn a score of each class for the width of a span. An encoder that sees a few
            words beside a token, such as a CNN, does not know how far apart two tokens are.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.n_classes, self.nested, self.max_width = n_labels + 1, nested, max_width
        self.dropout = Dropout(dropout)
        self.start, self.end = nn.Linear(width, hidden_width), nn.Linear(width, hidden_width)
        self.bilinear = nn.Linear(hidden_width, self.n_classes * hidden_width, bias=False)
        # Each score is a sum over all pairs of hidden units: without the scale, a step of Adam, which
        # moves every weight alike, would move scores by far more than one.
        self.scale = hidden_width**-0.5
        nn.init.normal_(self.bilinear.weight, std=self.scale)  # scores of about one
        self.from_start = nn.Linear(hidden_width, self.n_classes)
        self.from_end = nn.Linear(hidden_width, self.n_classes, bias=False)
        # Almost no span is an entity: an untrained model that found half of all would be slow.
        nn.init.constant_(self.from_start.bias[1:], START_LOGIT)
        self.from_width: Optional[nn.Embedding] = None
        if width_bias:
            self.from_width = nn.Embedding(N_WIDTHS, self.n_classes)
            nn.init.zeros_(self.from_width.weight)
            mark(self.from_width.weight, None, CLASSES, factor=0.0)
        mark_layer(self.bilinear, LabelAxis(fixed=1, size=hidden_width))
        mark_layer(self.from_start)
        mark_layer(self.from_end)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        positive = {name: options[name] for name in ("hidden_width", "max_width")}
        rules = [(o, v is None or v > 0, "it must be positive") for o, v in positive.items()]
        check(cls.__name__, options, rules)
        return Facts(
            levels=None if options["nested"] else 1, max_width=options["max_width"], threshold=0.0
        )

    def table_of(self, length: int, max_width: Optional[int]) -> PairTable:
        """The form of the table of rows of this length."""
        return PairTable.bounded(length, self.max_width, max_width)

    def logits(self, tokens: Tokens) -> Tensor:
        """Class scores of all pairs of tokens.  (B, K, L, X)"""
        x = self.dropout(tokens.unpadded)  # (T, D)
        start, end = self.dropout(self.start(x).relu()), self.dropout(self.end(x).relu())  # (T, H)
        parts = [self.scale * self.bilinear(start), end, self.from_start(start), self.from_end(end)]
        sizes = [part.shape[1] for part in parts]
        queries, keys, first, last = tokens.pad(torch.cat(parts, dim=1)).split(sizes, dim=2)
        queries = queries.unflatten(2, (self.n_classes, -1)).transpose(1, 2)  # (B, K, L, H)
        table = self.table_of(tokens.mask.shape[1], tokens.max_width)
        products = pair_products(queries, keys[:, None].expand_as(queries), table.band)
        terms = first.transpose(1, 2)[..., None] + last_tokens(last.transpose(1, 2), table.band)
        if self.from_width is not None:
            widths = table.widths(products.device)  # (L, X)
            terms = terms + self.from_width(width_class(widths)).permute(2, 0, 1)
        return products + terms

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Cross entropy, summed over the spans that start at a token, mean over the tokens."""
        logits = self.logits(encoded)  # (B, K, L, X)
        table = self.table_of(encoded.mask.shape[1], encoded.max_width)
        cells = table.gold(gold.spans if self.nested else gold.flat)
        # One column more takes gold that the table cannot hold. Of two labels the last one counts.
        classes = torch.zeros_like(logits[:, 0], dtype=torch.int64)  # (B, L, X)
        n_columns = classes.shape[2]
        column = torch.where(cells.inside, cells.column, n_columns)
        place = (cells.row * classes.shape[1] + cells.first) * (n_columns + 1) + column
        wider = F.pad(classes, (0, 1))
        wider.view(-1).scatter_reduce_(0, place, cells.label + 1, "amax")
        classes = wider[..., :n_columns]
        counted = table.spans(encoded.mask)
        if gold.known is not None:
            counted = counted & table.known(gold.known)
        losses = F.cross_entropy(logits, classes, reduction="none")  # (B, L, X)
        total = torch.where(counted | (classes > 0), losses, 0.0).sum()
        return total / encoded.mask.sum().clamp(min=1)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """Spans whose best class is a label, of probability over its threshold, by rank of their
        score: each one unless it clashes with one taken before."""
        logits = self.logits(encoded)  # (B, K, L, X)
        table = self.table_of(encoded.mask.shape[1], encoded.max_width)
        is_entity = logits.argmax(1) > 0  # (B, L, X)
        found = (is_entity & table.spans(encoded.mask)).nonzero()  # (N, 3)
        row, start, column = found.unbind(1)
        chosen = logits[row, :, start, column]  # (N, K)
        scores, label = chosen.max(1)  # (N,)
        probs, label = chosen.softmax(1).amax(1), label - 1
        spans = torch.stack([row, start, table.end(start, column), label], dim=1)
        keep = probs > thresholds[label]
        spans, scores, probs = spans[keep], scores[keep], probs[keep]
        taken = take_by_rank(spans, scores, n_rows=len(encoded.mask), nested=self.nested)
        return Decoded(spans[taken], probs[taken])

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        """Numbers of the table, and the queries of each token."""
        columns = self.table_of(length, max_width).columns
        return self.n_classes * length * (columns + self.start.out_features)

    def cost(self) -> Cost:
        return Cost(token=2)  # a row and a column of the table


def take_by_rank(spans: Tensor, scores: Tensor, *, n_rows: int, nested: bool) -> Tensor:
    """Which spans (N, 4), sorted by row, are taken: the best ones first, unless they cross one
    taken before or, if not `nested`, overlap it.  (N,) bool"""
    place, waiting = pad_by_row(spans[:, 0], n_rows)  # (B, M)
    start, end, filled = spans[place, 1], spans[place, 2], waiting
    ranks = scores[place]  # (B, M)
    taken = torch.zeros_like(filled)
    while waiting.any():
        best = ranks.masked_fill(~waiting, -torch.inf).argmax(1, keepdim=True)  # (B, 1)
        taken = taken.scatter(1, best, taken.gather(1, best) | waiting.gather(1, best))
        other = start.gather(1, best), end.gather(1, best)
        clash = crosses(start, end, *other) if nested else iou(start, end, *other) > 0  # (B, M)
        waiting = waiting & ~clash & ~taken
    return taken[filled]


build_biaffine_ner = architecture(BiaffineNER)
