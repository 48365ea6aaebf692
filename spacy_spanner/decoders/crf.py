"""Linear-chain CRF: likelihood, best path and exact span probabilities (Ji et al. 2022, eq. 8-11).

Axes: B rows, L tokens, C labels, K tags, N spans. Masks are prefixes of their rows.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..label_axes import mark
from ..spans.reversal import reverse_rows, take_tokens
from .tags import TagScheme, last_of_rows

# Score of what is not allowed: large enough to rule it out, and unlike -inf without NaN gradients.
FORBIDDEN = -1e4


class CRF(nn.Module):
    """score = start[y1] + sum of emissions + sum of trans[y_t, y_t+1] + end[yn].

    Transitions that are not well-formed in the scheme are forbidden ("IO" forbids none).
    """

    def __init__(self, scheme: TagScheme):
        super().__init__()
        self.scheme = scheme
        self.start = nn.Parameter(torch.zeros(scheme.n_tags))
        self.trans = nn.Parameter(torch.zeros(scheme.n_tags, scheme.n_tags))
        self.end = nn.Parameter(torch.zeros(scheme.n_tags))
        for scores in (self.start, self.trans, self.end):
            mark(scores, *[scheme.axis] * scores.dim())

    def scores(self) -> Tuple[Tensor, Tensor, Tensor]:
        """Start (K,), transition (K, K) and end (K,) scores with the forbidden ones filled in."""
        return (
            self.start.masked_fill(~self.scheme.starts, FORBIDDEN),
            self.trans.masked_fill(~self.scheme.transitions, FORBIDDEN),
            self.end.masked_fill(~self.scheme.ends, FORBIDDEN),
        )

    def nll(
        self, emissions: Tensor, tags: Tensor, mask: Tensor, known: Optional[Tensor] = None
    ) -> Tensor:
        """-log P(tags) of each row (B,); with `known` (B, L), -log of the probability of all paths
        that agree with the tags of the known tokens. Empty rows give 0."""
        emissions = emissions.to(wide_dtype(emissions))
        if known is None:
            gold = self._path_score(emissions, tags, mask)
        else:
            n_tags = emissions.shape[2]
            agrees = tags[..., None] == torch.arange(n_tags, device=tags.device)  # (B, L, K)
            allowed = agrees | ~known[..., None]
            start, trans, end = (score.to(emissions.dtype) for score in self.scores())
            counted = mask[..., None] & allowed
            masked = emissions.masked_fill(~allowed, FORBIDDEN)
            sums = _forward(masked, start, trans, counted)
            gold = (last_of_rows(sums, mask) + end).logsumexp(1)
        nll = self._log_z(emissions, mask) - gold
        return torch.where(mask[:, 0], nll, torch.zeros_like(nll)).to(self.trans.dtype)

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor]:
        """The best tags (B, L), 0 where padded, and the score of their paths (B,)."""
        start, trans, end = self.scores()
        # Rows are the last axis, so that sums and maxima go along memory: four times as fast.
        first, *others = emissions.permute(1, 2, 0).contiguous().unbind()  # (K, B) each
        best = [start[:, None] + first]  # (K, B) each; rows continue through their padding
        moves = trans[:, :, None]
        paths = best[0].new_empty((*trans.shape, len(emissions)))  # (K, K, B), used again
        for emission in others:
            torch.add(best[-1][:, None], moves, out=paths)
            best.append(paths.amax(0) + emission)
        sums = torch.stack(best).transpose(1, 2).contiguous()  # (L, B, K)
        score, tag = (last_of_rows(sums.transpose(0, 1), mask) + end).max(1)
        tags, into, is_token = [tag], trans.T.contiguous(), mask.unbind(1)
        # Where a step came from is asked for the tags of the path only.
        for t in range(len(others), 0, -1):
            before = (sums[t - 1] + into.index_select(0, tag)).argmax(1)
            tag = torch.where(is_token[t], before, tag)
            tags.append(tag)
        path = torch.stack(tags[::-1], 1)
        return torch.where(mask, path, torch.zeros_like(path)), score

    def span_marginals(self, emissions: Tensor, mask: Tensor, spans: Tensor) -> Tensor:
        """The probability that exactly this labelled entity is there, of each span (N, 4).  (N,)

        All paths up to the start that do not run into the entity, times its one inner path,
        times all paths from the end that do not continue it.
        """
        wide = wide_dtype(emissions)
        rows, row = spans[:, 0].unique(return_inverse=True)  # those without a span need no sums
        emissions, mask = emissions[rows].to(wide), mask[rows]
        start, trans, end = (score.to(wide) for score in self.scores())
        prefix, continues = self.scheme.prefix_numbers, self.scheme.continues
        order = reverse_rows(mask)
        both = torch.stack([emissions, take_tokens(emissions, order)])  # (2, B, L, K)
        edges, both_trans = torch.stack([start, end])[:, None], torch.stack([trans, trans.T])
        # In both directions at once: half as many steps, each of which takes little longer.
        forward, backward = _forward(both, edges, both_trans)  # (B, L, K) each
        backward = take_tokens(backward, order)

        _, begin, stop, label = spans.unbind(1)
        many = (stop - begin > 1).long()
        first = self.scheme.tags_of(prefix[1, 1 - many], label)
        last = self.scheme.tags_of(prefix[1 - many, 1], label)
        inside = self.scheme.tags_of(prefix[0, 0], label)

        left = forward[row, (begin - 1).clamp(min=0)] + trans.T[first]  # (N, K)
        left = left.masked_fill(continues.T[first], -torch.inf).logsumexp(1)
        entry = torch.where(begin > 0, left, start[first]) + emissions[row, begin, first]
        lengths = mask.sum(1)[row]
        right = backward[row, stop.clamp(max=mask.shape[1] - 1)] + trans[last]  # (N, K)
        right = right.masked_fill(continues[last], -torch.inf).logsumexp(1)
        leave = torch.where(stop < lengths, right, end[last])

        loops = trans.diagonal()[self.scheme.block("I")]  # (C,)
        sums = nn.functional.pad(emissions[..., self.scheme.block("I")] + loops, (0, 0, 1, 0))
        sums = sums.cumsum(1)  # (B, L + 1, C) so that any inner stretch is one difference
        middle = sums[row, stop - 1, label] - sums[row, begin + many, label]
        middle = middle + trans[first, inside] + trans[inside, last] - loops[label]
        middle = torch.where(stop - begin > 2, middle, trans[first, last])
        middle = (middle + emissions[row, stop - 1, last]) * many
        log_z = (last_of_rows(forward, mask) + end).logsumexp(1)[row]
        return (entry + middle + leave - log_z).clamp(max=0).exp().to(self.trans.dtype)

    def _log_z(self, emissions: Tensor, mask: Tensor) -> Tensor:
        start, trans, end = (score.to(emissions.dtype) for score in self.scores())
        return (last_of_rows(_forward(emissions, start, trans), mask) + end).logsumexp(1)

    def _path_score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        start, trans, end = (score.to(emissions.dtype) for score in self.scores())
        emitted = emissions.gather(2, tags[..., None])[..., 0] * mask  # (B, L)
        stepped = trans[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]
        return start[tags[:, 0]] + emitted.sum(1) + stepped.sum(1) + end[last_of_rows(tags, mask)]


def wide_dtype(x: Tensor) -> torch.dtype:
    """Sums over long rows lose digits in float32; Apple's GPUs have nothing wider."""
    return torch.float32 if x.device.type == "mps" else torch.float64


def _forward(
    emissions: Tensor, start: Tensor, trans: Tensor, counted: Optional[Tensor] = None
) -> Tensor:
    """Log of the sum over all paths up to and with token t that end in tag k, of rows that continue
    through their padding.  (..., B, L, K)

    emissions (..., B, L, K), start (..., K) and trans (..., K, K) as they broadcast.
    counted: Only paths through these tags count, where a token has any.  (B, L, K)
    """
    if emissions.device.type == "cpu":
        # (..., B, L, K), (..., B)
        alphas, is_exact = _scaled_sums(emissions, start, trans, counted)
        if is_exact.all():
            return alphas
        if emissions.dim() == 3:
            rows = (~is_exact).nonzero()[:, 0]
            return alphas.index_copy(0, rows, _log_sums(emissions[rows], start, trans))
    return _log_sums(emissions, start, trans)  # to ask a GPU would mean to wait for it


def _log_sums(emissions: Tensor, start: Tensor, trans: Tensor) -> Tensor:
    """As `_forward`, in log space all the way.  (..., B, L, K)"""
    first, *others = emissions.unbind(-2)  # (..., B, K) each
    steps, into = [start + first], trans.transpose(-1, -2).contiguous().unsqueeze(-3)
    for emission in others:
        paths = steps[-1].unsqueeze(-2) + into  # (..., B, K, K) by target
        steps.append(paths.logsumexp(-1) + emission)
    return torch.stack(steps, -2)


def _scaled_sums(
    emissions: Tensor, start: Tensor, trans: Tensor, counted: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor]:
    """As `_forward`, several times faster: one matrix product a step, with sums outside log space,
    scaled by their maximum. Also which rows are exact: a tag that can only be reached from tags
    which are less probable by e^-700 or more has a sum of zero. Where only some tags are counted,
    those that no allowed path of them leads to are forbidden too: they add nothing to the others."""
    tiny = torch.finfo(emissions.dtype).tiny
    if counted is None:
        alphas, sums = _ScaledSums.apply(emissions, start, trans)
        lost = sums < tiny  # (..., B, L - 1, K)
    else:
        is_open = _reachable(counted, start, trans)  # (B, L, K)
        open_only = emissions.masked_fill(counted & ~is_open, FORBIDDEN)
        alphas, sums = _ScaledSums.apply(open_only, start, trans)
        stuck = counted.any(-1) & ~is_open.any(-1)  # (B, L)
        lost = (sums < tiny) & is_open[:, 1:] | stuck[:, 1:, None] | stuck[:, :1, None]
    return alphas, ~lost.any(-1).any(-1)


class _ScaledSums(torch.autograd.Function):
    """Left to autograd, each step back would make a gradient of all transitions (K, K)."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, start: Tensor, trans: Tensor) -> Tuple[Tensor, Tensor]:
        weights = trans.exp()
        tiny = torch.finfo(emissions.dtype).tiny
        first, *others = emissions.unbind(-2)  # (..., B, K) each
        alphas, sums = [start + first], []
        for emission in others:
            peak = alphas[-1].amax(-1, keepdim=True)
            sums.append((alphas[-1] - peak).exp() @ weights)
            alphas.append(sums[-1].clamp(min=tiny).log() + peak + emission)
        all_alphas = torch.stack(alphas, -2)  # (..., B, L, K)
        all_sums = torch.stack(sums, -2) if sums else all_alphas[..., :0, :]
        ctx.save_for_backward(all_alphas, all_sums, weights)
        ctx.mark_non_differentiable(all_sums)
        return all_alphas, all_sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_alphas: Tensor, _: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        alphas, sums, weights = ctx.saved_tensors  # (B, L, K), (B, L - 1, K), (K, K)
        tiny = torch.finfo(alphas.dtype).tiny
        before = alphas[:, :-1]
        shares = (before - before.amax(-1, keepdim=True)).exp()  # (B, L - 1, K)
        steps = [d_alphas[:, -1]]  # from the last token to the first, (B, K) each
        ratios = []
        for t in range(alphas.shape[1] - 2, -1, -1):
            ratios.append(torch.where(sums[:, t] < tiny, 0.0, steps[-1] / sums[:, t]))
            steps.append(d_alphas[:, t] + shares[:, t] * (ratios[-1] @ weights.T))
        d_emissions = torch.stack(steps[::-1], 1)
        d_trans = torch.zeros_like(weights)
        if ratios:
            d_trans = shares.flatten(0, 1).T @ torch.stack(ratios[::-1], 1).flatten(0, 1) * weights
        return d_emissions, steps[-1].sum(0), d_trans


def _reachable(counted: Tensor, start: Tensor, trans: Tensor) -> Tensor:
    """The counted tags (B, L, K) that some path of counted tags leads to, by what is not forbidden.
    (B, L, K)"""
    may_start, may_follow = start > FORBIDDEN / 2, (trans > FORBIDDEN / 2).float()
    first, *others = counted.unbind(1)  # (B, K) each
    steps = [first & may_start]
    for allowed in others:
        steps.append((steps[-1].float() @ may_follow > 0) & allowed)
    return torch.stack(steps, 1)
