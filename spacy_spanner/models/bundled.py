"""Bundling: two heads, one encoder, one weighted loss (Ji et al. 2022, sections 3.1.4 and 4.4)."""

from __future__ import annotations

from functools import partial
from typing import Callable, List, Literal, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from ..bridge import Head, SpanTableModel, head_of, span_table_model
from ..contract import Decoded, Gold, SpanModule, Tokens
from ..errors import Errors
from .seq_ner import build_seq_ner
from .span_ner import build_span_ner


class BundledNER(SpanModule):
    """loss = alpha * loss of `seq` + (1 - alpha) * loss of `span`; one of them decodes.

    A head with contextual layers of its own comes first and the other reads what they give.
    """

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        seq: Callable[..., SpanModule],
        span: Callable[..., SpanModule],
        alpha: float = 0.1,
        decode_from: str = "span",
    ):
        seq_head, span_head, span_first = _make_pair(seq, span, width=width, n_labels=n_labels)
        first = span_head if span_first else seq_head
        super().__init__(width=width, n_labels=n_labels, output_width=first.output_width)
        self.seq = seq_head
        self.span = span_head
        self.span_first = span_first
        self.alpha = alpha
        self.decode_from = decode_from

    @property
    def _order(self) -> Tuple[SpanModule, SpanModule]:
        return (self.span, self.seq) if self.span_first else (self.seq, self.span)

    def prepare(self, tokens: Tokens, gold: Gold) -> None:
        first, second = self._order
        first.prepare(tokens, gold)
        was_training = self.training
        self.eval()  # nothing is dropped, and nothing remembered, for a look at the states
        encoded = self.encode(tokens)
        self.train(was_training)
        second.prepare(encoded.with_states(encoded.x), gold)

    def learn_words(self, keys: Tensor, counts: Tensor) -> None:
        self.seq.learn_words(keys, counts)
        self.span.learn_words(keys, counts)

    def encode(self, tokens: Tokens) -> Tokens:
        return self._order[0].encode(tokens)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        # A head of no weight is not computed, so that the other one is trained exactly as if alone.
        if self.alpha == 0:
            return self._loss_of(self.span, encoded, gold)
        if self.alpha == 1:
            return self._loss_of(self.seq, encoded, gold)
        seq_loss = self._loss_of(self.seq, encoded, gold)
        span_loss = self._loss_of(self.span, encoded, gold)
        return self.alpha * seq_loss + (1 - self.alpha) * span_loss

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        return self._decoder.decode(self._read_by(self._decoder, encoded), thresholds)

    def summary(self) -> List[str]:
        return [*self.seq.summary(), *self.span.summary()]

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        return max(head.cells(length, max_width) for head in (self.seq, self.span))

    def padding(self, length: int) -> int:
        if not self.training:
            return self._decoder.padding(length)
        return max(self.seq.padding(length), self.span.padding(length))

    @property
    def _decoder(self) -> SpanModule:
        return self.span if self.decode_from == "span" else self.seq

    def _loss_of(self, head: SpanModule, encoded: Tokens, gold: Gold) -> Tensor:
        return head.loss(self._read_by(head, encoded), gold)

    def _read_by(self, head: SpanModule, encoded: Tokens) -> Tokens:
        """The first head gets what it encoded, the second encodes that further in its own way."""
        if head is self._order[0]:
            return encoded
        return head.encode(encoded.with_states(encoded.x))


def _make_pair(
    seq: Callable[..., SpanModule], span: Callable[..., SpanModule], *, width: int, n_labels: int
) -> Tuple[SpanModule, SpanModule, bool]:
    """Both heads, and whether `span` comes first: only if it alone has contextual layers."""
    seq_head = seq(width=width, n_labels=n_labels)
    span_head = span(width=seq_head.output_width, n_labels=n_labels)
    if _has_layers(seq_head) or not _has_layers(span_head):
        return seq_head, span_head, False
    return seq(width=span_head.output_width, n_labels=n_labels), span_head, True


def _has_layers(head: SpanModule) -> bool:
    return type(head).encode is not SpanModule.encode


def build_bundled_ner(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]] = None,
    seq: Optional[Model] = None,
    span: Optional[Model] = None,
    alpha: float = 0.1,
    decode_from: Literal["span", "seq"] = "span",
    learn_rate_scale: float = 1.0,
) -> SpanTableModel:
    """Two heads of this package, bundled, as an architecture.

    tok2vec: Token vectors for both heads, or None where it is a part of another architecture.
    seq: A head built without tok2vec; None for SeqNER with its defaults.
    span: Another one; None for SpanNER with its defaults.
    alpha: Weight of the loss of `seq`, 0 to 1; that of `span` weighs 1 - alpha.
    decode_from: Whose spans are the output.
    learn_rate_scale: Multiplies the learning rate for both heads; their own scales are not used.
    """
    if not 0 <= alpha <= 1:
        raise _refuse("alpha", alpha, "it must lie between 0 and 1")
    seq_head = _part(build_seq_ner(None) if seq is None else seq, "seq")
    span_head = _part(build_span_ner(None) if span is None else span, "span")
    decoder = span_head if decode_from == "span" else seq_head
    maker = partial(
        BundledNER,
        seq=seq_head.maker,
        span=span_head.maker,
        alpha=alpha,
        decode_from=decode_from,
    )
    return span_table_model(
        tok2vec,
        maker,
        flat=decoder.flat,
        max_width=decoder.max_width,
        needs_keys=seq_head.needs_keys or span_head.needs_keys,
        needs_sentences=seq_head.needs_sentences or span_head.needs_sentences,
        threshold=decoder.threshold,
        learn_rate_scale=learn_rate_scale,
    )


def _part(model: SpanTableModel, option: str) -> Head:
    """The head of a sub-block, which must not bring a tok2vec: both heads share one."""
    if model.layers:
        reason = "both heads read the tok2vec of the bundled block, so this one must be null"
        raise _refuse(f"{option}.tok2vec", model.layers[0].name, reason)
    return head_of(model)


def _refuse(option: str, value: object, reason: str) -> ValueError:
    text = Errors.S003.format(name="BundledNER", option=option, value=value, reason=reason)
    return ValueError(text)
