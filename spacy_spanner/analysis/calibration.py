"""How far confidences can be believed: reliability curve, expected calibration error, temperature."""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import numpy

from ..pipeline.outputs import log_odds
from .tables import System

N_BINS = 10
COLDEST, HOTTEST = 0.5, 10.0  # colder, scores would run together at 0 and 1
GOLDEN = (5**0.5 - 1) / 2


class Bin(NamedTuple):
    """Predictions with a confidence in (low, high]; 0 belongs to the first bin."""

    low: float
    high: float
    size: int
    confidence: float  # mean
    accuracy: float  # share that is right


class Calibration(NamedTuple):
    """Of the predictions that have a confidence."""

    bins: List[Bin]
    error: float  # expected calibration error
    size: int
    confidence: float
    accuracy: float


def calibration(system: System, *, n_bins: int = N_BINS) -> Optional[Calibration]:
    """The reliability of a system's confidences; None where it gives none."""
    known = ~numpy.isnan(system.pred.scores)
    if not known.any():
        return None
    return reliability(system.pred.scores[known], system.correct[known], n_bins=n_bins)


def reliability(
    scores: numpy.ndarray, correct: numpy.ndarray, *, n_bins: int = N_BINS
) -> Calibration:
    """Bins of equal width over 0..1. The error is the mean distance between the confidence and the
    accuracy of a bin, weighted by its predictions; bins without any are left out of `bins`."""
    edges = numpy.linspace(0, 1, n_bins + 1)
    numbers = numpy.clip(numpy.searchsorted(edges, scores, side="left") - 1, 0, n_bins - 1)
    counts = numpy.bincount(numbers, minlength=n_bins)
    confidence = numpy.bincount(numbers, weights=scores, minlength=n_bins)
    accuracy = numpy.bincount(numbers, weights=correct, minlength=n_bins)
    bins = [
        Bin(
            float(edges[i]),
            float(edges[i + 1]),
            int(counts[i]),
            float(confidence[i] / counts[i]),
            float(accuracy[i] / counts[i]),
        )
        for i in numpy.flatnonzero(counts)
    ]
    total = max(len(scores), 1)
    error = float(numpy.abs(confidence - accuracy).sum() / total)
    return Calibration(
        bins, error, len(scores), float(scores.sum() / total), float(correct.sum() / total)
    )


def log_loss(scores: numpy.ndarray, correct: numpy.ndarray, temperature: float = 1.0) -> float:
    """Mean negative log-likelihood of right and wrong under `sigmoid(log-odds / temperature)`."""
    signed = numpy.where(correct, 1.0, -1.0) * log_odds(scores) / temperature
    return float(numpy.logaddexp(0.0, -signed).mean()) if len(scores) else 0.0


def fit_temperature(scores: numpy.ndarray, correct: numpy.ndarray) -> float:
    """The temperature of the smallest log loss. The loss is convex in its inverse, which a golden
    section search looks through; 1 where there is nothing to learn from."""
    if not len(scores):
        return 1.0
    low, high = 1 / HOTTEST, 1 / COLDEST
    while high - low > 1e-4:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if log_loss(scores, correct, 1 / left) <= log_loss(scores, correct, 1 / right):
            high = right
        else:
            low = left
    found = round(2 / (low + high), 4)
    better = log_loss(scores, correct, found) < log_loss(scores, correct)
    return found if better else 1.0
