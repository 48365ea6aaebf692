"""Strict scores, calibration of confidences, and the significance of a difference.

Strict: a prediction is correct if it has the offsets and the label of a gold span.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy

from .proposals import rows_in
from .systems import DOC, LABEL, System

N_BINS = 10
BLOCK_CELLS = 4_000_000  # numbers of one block of resamples, to bound memory


class Counts(NamedTuple):
    """True positives, false negatives, false positives, and the scores (0-1, 0 if undefined)."""

    tp: int
    fn: int
    fp: int

    @property
    def precision(self) -> float:
        """The share of predictions that are correct."""
        return self.tp / max(self.tp + self.fp, 1)

    @property
    def recall(self) -> float:
        """The share of gold that was found."""
        return self.tp / max(self.tp + self.fn, 1)

    @property
    def f_score(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.tp / max(2 * self.tp + self.fn + self.fp, 1)


def overall(system: System) -> Counts:
    """The counts that micro averages are made of."""
    return Counts(int(system.found.sum()), int((~system.found).sum()), int((~system.correct).sum()))


def unlabelled(system: System) -> Counts:
    """Counts of offsets only; two labels at the same offsets are one span."""
    gold = numpy.unique(system.corpus.gold.spans[:, :LABEL], axis=0)
    pred = numpy.unique(system.pred.spans[:, :LABEL], axis=0)
    tp = int(rows_in(gold, pred).sum())
    return Counts(tp, len(gold) - tp, len(pred) - tp)


def by_label(system: System) -> Dict[str, Counts]:
    """Counts of each label, the most frequent gold label first."""
    gold, pred = system.corpus.gold.spans[:, LABEL], system.pred.spans[:, LABEL]
    counts = counts_by(gold, pred, system, len(system.corpus.labels))
    names = system.corpus.labels
    order = sorted(range(len(names)), key=lambda i: (-counts[i].tp - counts[i].fn, names[i]))
    return {names[i]: counts[i] for i in order}


def macro_f(counts: Dict[str, Counts]) -> float:
    """The mean F of the labels that gold has."""
    values = [count.f_score for count in counts.values() if count.tp + count.fn]
    return sum(values) / max(len(values), 1)


def by_length(system: System) -> List[Tuple[int, Counts]]:
    """Counts of each length in tokens that occurs (Shen et al. 2021, Table 2)."""
    gold, pred = (
        part.tokens[:, 1] - part.tokens[:, 0] for part in (system.corpus.gold, system.pred)
    )
    longest = max(gold.max(initial=0), pred.max(initial=0))
    counts = counts_by(gold, pred, system, int(longest) + 1)
    return [(length, count) for length, count in enumerate(counts) if any(count)]


def by_document(system: System) -> numpy.ndarray:
    """Counts of each document.  (D, 3)"""
    gold, pred = system.corpus.gold.spans[:, DOC], system.pred.spans[:, DOC]
    return numpy.array(counts_by(gold, pred, system, len(system.corpus.docs))).reshape(-1, 3)


def counts_by(
    gold: numpy.ndarray, pred: numpy.ndarray, system: System, n_groups: int
) -> List[Counts]:
    """Counts of groups, given the group of each gold (G,) and predicted span (P,)."""
    tp = numpy.bincount(gold[system.found], minlength=n_groups)
    fn = numpy.bincount(gold[~system.found], minlength=n_groups)
    fp = numpy.bincount(pred[~system.correct], minlength=n_groups)
    return [Counts(*row) for row in numpy.stack([tp, fn, fp], axis=1).tolist()]


class ConfidenceBin(NamedTuple):
    """Predictions with a confidence in (low, high]; 0 belongs to the first bin."""

    low: float
    high: float
    size: int
    confidence: float  # mean
    accuracy: float  # share of correct predictions


class Calibration(NamedTuple):
    """The reliability curve of the predictions that have a confidence."""

    bins: List[ConfidenceBin]
    error: float  # expected calibration error
    chance: float  # about what it would be if every confidence were the true probability
    size: int
    confidence: float
    accuracy: float


def system_calibration(system: System) -> Optional[Calibration]:
    """The calibration of a system's confidences; None where it gives none."""
    known = ~numpy.isnan(system.pred.scores)
    if not known.any():
        return None
    return calibration(system.pred.scores[known], system.correct[known])


def calibration(
    scores: numpy.ndarray, correct: numpy.ndarray, *, n_bins: int = N_BINS
) -> Calibration:
    """Bins of equal width over 0..1. The error is the mean distance between the confidence and the
    accuracy of a bin, weighted by its predictions; empty bins are left out of `bins`. It is never 0 by
    draws of chance: `chance` is its mean over draws of what is correct by these confidences, with a
    normal distribution for each bin."""
    edges = numpy.linspace(0, 1, n_bins + 1)
    numbers = numpy.clip(numpy.searchsorted(edges, scores, side="left") - 1, 0, n_bins - 1)
    sizes = numpy.bincount(numbers, minlength=n_bins)
    confidence = numpy.bincount(numbers, weights=scores, minlength=n_bins)
    accuracy = numpy.bincount(numbers, weights=correct, minlength=n_bins)
    total = max(len(scores), 1)
    error = float(numpy.abs(confidence - accuracy).sum() / total)
    variances = numpy.bincount(numbers, weights=scores * (1 - scores), minlength=n_bins)
    chance = float(numpy.sqrt(2 / numpy.pi * variances).sum() / total)
    used = sizes > 0
    means = [confidence[used] / sizes[used], accuracy[used] / sizes[used]]
    columns = [
        column.tolist() for column in (edges[:-1][used], edges[1:][used], sizes[used], *means)
    ]
    bins = [ConfidenceBin(*row) for row in zip(*columns, strict=True)]
    means_of_all = float(scores.sum() / total), float(correct.sum() / total)
    return Calibration(bins, error, chance, len(scores), *means_of_all)


class Difference(NamedTuple):
    """F of the first system minus F of the second (-1 to 1)."""

    value: float
    low: float  # 95 % interval
    high: float
    p_value: float
    resamples: int


def paired_bootstrap(first: System, second: System, *, resamples: int = 1000) -> Difference:
    """Draw as many documents as there are, with replacement, and score both systems on each draw.

    The p-value (two-sided) is the share of draws whose difference is at least as far from the
    observed one as that is from zero; the observed difference counts as one draw.
    """
    counts = numpy.stack([by_document(first), by_document(second)])  # (2, D, 3)
    return bootstrap_counts(counts, resamples=resamples)


def bootstrap_counts(counts: numpy.ndarray, *, resamples: int, seed: int = 0) -> Difference:
    """counts: (2, D, 3) of two systems for each document."""
    n_docs = counts.shape[1]
    observed = float(f_differences(counts.sum(axis=1, keepdims=True))[0])
    if n_docs == 0:
        return Difference(0.0, 0.0, 0.0, 1.0, resamples)
    rng = numpy.random.default_rng(seed)
    drawn = []
    block = max(1, BLOCK_CELLS // n_docs)
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        times = rng.multinomial(n_docs, numpy.full(n_docs, 1 / n_docs), size=size)  # (S, D)
        drawn.append(f_differences(times @ counts))
    differences = numpy.concatenate(drawn)
    low, high = numpy.quantile(differences, [0.025, 0.975])
    # The tolerance keeps rounding from separating equal differences.
    far = numpy.abs(differences - observed) >= abs(observed) - 1e-12
    p_value = (1 + int(far.sum())) / (1 + resamples)
    return Difference(observed, float(low), float(high), p_value, resamples)


def f_differences(counts: numpy.ndarray) -> numpy.ndarray:
    """F of the first minus F of the second system, for S sums of counts (2, S, 3).  (S,)"""
    tp, fn, fp = numpy.moveaxis(counts, -1, 0)  # (2, S) each
    first, second = 2 * tp / numpy.maximum(2 * tp + fn + fp, 1)
    return first - second
