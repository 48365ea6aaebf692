"""Bundling: two heads, one encoder, one weighted loss (Ji et al. 2022, sections 3.1.4 and 4.4)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Dict, Literal, Mapping, Optional, Tuple, Type

import torch
from thinc.api import Model
from torch import Tensor

from ..bridge import Head, head_of
from ..contract import (
    Cost,
    Decoded,
    Facts,
    Gold,
    ListsCandidates,
    ScoresSpans,
    SpanModule,
    StartsFromSample,
    Tokens,
    empty_decoded,
)
from ..errors import check
from .builder import architecture
from .seq_ner import SeqNER, build_seq_ner
from .span_ner import SpanNER, build_span_ner

# A tagger of one level knows the outermost spans alone: of one inside another it is sure that it is none,
# and must not be able to rule it out. So its probabilities are cut to 1 - SUREST .. SUREST.
SUREST = 0.99
MOST_ODDS = math.log(SUREST / (1 - SUREST))
CANNOT_JOIN = (
    "`seq` must be able to judge the spans of `span`, as SeqNER does, and `span` to list all that it "
    'looks at, as SpanNER and the pointers do; take "span" or "seq"'
)
Maker = Callable[..., SpanModule]


class BundledNER(SpanModule, StartsFromSample):
    """loss = alpha * loss of `seq` + (1 - alpha) * loss of `span`; one of them decodes, or both.

    A head with contextual layers of its own comes first and the other reads what they give.
    """

    contextual = True

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        seq: Optional[Model] = None,
        span: Optional[Model] = None,
        alpha: float = 0.1,
        decode_from: Literal["span", "seq", "both"] = "span",
        seq_weight: float = 0.25,
    ):
        """
        seq: A head without a tok2vec; null for SeqNER with its defaults.
        span: Another one; null for SpanNER with its defaults.
        alpha: Weight of the loss of `seq`, 0 to 1; that of `span` weighs 1 - alpha.
        decode_from: Whose spans are the output; "both" takes the spans that `span` looks at and joins the
            log-odds that the two heads give them. For SeqNER, and SpanNER or a pointer.
        seq_weight: Share of the log-odds of `seq` where both decode, from 0 to under 1.
        """
        makers = {name: part.maker for name, part in parts(seq, span).items()}
        seq_head, span_head, span_first = _make_pair(**makers, width=width, n_labels=n_labels)
        first = span_head if span_first else seq_head
        super().__init__(width=width, n_labels=n_labels, output_width=first.output_width)
        self.seq = seq_head
        self.span = span_head
        self.span_first = span_first
        self.alpha = alpha
        self.decode_from = decode_from
        self.seq_weight = seq_weight

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        heads = parts(options["seq"], options["span"])
        joined = options["decode_from"] == "both"
        rules = [
            ("alpha", 0 <= options["alpha"] <= 1, "it must lie between 0 and 1"),
            ("seq_weight", 0 <= options["seq_weight"] < 1, "it must be at least 0 and under 1"),
            ("decode_from", not joined or can_join(heads), CANNOT_JOIN),
        ]
        check(cls.__name__, options, rules)
        facts = heads["span" if joined else options["decode_from"]].facts
        return replace(
            facts,
            needs_sentences=any(head.facts.needs_sentences for head in heads.values()),
            threshold=0.5 if joined else facts.threshold,
        )

    @classmethod
    def place(cls, options: Dict[str, Any]) -> Dict[str, Any]:
        heads: Dict[str, Type[SpanModule]] = {"span": SpanNER, "seq": SeqNER}
        for name, head in heads.items():
            placed = head.place(options)
            if placed:
                block = {"@architectures": f"spacy-spanner.{head.__name__}.v1", "tok2vec": None}
                return {name: {**block, **placed}}
        return {}

    @property
    def _order(self) -> Tuple[SpanModule, SpanModule]:
        return (self.span, self.seq) if self.span_first else (self.seq, self.span)

    def prepare(self, tokens: Tokens, gold: Gold) -> None:
        first, second = self._order
        if isinstance(first, StartsFromSample):
            first.prepare(tokens, gold)
        if isinstance(second, StartsFromSample):
            encoded = self.encode(tokens)
            second.prepare(encoded.with_states(encoded.x), gold)

    def encode(self, tokens: Tokens) -> Tokens:
        return self._order[0].encode(tokens)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        weights = [(self.seq, self.alpha), (self.span, 1 - self.alpha)]
        # A head of no weight is not computed, so that the other one is trained exactly as if alone.
        return torch.stack(
            [
                weight * head.loss(self._read_by(head, encoded), gold)
                for head, weight in weights
                if weight > 0
            ]
        ).sum()

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        if self.decode_from == "both":
            return self._decode_both(encoded, thresholds)
        decoder = getattr(self, self.decode_from)
        return decoder.decode(self._read_by(decoder, encoded), thresholds)

    def _decode_both(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """The spans whose joined log-odds are over the threshold."""
        assert isinstance(self.seq, ScoresSpans) and isinstance(self.span, ListsCandidates)
        wanted, share = torch.logit(thresholds), self.seq_weight  # (C,)
        least = (wanted - share * MOST_ODDS) / (1 - share)  # below, `seq` cannot make up for it
        spans, odds = self.span.candidates(self._read_by(self.span, encoded), least)
        if not len(spans):
            return empty_decoded(thresholds)
        probs = self.seq.span_scores(self._read_by(self.seq, encoded), spans)  # (N,)
        of_seq = torch.logit(probs.clamp(1 - SUREST, SUREST))
        joined = (1 - share) * odds + share * of_seq
        keep = joined > wanted[spans[:, 3]]
        return Decoded(spans[keep], torch.sigmoid(joined[keep]))

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        return max(head.cells(length, max_width) for head in (self.seq, self.span))

    def cost(self) -> Cost:
        if not self.training and self.decode_from != "both":
            return getattr(self, self.decode_from).cost()
        costs = self.seq.cost(), self.span.cost()
        return Cost(min(cost.token for cost in costs), max(cost.step for cost in costs))

    def _read_by(self, head: SpanModule, encoded: Tokens) -> Tokens:
        """The first head gets what it encoded, the second encodes that further."""
        if head is self._order[0]:
            return encoded
        return head.encode(encoded.with_states(encoded.x))


def parts(seq: Optional[Model], span: Optional[Model]) -> Dict[str, Head]:
    """The two heads; they must not bring a tok2vec, for they share one."""
    models = {
        "seq": build_seq_ner() if seq is None else seq,
        "span": build_span_ner() if span is None else span,
    }
    for name, model in models.items():
        option = f"{name}.tok2vec"
        reason = "both heads read the tok2vec of the bundled block, so this one must be null"
        check("BundledNER", {option: model.layers}, [(option, not model.layers, reason)])
    return {name: head_of(model) for name, model in models.items()}


def can_join(heads: Dict[str, Head]) -> bool:
    """Whether the heads can give log-odds of the same spans."""
    seq, span = (getattr(heads[name].maker, "func", object) for name in ("seq", "span"))
    return issubclass(seq, ScoresSpans) and issubclass(span, ListsCandidates)


def _make_pair(
    *, seq: Maker, span: Maker, width: int, n_labels: int
) -> Tuple[SpanModule, SpanModule, bool]:
    """Both heads, and whether `span` comes first: only if it alone has contextual layers."""
    seq_head = seq(width=width, n_labels=n_labels)
    span_head = span(width=seq_head.output_width, n_labels=n_labels)
    if seq_head.contextual or not span_head.contextual:
        return seq_head, span_head, False
    return seq(width=span_head.output_width, n_labels=n_labels), span_head, True


build_bundled_ner = architecture(BundledNER)
