"""SeqNER: one tag per token from the shared encoder (Ji et al. 2022, section 3.1.2)."""

from __future__ import annotations

from typing import Any, List, Literal, Mapping, Optional

import torch
from torch import Tensor, nn

from ..contract import (
    Cost,
    Decoded,
    Facts,
    Gold,
    ScoresSpans,
    SpanModule,
    Tokens,
    empty_decoded,
)
from ..decoders.tagger import Tagger, TagLayer
from ..dropout import Dropout
from ..errors import check
from .builder import architecture


class SeqNER(SpanModule, ScoresSpans):
    """Dropout, then a softmax or CRF tagger; where entities nest, one for each level of them."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        tagging: Literal["softmax", "crf"] = "softmax",
        scheme: Literal["BIO", "BIOES"] = "BIO",
        legal: bool = True,
        levels: int = 1,
        dropout: float = 0.1,
    ):
        """
        tagging: "crf" learns which tag follows which, and is slower to train and to run.
        scheme: Tags "BIO" or "BIOES"; the latter also mark where entities end, which helps small
            encoders.
        legal: With softmax, find the best well-formed tags; otherwise the best tag of each token, and
            ill-formed ones are read as conlleval reads them. A CRF gives well-formed tags anyway.
        levels: Taggers: the first finds the outermost entities, the second the outermost of those inside
            or across them, and so on. One, as in the paper, finds no nested entities.
        dropout: On the token vectors.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.dropout = Dropout(dropout)
        # A CRF's loss, too, by token: one as large as a sentence is cut by spaCy's gradient clipping in
        # most steps, and would drown the other loss of a bundle.
        taggers = [
            Tagger(
                TagLayer(
                    n_labels=n_labels, scheme=scheme, kind=tagging, reduction="tokens", legal=legal
                ),
                width=width,
            )
            for _ in range(levels)
        ]
        self.tagger = taggers[0]
        self.inner = nn.ModuleList(taggers[1:])  # of the levels inside

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        check("SeqNER", options, [("levels", options["levels"] >= 1, "it must be at least 1")])
        return Facts(levels=options["levels"], threshold=0.0)

    @property
    def taggers(self) -> List[Tagger]:
        """From the outermost level inwards."""
        return [self.tagger, *self.inner]  # type: ignore[list-item]

    def logits(self, encoded: Tokens) -> List[Tensor]:
        """Scores of the tags of each level.  (B, L, K) each"""
        x = self.dropout(encoded.unpadded)  # (T, D)
        return [encoded.pad(tagger.project(x)) for tagger in self.taggers]

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """The sum of the losses of the levels."""
        losses = [
            tagger.tags.loss(logits, encoded.mask, gold.at_level(level), gold.known)
            for level, (tagger, logits) in enumerate(zip(self.taggers, self.logits(encoded)))
        ]
        return torch.stack(losses).sum()

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """The entities of all levels."""
        all_logits = self.logits(encoded)
        if not self.inner:
            return self.tagger.tags.decode(all_logits[0], encoded.mask, thresholds)
        found = [
            tagger.tags.best_spans(logits, encoded.mask)
            for tagger, logits in zip(self.taggers, all_logits)
        ]
        spans = torch.cat(found).unique(dim=0)  # two levels may find the same one
        if not len(spans):
            return empty_decoded(thresholds)
        scores = self._sum_scores(all_logits, encoded.mask, spans)
        keep = scores > thresholds[spans[:, 3]]
        return Decoded(spans[keep], scores[keep])

    def span_scores(self, encoded: Tokens, spans: Tensor) -> Tensor:
        return self._sum_scores(self.logits(encoded), encoded.mask, spans)

    def _sum_scores(self, all_logits: List[Tensor], mask: Tensor, spans: Tensor) -> Tensor:
        """The probability of each span (N, 4) to be at one of the levels. No span is at two of them,
        so theirs are added.  (N,)"""
        scores = [
            tagger.tags.span_scores(logits, mask, spans)
            for tagger, logits in zip(self.taggers, all_logits)
        ]
        return torch.stack(scores).sum(0).clamp(max=1.0)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        tags = self.tagger.tags
        return max(length * tags.n_tags, tags.step_cells())

    def cost(self) -> Cost:
        return Cost(step=0 if self.tagger.tags.paths is None else 32)


build_seq_ner = architecture(SeqNER)
