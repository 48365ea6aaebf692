"""Semi-Markov CRF: a distribution over the ways to cut a row into labelled segments (Ye and Ling 2018).

Axes: B rows, L tokens, W widths, C labels, K = C + 1 classes (0 is none), N spans. Masks are prefixes of
their rows. Cell [t, w] of a table of segments is the segment t .. t + w.
"""

from __future__ import annotations

from typing import Callable, Tuple

import torch
from torch import Tensor, nn

from ..label_axes import CLASSES, mark
from ..spans.bands import band_mask
from .crf import FORBIDDEN
from .tags import last_of_rows


class SemiCRF(nn.Module):
    """score = start[c1] + sum of segment scores + sum of trans[c_i, c_i+1] + end[cn].

    Tables of segments are (B, L, W, K). Segments of no entity have one token; their score at any other
    width must be forbidden.
    """

    def __init__(self, n_labels: int):
        super().__init__()
        n_classes = n_labels + 1
        self.start = nn.Parameter(torch.zeros(n_classes))
        self.trans = nn.Parameter(torch.zeros(n_classes, n_classes))
        self.end = nn.Parameter(torch.zeros(n_classes))
        for scores in (self.start, self.trans, self.end):
            mark(scores, *[CLASSES] * scores.dim())

    def nll(self, scores: Tensor, allowed: Tensor, mask: Tensor) -> Tensor:
        """-log of the probability of all segmentations of allowed segments (B, L, W, K), of each row
        (B,). Empty rows give 0."""
        both = torch.cat([scores, scores.masked_fill(~allowed, FORBIDDEN)])
        sums, _ = self._forward(both, torch.logsumexp)
        log_z, gold = self._total(sums, torch.cat([mask, mask])).chunk(2)
        return torch.where(mask[:, 0], log_z - gold, 0.0).to(self.trans.dtype)

    def viterbi(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The entities of the best segmentation, by falling start.  (N, 4)"""
        best, entries = self._forward(scores, torch.amax)  # (B, L, K), (B, L + 1, K)
        trans, by_end = self.trans.to(best.dtype), segments_by_end(scores)
        n_widths = by_end.shape[2]
        rows = torch.arange(len(mask), device=mask.device)
        stop, label = mask.sum(1), (last_of_rows(best, mask) + self.end).argmax(1)  # (B,) each
        found = []
        while (stop > 0).any():
            starts = stop[:, None] - torch.arange(n_widths, 0, -1, device=mask.device)  # (B, W)
            paths = entries[rows[:, None], starts.clamp(min=0), label[:, None]]
            paths = paths + by_end[rows, stop - 1, :, label]
            chosen = paths.masked_fill(starts < 0, -torch.inf).argmax(1, keepdim=True)
            start = starts.gather(1, chosen)[:, 0]  # (B,)
            segment = torch.stack([rows, start, stop, label - 1], dim=1)
            found.append(segment[(stop > 0) & (label > 0)])
            stop = start.clamp(min=0)
            label = (best[rows, (stop - 1).clamp(min=0)] + trans[:, label].T).argmax(1)
        return torch.cat(found) if found else mask.new_zeros((0, 4), dtype=torch.int64)

    def marginals(self, scores: Tensor, mask: Tensor, spans: Tensor) -> Tensor:
        """The probability of each labelled segment (N, 4).  (N,)"""
        scores = scores.masked_fill(~band_mask(mask, scores.shape[2])[..., None], FORBIDDEN)
        sums, entries = self._forward(scores, torch.logsumexp)
        row, start, stop, label = spans.unbind(1)
        before = entries[row, start, label + 1]
        segment = scores[row, start, stop - start - 1, label + 1]
        after = self._backward(scores, mask)[row, stop, label + 1]
        log_probs = before + segment + after - self._total(sums, mask)[row]
        return log_probs.clamp(max=0).exp().to(self.trans.dtype)

    def _total(self, sums: Tensor, mask: Tensor) -> Tensor:
        """Log of the sum over all segmentations of each row.  (B,)"""
        return (last_of_rows(sums, mask) + self.end).logsumexp(1)

    def _forward(self, scores: Tensor, reduce: Callable[..., Tensor]) -> Tuple[Tensor, Tensor]:
        """Over all segmentations, by `reduce` (log of the sum, or maximum), in wide numbers:

        sums (B, L, K): those of the tokens up to and with t whose last segment is of class k.
        entries (B, L + 1, K): those of the tokens before t, with the transition to class k.
        """
        trans, by_end = self.trans.to(scores.dtype), segments_by_end(scores)
        n_widths = by_end.shape[2]
        sums, entries = [], [self.start.to(scores.dtype).expand(len(scores), -1)]
        for t, ending in enumerate(by_end.unbind(1)):  # (B, W, K) each
            recent = torch.stack(entries[-n_widths:], 1)  # (B, up to W, K)
            sums.append(reduce(recent + ending[:, -recent.shape[1] :], 1))
            entries.append(reduce(sums[t][..., None] + trans, 1))
        return torch.stack(sums, 1), torch.stack(entries, 1)

    def _backward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Log of the sum over all segmentations of the tokens from t on, after a segment of class k.
        (B, L + 1, K)"""
        trans, end = self.trans.to(scores.dtype), self.end.to(scores.dtype)
        length, n_widths = scores.shape[1:3]
        exits = [end.expand(len(scores), -1)] * (n_widths + 1)  # at t + 1, t + 2, ...
        for t in range(length - 1, -1, -1):
            onward = torch.stack(exits[:n_widths], 1)  # (B, W, K)
            begun = (scores[:, t] + onward).logsumexp(1)  # (B, K)
            through = (trans + begun[:, None]).logsumexp(2)  # (B, K)
            exits.insert(0, torch.where(mask[:, t, None], through, end))
        return torch.stack(exits[: length + 1], 1)


def segments_by_end(scores: Tensor) -> Tensor:
    """The same scores (B, L, W, K) by last token: cell [t, j] is the segment t - W + 1 + j .. t;
    undefined where that begins before the row."""
    length, n_widths = scores.shape[1:3]
    width = torch.arange(n_widths - 1, -1, -1, device=scores.device)  # (W,)
    start = torch.arange(length, device=scores.device)[:, None] - width  # (L, W)
    return scores[:, start.clamp(min=0), width]
