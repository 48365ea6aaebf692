"""The temperature that calibrates confidences (Guo et al. 2017), fitted to correct and wrong spans."""

from __future__ import annotations

import numpy

from ..pipeline.outputs import log_odds

LOWEST, HIGHEST = 0.5, 10.0  # lower, scores would become equal at 0 and 1
GOLDEN = (5**0.5 - 1) / 2


def log_loss(scores: numpy.ndarray, correct: numpy.ndarray, temperature: float = 1.0) -> float:
    """Mean negative log-likelihood of correct and wrong under `sigmoid(log-odds / temperature)`."""
    signed = numpy.where(correct, 1.0, -1.0) * log_odds(scores) / temperature
    return float(numpy.logaddexp(0.0, -signed).mean()) if len(scores) else 0.0


def fit_temperature(scores: numpy.ndarray, correct: numpy.ndarray) -> float:
    """The temperature of the smallest log loss. The loss is convex in its inverse, which a golden
    section search minimizes; 1 where there are no scores."""
    if not len(scores):
        return 1.0
    low, high = 1 / HIGHEST, 1 / LOWEST
    while high - low > 1e-4:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if log_loss(scores, correct, 1 / left) <= log_loss(scores, correct, 1 / right):
            high = right
        else:
            low = left
    found = round(2 / (low + high), 4)
    better = log_loss(scores, correct, found) < log_loss(scores, correct)
    return found if better else 1.0
