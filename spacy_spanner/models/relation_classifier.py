"""Relations by classifying pairs of entities (the form of SpERT: Eberts and Ulges 2020, section 3.3).

Axes: B rows, L tokens, T tokens of all rows, D width, C entity labels, R relation labels, N spans, P pairs,
M gold relations, H hidden width.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Facts, Gold, Tokens
from ..errors import check
from ..gelu import gelu
from ..label_axes import LABELS, mark_layer
from ..relations.bridge import Links, relation_table_model
from ..spans.range_max import RangeMax
from .builder import architecture
from .end_labels import EndLabels
from .pointer_scorers import START_LOGIT, lecun_linear
from .relation_module import RelationModule
from .span_pairs import span_pairs

N_WIDTHS = 100  # rows of the width tables; what is wider shares the last one
MOST_PAIRS = 1 << 14  # that are looked at at once in prediction


class RelationClassifier(RelationModule):
    """Finds entities, and classifies each pair of them from the maximum over the tokens of either, the
    maximum over the tokens between them, and their widths. Without entity labels there is no entity
    head, and the spans to link must be given."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        n_relations: int,
        n_given: int = 0,
        head_size: int = 64,
        use_rope: bool = True,
        dropout: float = 0.1,
        sum_labels: bool = True,
        max_width: Optional[int] = None,
        hidden_width: Optional[int] = None,
        width_size: int = 25,
        max_negatives: Optional[int] = None,
        label_features: bool = False,
        learn_boundaries: bool = False,
    ):
        """
        head_size: Width of queries and keys of the entity head; even where `use_rope` is set.
        use_rope: Rotary position embedding in the entity head.
        dropout: Of the token vectors that entity head and classifier read.
        sum_labels: Sum both losses over their labels; otherwise take the mean.
        max_width: Widest entity to look at; null for no other bound than the component's.
        hidden_width: Width of a GELU layer in the entity head and of one over the vector of a pair;
            null for none, as in SpERT. Small encoders need one.
        width_size: Width of the embeddings of the widths of spans and of the distance between them.
        max_negatives: How many pairs without relation count for each row or sentence, on average, drawn
            anew in each update; null for all.
        label_features: The vectors of spans hold their entity labels, too: those of the gold entities in
            training, those that were found or given in prediction.
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
        self.max_negatives = max_negatives
        self.widths = nn.Embedding(N_WIDTHS, width_size)
        self.distances = nn.Embedding(2 * N_WIDTHS, width_size)  # of either order
        self.end_labels: Optional[EndLabels] = None
        if label_features:
            self.end_labels = EndLabels(self.n_end_labels, width)
        part = width + width_size  # of a head, a tail and a context
        self.pair = lecun_linear(3 * part, hidden_width or n_relations)
        self.classify: Optional[nn.Linear] = None
        if hidden_width:
            self.classify = lecun_linear(hidden_width, n_relations)
        last = self.classify or self.pair
        nn.init.constant_(last.bias, START_LOGIT)
        mark_layer(last, LABELS)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        negatives = options["max_negatives"]
        rules = [
            ("width_size", options["width_size"] > 0, "it must be positive"),
            ("max_negatives", negatives is None or negatives > 0, "it must be positive, or null"),
        ]
        check(cls.__name__, options, rules)
        return super().facts(options)

    def link_loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Binary cross-entropy of the labels of all pairs of gold entities."""
        assert gold.ends is not None and gold.relations is not None
        device = encoded.mask.device
        spans = numpy.unique(gold.ends[:, :3], axis=0)
        pairs = span_pairs(spans, encoded)
        n_stretches = len(encoded.lengths)
        if encoded.sentences is not None:
            n_stretches = len(encoded.sentences.lengths)
        ends, number = torch.from_numpy(spans).to(device), torch.from_numpy(pairs).to(device)
        labelled = torch.from_numpy(gold.ends).to(device)
        pool = token_maxima(encoded)
        vectors = self.span_vectors(encoded, pool, ends, labelled)  # (N, D + 25)
        logits = self.logits(encoded, pool, vectors, ends, number)  # (P, R)
        targets = self.targets(encoded, ends, number, gold.relations)  # (P, R)
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        counted = self.counted(ends[number], n_stretches, gold.linked)  # (P,)
        losses = losses * torch.maximum(targets, counted[:, None])
        share = 1 if self.sum_labels else self.n_relations
        return losses.sum() / (n_stretches * share)

    def counted(self, pairs: Tensor, n_stretches: int, known: Optional[Tensor]) -> Tensor:
        """Which labels of pairs (P, 2, 3) count where they are no gold: 1 or 0.  (P,)"""
        counted = torch.ones(len(pairs), device=pairs.device)
        if self.max_negatives is not None:
            share = self.max_negatives * n_stretches / max(len(pairs), 1)
            counted = (torch.rand_like(counted) < share).to(counted.dtype)
        if known is not None:
            unknown = F.pad((~known).cumsum(1), (1, 0))  # (B, L + 1): how many before a token
            row, start, end = pairs.unbind(2)  # (P, 2) each
            counted = counted * (unknown[row, end] == unknown[row, start]).all(1)
        return counted

    def targets(self, encoded: Tokens, ends: Tensor, pairs: Tensor, relations: Tensor) -> Tensor:
        """1 for the labels of gold relations, else 0; both ends of each must be among the spans.
        (P, R)"""
        size, label = encoded.mask.shape[1] + 1, relations[:, 5]
        head = find_spans(ends, relations[:, [0, 1, 2]], size)  # (M,)
        tail = find_spans(ends, relations[:, [0, 3, 4]], size)  # (M,)
        keys, wanted = pairs[:, 0] * len(ends) + pairs[:, 1], head * len(ends) + tail
        shape = (len(pairs) + 1, self.n_relations)
        targets = encoded.x.new_zeros(shape)
        # Pairs that do not exist, as their ends are in two sentences, go to a line that is cut off.
        place = torch.searchsorted(keys, wanted)  # (M,)
        exists = F.pad(keys, (0, 1), value=-1)[place] == wanted
        targets[torch.where(exists, place, len(pairs)), label] = 1.0
        return targets[:-1]

    def span_vectors(
        self, encoded: Tokens, pool: RangeMax, spans: Tensor, labelled: Tensor
    ) -> Tensor:
        """Vectors of spans (N, 3), which must be sorted, each once.  (N, D + 25)

        labelled: (K, 4) the same spans, each with all of its labels."""
        offset = encoded.starts[spans[:, 0]]  # (N,)
        pooled = pool(spans[:, 1] + offset, spans[:, 2] + offset)  # (N, D)
        if self.end_labels is not None:
            place = find_spans(spans, labelled[:, :3], encoded.mask.shape[1] + 1)
            pooled = pooled + self.end_labels(place, labelled[:, 3], len(spans))
        widths = self.widths((spans[:, 2] - spans[:, 1] - 1).clamp(max=N_WIDTHS - 1))  # (N, 25)
        return torch.cat([pooled, widths], 1)

    def logits(
        self, encoded: Tokens, pool: RangeMax, vectors: Tensor, spans: Tensor, pairs: Tensor
    ) -> Tensor:
        """Scores of pairs (P, 2) of the spans (N, 3) with these vectors.  (P, R)"""
        weights = self.pair.weight.split(self.pair.in_features // 3, dim=1)  # (H, D + 25) each
        of_head, of_tail = F.linear(vectors, weights[0]), F.linear(vectors, weights[1])  # (N, H)
        head, tail = pairs.unbind(1)
        context = F.linear(
            self.contexts(encoded, pool, spans[head], spans[tail]), weights[2]
        )  # (P, H)
        vector = of_head[head] + of_tail[tail] + context + self.pair.bias
        return vector if self.classify is None else self.classify(self.dropout(gelu(vector)))

    def contexts(self, encoded: Tokens, pool: RangeMax, head: Tensor, tail: Tensor) -> Tensor:
        """Vectors of what is between spans (P, 3) of the same row.  (P, D + 25)"""
        begin = torch.minimum(head[:, 2], tail[:, 2])  # (P,)
        n_tokens = torch.maximum(head[:, 1], tail[:, 1]) - begin  # (P,)
        begin = begin + encoded.starts[head[:, 0]]
        is_there = n_tokens > 0
        begin = begin * is_there
        pooled = pool(begin, torch.where(is_there, begin + n_tokens, 1))  # (P, D)
        order = (head[:, 1] > tail[:, 1]) * N_WIDTHS
        distances = self.distances(n_tokens.clamp(0, N_WIDTHS - 1) + order)
        return torch.cat([pooled * is_there[:, None], distances], 1)

    def find_links(self, encoded: Tokens, ends: Tensor, thresholds: Tensor) -> Links:
        """A label holds for a pair if its probability, the score, is over the threshold."""
        spans = ends[:, :3].unique(dim=0)  # (N, 3), sorted
        pairs = torch.from_numpy(span_pairs(spans.cpu().numpy(), encoded)).to(spans.device)
        pool = token_maxima(encoded)
        vectors = self.span_vectors(encoded, pool, spans, ends.unique(dim=0))  # (N, D + 25)
        relations, scores = [], []
        for part in pairs.split(MOST_PAIRS):
            logits = self.logits(encoded, pool, vectors, spans, part)  # (P, R)
            pair, label = (logits > torch.logit(thresholds)).nonzero(as_tuple=True)
            head, tail = spans[part[pair, 0]], spans[part[pair, 1]]  # (n, 3)
            relations.append(torch.column_stack([head, tail[:, 1:], label]))
            scores.append(torch.sigmoid(logits[pair, label]))
        return Links(torch.cat(relations), torch.cat(scores))

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        tables = length.bit_length() * length * self.width  # of maxima
        return super().cells(length, max_width) + tables


def token_maxima(tokens: Tokens) -> RangeMax:
    """Maxima over stretches of the unpadded tokens."""
    return RangeMax(tokens.unpadded, max(tokens.lengths))


def find_spans(spans: Tensor, wanted: Tensor, size: int) -> Tensor:
    """Where spans (K, 3) are among sorted ones (N, 3); ends must be less than `size`.  (K,)"""
    place = torch.tensor([size * size, size, 1], device=spans.device)
    return torch.searchsorted((spans * place).sum(1), (wanted * place).sum(1))


build_relation_classifier = architecture(RelationClassifier, build=relation_table_model)
