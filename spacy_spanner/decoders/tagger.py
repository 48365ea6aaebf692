"""One tag per token, by softmax or CRF, behind one interface (Ji et al. 2022, section 3.1.2).

Axes: B rows, L tokens, D width, C labels, K tags, N spans.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Decoded
from ..label_axes import mark_layer
from .crf import CRF, wide_dtype
from .tags import TagScheme


class TagLayer(nn.Module):
    """Loss and decoding of tag logits (B, L, K), for heads that make the logits themselves.

    reduction: Of the loss: "tokens", the mean over the known tokens, also of a CRF; "mean", for a
        CRF the mean over the rows instead; or "sum".
    legal: Softmax alone: decode the best well-formed sequence instead of the best tag of each
        token, and give the probability of an entity among well-formed sequences.
    """

    def __init__(
        self,
        *,
        n_labels: int,
        scheme: str = "BIO",
        kind: str = "softmax",
        reduction: str = "mean",
        legal: bool = False,
    ):
        super().__init__()
        self.scheme = TagScheme(scheme, n_labels)
        self.n_tags = self.scheme.n_tags
        self.reduction = reduction
        self.crf = CRF(self.scheme) if kind == "crf" else None
        # Independent tags under the rules of the scheme are a CRF whose scores are all zero.
        self.rules = CRF(self.scheme).requires_grad_(False) if legal and kind != "crf" else None

    def loss(
        self, logits: Tensor, mask: Tensor, gold_flat: Tensor, known: Optional[Tensor] = None
    ) -> Tensor:
        """Softmax: cross entropy of the known tokens. CRF: negative log-likelihood of what is known
        in each row. Reduced to a scalar."""
        tags = self.scheme.spans_to_tags(gold_flat, (mask.shape[0], mask.shape[1]))
        if known is not None:
            known = known | (tags > 0)  # gold is always annotation
        counted = mask if known is None else mask & known  # (B, L)
        if self.crf is not None:
            total = self.crf.nll(logits, tags, mask, known).sum()
            if self.reduction == "mean":
                counted = mask[:, 0]
        else:
            losses = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")  # (B, L)
            total = (losses * counted).sum()
        return total if self.reduction == "sum" else total / counted.sum().clamp(min=1)

    def projection(self, width: int) -> nn.Linear:
        """A layer from token vectors of this width to logits of the tags."""
        layer = nn.Linear(width, self.n_tags)
        mark_layer(layer, self.scheme.axis)
        return layer

    def step_cells(self) -> int:
        """How many numbers the CRF needs for a step of one row; sums in training need none on a CPU."""
        if self.paths is None or (self.training and self.paths.trans.device.type == "cpu"):
            return 0
        return self.n_tags**2

    @property
    def paths(self) -> Optional[CRF]:
        """The distribution over sequences, where tags are not chosen one by one."""
        return self.rules if self.crf is None else self.crf

    def best_tags(self, logits: Tensor, mask: Tensor) -> Tensor:
        """The most probable tags, 0 where padded.  (B, L)"""
        if self.crf is not None:
            return self.crf.viterbi(logits, mask)[0]
        tags = logits.argmax(2) * mask
        if self.rules is not None:
            # Of all sequences these tags are the best: where they are well-formed, nothing is left
            # to look for.
            broken = (~self.scheme.well_formed(tags, mask)).nonzero()[:, 0]
            if len(broken):
                tags[broken] = self.rules.viterbi(logits[broken], mask[broken])[0]
        return tags

    def best_spans(self, logits: Tensor, mask: Tensor) -> Tensor:
        """The entities of the most probable tags.  (N, 4)"""
        return self.scheme.tags_to_spans(self.best_tags(logits, mask), mask)

    def decode(self, logits: Tensor, mask: Tensor, thresholds: Tensor) -> Decoded:
        """The entities of the best tags with their exact probabilities, where those are over the
        threshold of the label (C,)."""
        spans = self.best_spans(logits, mask)
        if not len(spans):  # where there are no labels, there is nothing to look at
            return Decoded(spans, logits.new_zeros(0))
        scores = self.span_scores(logits, mask, spans)
        keep = scores > thresholds[spans[:, 3]]
        return Decoded(spans[keep], scores[keep])

    def span_scores(self, logits: Tensor, mask: Tensor, spans: Tensor) -> Tensor:
        """The probability that the tags hold exactly this entity, of each span (N, 4).  (N,)"""
        if self.paths is not None:
            return self.paths.span_marginals(logits, mask, spans)
        return independent_span_scores(self.scheme, logits, mask, spans)


class Tagger(nn.Module):
    """One linear layer from token vectors (B, L, D) to tags, and a `TagLayer`."""

    def __init__(self, tags: TagLayer, *, width: int):
        super().__init__()
        self.tags = tags
        self.project = tags.projection(width)

    def loss(
        self, x: Tensor, mask: Tensor, gold_flat: Tensor, known: Optional[Tensor] = None
    ) -> Tensor:
        return self.tags.loss(self.project(x), mask, gold_flat, known)

    def decode(self, x: Tensor, mask: Tensor, thresholds: Tensor) -> Decoded:
        return self.tags.decode(self.project(x), mask, thresholds)


def independent_span_scores(
    scheme: TagScheme, logits: Tensor, mask: Tensor, spans: Tensor
) -> Tensor:
    """The probability of each span (N, 4) if every tag is drawn on its own from the softmax: that
    of all tag sequences, ill-formed ones included, which read as exactly this entity.  (N,)

    A first word is B, or I after a tag that does not continue; the last is E, or I where nothing
    after it continues; all between are I. One word may be any of these at once, or S.
    """
    probs = logits.softmax(2) * mask[..., None]
    none = torch.zeros_like(probs[..., : scheme.n_labels])
    begin, inside, end, single = (
        probs[..., scheme.block(p)] if p in scheme.prefixes else none for p in "BIES"
    )  # (B, L, C) each
    # Zero before the first word and after the last.
    open_before = F.pad(begin + inside, (0, 0, 1, 0))  # (B, L + 1, C), at t: token t - 1 is open
    continues = F.pad(inside + end, (0, 0, 0, 1))  # (B, L + 1, C)

    row, start, stop, label = spans.unbind(1)
    first, last = (row, start, label), (row, stop - 1, label)
    shut = 1 - open_before[first]  # (N,)
    done = 1 - continues[row, stop, label]
    word = single[first] + begin[first] * done + end[first] * shut + inside[first] * shut * done
    logs = logits.log_softmax(2)[..., scheme.block("I")]
    sums = F.pad(logs.to(wide_dtype(logs)), (0, 0, 1, 0)).cumsum(1)  # (B, L + 1, C)
    many = (stop - start > 1).long()
    between = (sums[row, stop - 1, label] - sums[row, start + many, label]).exp().to(probs.dtype)
    phrase = (begin[first] + inside[first] * shut) * between * (end[last] + inside[last] * done)
    return torch.where(many > 0, phrase, word)
