"""Locate and Label (Shen et al. 2021, 2.2): the seed spans one training step learns from.

B rows, L tokens, W widths, N gold spans, S sampled spans.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..contract import Gold
from ..spans.matching import band, first_of_span, inside, negatives, pair
from ..spans.sampling import compact, sample_mask
from .locate_and_label_stages import Spans


@dataclass
class Sample:
    """Sampled spans, (S,) each; where `used` is False a slot is empty."""

    spans: Spans
    overlap: Tensor  # float32, IoU with the paired gold span
    gold: Tensor  # (S, 4) the paired gold span, zeros where there is none
    used: Tensor  # bool

    def pick(self, index: Tensor) -> Sample:
        """Those under the given mask."""
        return Sample(
            self.spans.pick(index), self.overlap[index], self.gold[index], self.used[index]
        )


@torch.no_grad()
def sample_seeds(
    mask: Tensor,
    gold: Gold,
    widths: Tensor,
    *,
    alpha1: float,
    negatives_per_positive: int,
    negatives_per_row: int,
    slots_per_gold: int,
) -> Sample:
    """Positive seeds of the given widths (W,), freshly drawn negatives and the gold spans
    themselves, whatever their width; every span once.

    The number of slots is fixed by the number of gold spans, which is known without looking at the
    device. A batch that has more positives than that allows for gets fewer negatives."""
    n_rows, n_tokens = mask.shape
    starts, ends = band(widths, n_tokens)  # (L * W,)
    overlap, partner = pair(starts, ends, gold.spans, n_rows)  # (B, L * W)
    valid = inside(ends, mask)  # (B, L * W)
    positive = valid & (overlap >= alpha1) & (overlap < 1)  # gold spans have slots of their own
    distinct = first_of_span(gold.spans)  # (N,)
    n_positive = positive.sum(dim=1).index_add(0, gold.spans[:, 0], distinct.long())  # (B,)
    allowed = negatives(overlap, valid, starts, ends, threshold=alpha1, known=gold.known)
    negative = sample_mask(allowed, negatives_per_positive * n_positive + negatives_per_row)
    n_slots = negatives_per_row * n_rows + slots_per_gold * len(gold.spans)
    cell, used = compact(positive.view(-1), negative.view(-1), n_slots)  # (S - N,)
    row, place = cell // len(starts), cell % len(starts)
    # An empty slot holds the first word of the first row, a span that is always there.
    seeds = Spans(
        torch.where(used, row, 0),
        torch.where(used, starts[place], 0),
        torch.where(used, ends[place], 1),
    )
    numbers = torch.arange(len(gold.spans), device=mask.device)  # (N,)
    partner = torch.cat([partner.view(-1)[cell], numbers])  # (S,)
    sample = Sample(
        spans=seeds.and_those(gold.spans),
        overlap=torch.cat([overlap.view(-1)[cell], overlap.new_ones(len(numbers))]),
        gold=F.pad(gold.spans, (0, 0, 0, 1))[partner],
        used=torch.cat([used, distinct]),
    )
    # Empty slots change nothing. To count them costs a GPU more than to carry them along.
    return sample.pick(sample.used) if mask.device.type == "cpu" else sample
