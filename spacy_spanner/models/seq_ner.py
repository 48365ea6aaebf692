"""SeqNER: one tag per token from the shared encoder (Ji et al. 2022, section 3.1.2)."""

from __future__ import annotations

from functools import partial
from typing import List, Literal, Optional

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from ..bridge import SpanTableModel, span_table_model
from ..contract import Decoded, Gold, SpanModule, Tokens
from ..decoders.tagger import Tagger
from ..dropout import Dropout


class SeqNER(SpanModule):
    """Dropout, then a softmax or CRF tagger."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        tagging: str = "softmax",
        scheme: str = "BIO",
        legal: bool = True,
        dropout: float = 0.1,
    ):
        super().__init__(width=width, n_labels=n_labels)
        self.dropout = Dropout(dropout)
        # A CRF's loss, too, by token: one as large as a sentence is cut by spaCy's gradient clipping in
        # most steps, and would drown the other loss of a bundle.
        self.tagger = Tagger(
            width=width,
            n_labels=n_labels,
            scheme=scheme,
            kind=tagging,
            reduction="tokens",
            legal=legal,
        )

    def logits(self, encoded: Tokens) -> Tensor:
        return encoded.pad(self.tagger.project(self.dropout(encoded.real)))  # (B, L, K)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        return self.tagger.tags.loss(self.logits(encoded), encoded.mask, gold.flat, gold.known)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        return self.tagger.tags.decode(self.logits(encoded), encoded.mask, thresholds)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        n_tags = self.tagger.tags.n_tags
        return n_tags * max(length, n_tags if self.tagger.tags.paths is not None else 0)

    def padding(self, length: int) -> int:
        steps = 0 if self.tagger.tags.paths is None else 32 * length
        return super().padding(length) + steps


def build_seq_ner(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]] = None,
    tagging: Literal["softmax", "crf"] = "softmax",
    scheme: Literal["BIO", "BIOES"] = "BIO",
    legal: bool = True,
    dropout: float = 0.1,
    learn_rate_scale: float = 1.0,
) -> SpanTableModel:
    """SeqNER as an architecture.

    tok2vec: Token vectors, or None where it is a part of another architecture.
    tagging: "softmax" or "crf".
    scheme: Tags "BIO" or "BIOES".
    legal: With softmax, find the best well-formed tags; otherwise the best tag of each token, and
        ill-formed ones are read as conlleval reads them. A CRF gives well-formed tags anyway.
    dropout: On the token vectors.
    learn_rate_scale: Multiplies the learning rate for this head alone.
    """
    return span_table_model(
        tok2vec,
        partial(SeqNER, tagging=tagging, scheme=scheme, legal=legal, dropout=dropout),
        flat=True,
        threshold=0.0,
        learn_rate_scale=learn_rate_scale,
    )
