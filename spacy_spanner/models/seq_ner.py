"""SeqNER: one tag per token from the shared encoder (Ji et al. 2022, section 3.1.2)."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional

from torch import Tensor

from ..contract import Cost, Decoded, Facts, Gold, ScoresSpans, SpanModule, Tokens
from ..decoders.tagger import Tagger, TagLayer
from ..dropout import Dropout
from .builder import architecture


class SeqNER(SpanModule, ScoresSpans):
    """Dropout, then a softmax or CRF tagger."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        tagging: Literal["softmax", "crf"] = "softmax",
        scheme: Literal["BIO", "BIOES"] = "BIO",
        legal: bool = True,
        dropout: float = 0.1,
    ):
        """
        tagging: "crf" learns which tag follows which, and is slower to train and to run.
        scheme: Tags "BIO" or "BIOES"; the latter also mark where entities end, which helps small
            encoders.
        legal: With softmax, find the best well-formed tags; otherwise the best tag of each token, and
            ill-formed ones are read as conlleval reads them. A CRF gives well-formed tags anyway.
        dropout: On the token vectors.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.dropout = Dropout(dropout)
        # A CRF's loss, too, by token: one as large as a sentence is cut by spaCy's gradient clipping in
        # most steps, and would drown the other loss of a bundle.
        tags = TagLayer(
            n_labels=n_labels, scheme=scheme, kind=tagging, reduction="tokens", legal=legal
        )
        self.tagger = Tagger(tags, width=width)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        return Facts(flat=True, threshold=0.0)

    def logits(self, encoded: Tokens) -> Tensor:
        """Scores of the tags.  (B, L, K)"""
        return encoded.pad(self.tagger.project(self.dropout(encoded.unpadded)))  # (B, L, K)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        return self.tagger.tags.loss(self.logits(encoded), encoded.mask, gold.flat, gold.known)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        return self.tagger.tags.decode(self.logits(encoded), encoded.mask, thresholds)

    def span_scores(self, encoded: Tokens, spans: Tensor) -> Tensor:
        return self.tagger.tags.span_scores(self.logits(encoded), encoded.mask, spans)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        tags = self.tagger.tags
        return max(length * tags.n_tags, tags.step_cells())

    def cost(self) -> Cost:
        return Cost(step=0 if self.tagger.tags.paths is None else 32)


build_seq_ner = architecture(SeqNER)
