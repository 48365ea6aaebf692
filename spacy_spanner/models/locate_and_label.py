"""Locate and Label (Shen et al. 2021): propose spans, move their boundaries, classify them.

B rows, L tokens, W widths, D width, C labels, N gold spans, S sampled spans, K spans.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..contract import Cost, Decoded, Facts, Gold, Proposes, SpanModule, Tokens, empty_decoded
from ..errors import check
from ..label_axes import mark_layer
from ..spans.bands import band_mask
from ..spans.geometry import adjust, apply_offsets, encode_offsets, iou, soft_weights
from ..spans.matching import touches
from ..spans.soft_nms import pad_by_row, soft_nms
from .builder import architecture
from .locate_and_label_sample import sample_seeds
from .locate_and_label_stages import (
    Spans,
    SpanScorer,
    View,
    binary_focal,
    offset_loss,
    overlap_loss,
)


class LocateAndLabel(SpanModule, Proposes):
    """Filter, regressor and classifier (2.3-2.4), their joint loss (2.5) and decoding (2.6)."""

    seed_widths: Tensor

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        seed_lengths: List[int] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],  # noqa: B006
        hidden_width: Optional[int] = None,
        dropout: float = 0.5,
        alpha1: float = 0.7,
        alpha2: float = 1.0,
        eta: float = 1.0,
        gamma: float = 2.0,
        negatives_per_positive: int = 5,
        negatives_per_row: int = 2,
        slots_per_gold: int = 24,
        filter_threshold: float = 1 / 6,
        filter_weight: float = 1.0,
        regressor_weight: float = 0.1,
        classifier_weight: float = 1.0,
        nms_decay: float = 0.9,
        nms_overlap: float = 0.6,
        use_filter: bool = True,
        use_regressor: bool = True,
        use_soft_nms: bool = True,
    ):
        """
        seed_lengths: Widths of the seed spans; the regressor reaches a few tokens further. Fewer are
            faster.
        hidden_width: Of the scorers; null for the width of the token vectors.
        dropout: On what the scorers read.
        alpha1, alpha2: IoU from which a seed, and a moved span, counts as positive.
        eta, gamma: Exponents of the weights (eq 11) and of the focal loss (eq 12).
        negatives_per_positive, negatives_per_row: Seeds drawn as negatives; more of them raise
            precision.
        slots_per_gold: Most seeds of a batch for each of its gold spans; raise it with the negatives.
        filter_threshold: Seeds that the filter scores lower are not classified; lower is slower.
        filter_weight, regressor_weight, classifier_weight: Of the losses (eq 17).
        nms_decay, nms_overlap: u and k of Soft-NMS (eq 18).
        use_filter, use_regressor, use_soft_nms: Ablations.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.hidden = width if hidden_width is None else hidden_width
        scorer = partial(SpanScorer, width=width, hidden=self.hidden, dropout=dropout)
        self.filter = scorer(n_out=1) if use_filter else None
        self.regressor = scorer(n_out=2) if use_regressor else None
        self.classifier = scorer(n_out=n_labels + 1)  # class 0 is no entity
        mark_layer(self.classifier.out)
        widths = torch.tensor(sorted(set(seed_lengths)))
        self.register_buffer("seed_widths", widths, persistent=False)
        self.max_seed = max(seed_lengths)
        self.alpha1, self.alpha2, self.eta, self.gamma = alpha1, alpha2, eta, gamma
        self.sample = partial(
            sample_seeds,
            alpha1=alpha1,
            negatives_per_positive=negatives_per_positive,
            negatives_per_row=negatives_per_row,
            slots_per_gold=slots_per_gold,
        )
        self.filter_threshold = filter_threshold
        self.loss_weights = {
            "filter": filter_weight,
            "offsets": regressor_weight,
            "overlap": regressor_weight,
            "classifier": classifier_weight,
        }
        self.nms_decay, self.nms_overlap = nms_decay, nms_overlap
        self.use_soft_nms = use_soft_nms

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        lengths = options["seed_lengths"]
        reason = "it needs at least one length, none under 1"
        rules = [("seed_lengths", bool(lengths) and min(lengths) >= 1, reason)]
        check("LocateAndLabel", options, rules)
        return Facts()

    @classmethod
    def bound_width(cls, max_width: int) -> Dict[str, Any]:
        return {"seed_lengths": list(range(1, max_width + 1))}

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Eq 17, each term a mean over the spans it looks at."""
        total = encoded.unpadded.new_zeros(())
        for name, (value, count) in self.loss_terms(encoded, gold).items():
            total = total + self.loss_weights[name] * value / count.clamp(min=1)
        return total

    def loss_terms(self, encoded: Tokens, gold: Gold) -> Dict[str, Tuple[Tensor, Tensor]]:
        """Summed loss of each term and the number of spans it is summed over."""
        sample = self.sample(encoded.mask, gold, self.seed_widths)
        view = View(encoded)
        pooled = view.pool(sample.spans)  # (S, D)
        weigh = partial(soft_weights, eta=self.eta)
        positive = sample.overlap >= self.alpha1  # (S,)
        weights = weigh(sample.overlap, threshold=self.alpha1)  # (S,)
        terms: Dict[str, Tuple[Tensor, Tensor]] = {}
        if self.filter is not None:
            logits = view.inner(self.filter, sample.spans, pooled)[:, 0]  # (S,)
            losses = weights * binary_focal(logits, positive, gamma=self.gamma)
            terms["filter"] = masked_sum(losses, sample.used)
        spans, legal = sample.spans, sample.used
        if self.regressor is not None:
            offsets = self.offsets_to_learn(view, spans, pooled, positive)  # (S, 2)
            moved = apply_offsets(spans.start, spans.end, offsets)  # real-valued, for the loss
            # Rounding ends the gradient here: the classifier never moves a boundary.
            start, end, is_legal = adjust(
                spans.start, spans.end, offsets.detach(), view.lengths[spans.row]
            )
            spans, legal = Spans(spans.row, start, end), legal & is_legal
            learn = legal & positive
            gold_start, gold_end = sample.gold[:, 1], sample.gold[:, 2]
            target = encode_offsets(sample.spans.start, sample.spans.end, gold_start, gold_end)
            losses = offset_loss(offsets, target.to(offsets.dtype))
            terms["offsets"] = masked_sum(losses, learn)
            terms["overlap"] = masked_sum(overlap_loss(*moved, gold_start, gold_end), learn)
        overlap = iou(spans.start, spans.end, sample.gold[:, 1], sample.gold[:, 2])  # (S,)
        hit = overlap >= self.alpha2
        if gold.known is not None:
            legal = legal & (hit | ~touches(~gold.known, spans.row, spans.start, spans.end))
        classes = torch.where(hit, sample.gold[:, 3] + 1, 0)  # (S,)
        logits = view.inner(self.classifier, spans, view.pool(spans))  # (S, C + 1)
        # Classes first: on a CPU, many short rows take several times as long as a few long ones.
        losses = F.cross_entropy(logits.t()[None], classes[None], reduction="none")[0]
        terms["classifier"] = masked_sum(losses * weigh(overlap, threshold=self.alpha2), legal)
        return terms

    def offsets_to_learn(
        self, view: View, spans: Spans, pooled: Tensor, positive: Tensor
    ) -> Tensor:
        """As `offsets`. Positive spans alone teach the regressor: where they can be separated
        without waiting for a device, the others, most of all, get no backward pass.  (S, 2)"""
        if positive.device.type != "cpu":
            return self.offsets(view, spans, pooled)
        learn, rest = positive.nonzero()[:, 0], (~positive).nonzero()[:, 0]
        with torch.no_grad():
            others = self.offsets(view, spans.pick(rest), pooled.index_select(0, rest))
        learned = self.offsets(view, spans.pick(learn), pooled.index_select(0, learn))
        return (
            others.new_empty((len(positive), 2))
            .index_copy(0, rest, others)
            .index_copy(0, learn, learned)
        )

    def offsets(self, view: View, spans: Spans, pooled: Tensor) -> Tensor:
        """How far the regressor wants to move each boundary.  (K, 2)"""
        assert self.regressor is not None
        return view.outer(self.regressor, spans, pooled)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        if self.n_labels == 0 or encoded.mask.numel() == 0:
            return empty_decoded(encoded.x)
        view = View(encoded)
        _, spans = self.locate(view, encoded)
        # Seeds that were moved to the same span get the same score: one of them is enough.
        spans = distinct(spans, view.n_tokens)
        logits = view.inner(self.classifier, spans, view.pool(spans))  # (K, C + 1)
        # Of half precision, many scores would be 1, and equal scores are taken in another order.
        scores, label = logits.float().softmax(dim=1).max(dim=1)  # (K,)
        return self.select(spans, scores, label - 1, thresholds, n_rows=len(encoded.mask))

    def select(
        self, spans: Spans, scores: Tensor, label: Tensor, thresholds: Tensor, *, n_rows: int
    ) -> Decoded:
        """The spans to report of those classified; label -1 is no entity. Sorted by row."""
        keep = label >= 0
        spans, scores, label = spans.pick(keep), scores[keep], label[keep]
        if self.use_soft_nms:
            # Scores only fall, and the lower never touch the higher: what is under every threshold
            # now has no part in the result.
            keep = scores > thresholds.min()
            spans, scores, label = spans.pick(keep), scores[keep], label[keep]
            place, filled = pad_by_row(spans.row, n_rows)  # (B, M)
            scores = soft_nms(
                spans.start[place],
                spans.end[place],
                scores[place],
                filled,
                decay=self.nms_decay,
                overlap=self.nms_overlap,
            )[filled]
        keep = scores > thresholds[label]
        table = torch.stack([spans.row, spans.start, spans.end, label], dim=1)  # (K, 4)
        return Decoded(table[keep], scores[keep])

    def locate(self, view: View, encoded: Tokens) -> Tuple[Spans, Spans]:
        """The seeds that the filter lets through, before and after their boundaries move; without
        those that move to nothing."""
        row, start, shift = self.proposals(encoded).nonzero().unbind(dim=1)  # (K,) each
        seeds = Spans(row, start, start + shift + 1)
        if self.regressor is None:
            return seeds, seeds
        offsets = self.offsets(view, seeds, view.pool(seeds))  # (K, 2)
        start, end, legal = adjust(seeds.start, seeds.end, offsets, view.lengths[row])
        return seeds.pick(legal), Spans(row, start, end).pick(legal)

    def propose(self, encoded: Tokens) -> Tensor:
        seeds, moved = self.locate(View(encoded), encoded)
        return torch.stack([seeds.row, seeds.start, seeds.end, moved.start, moved.end], dim=1)

    def proposals(self, encoded: Tokens) -> Tensor:
        """Which spans of 1..W tokens the filter lets through.  (B, L, W) bool"""
        inside = band_mask(encoded.mask, self.max_seed)  # (B, L, W)
        if self.filter is None:
            return inside
        logits = self.filter.band(encoded.x, self.max_seed)
        return inside & (logits.sigmoid() > self.filter_threshold)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        levels = length.bit_length()  # windows of 1, 2, 4, ... tokens, then the filter of one width
        return length * (levels * self.width + 4 * self.hidden)

    def cost(self) -> Cost:
        # In training only the choice of seeds looks at padding, so that batches stay whole.
        return Cost(token=0.05 if self.training else 1.0)


def masked_sum(values: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor]:
    """Sum of the values (S,) where the mask is set, and how many those are."""
    return torch.where(mask, values, 0.0).sum(), mask.sum()


def distinct(spans: Spans, n_tokens: int) -> Spans:
    """Each span once, sorted by row, start and end."""
    base = n_tokens + 1  # ends run to n_tokens
    key = torch.unique((spans.row * base + spans.start) * base + spans.end)  # (K,)
    return Spans(key // (base * base), key // base % base, key % base)


build_locate_and_label = architecture(
    LocateAndLabel,
    removed={
        "offset_activation": ("none", "offsets are linear (eq 5)"),
        "classifier_loss": ("ce", "the classifier learns by cross-entropy (eq 16)"),
        "weigh_offsets": (False, "the offset term has no weights (eq 14)"),
        "drop_crossing": (False, "spans are chosen by Soft-NMS alone (Algorithm 1)"),
    },
)
