"""Temperature and bias that calibrate confidences (Platt 1999; Guo et al. 2017 for the temperature alone),
fitted to correct and wrong spans."""

from __future__ import annotations

from typing import NamedTuple, Tuple

import numpy

from ..pipeline.outputs import log_odds

LOWEST, HIGHEST = 0.5, 10.0  # lower, scores would become equal at 0 and 1
GOLDEN = (5**0.5 - 1) / 2
HALVINGS = 40  # of a range of at most 80


class Scaling(NamedTuple):
    """Log-odds of a score divided by the temperature, plus the bias."""

    temperature: float = 1.0
    bias: float = 0.0


def targets(correct: numpy.ndarray) -> numpy.ndarray:
    """What confidences are fitted to: nearly 1 for correct spans and nearly 0 for wrong ones, the nearer
    the more there are (Platt). So a few spans that are all correct do not make a model sure.  (N,)"""
    n_correct = int(correct.sum())
    high = (n_correct + 1) / (n_correct + 2)
    low = 1 / (len(correct) - n_correct + 2)
    return numpy.where(correct, high, low)


def log_loss(
    scores: numpy.ndarray,
    correct: numpy.ndarray,
    scaling: Scaling = Scaling(),  # noqa: B008
) -> float:
    """Mean cross entropy of the targets and the confidences."""
    if not len(scores):
        return 0.0
    odds = log_odds(scores) / scaling.temperature + scaling.bias
    return float((numpy.logaddexp(0.0, odds) - targets(correct) * odds).mean())


def fit_scaling(scores: numpy.ndarray, correct: numpy.ndarray) -> Scaling:
    """The scaling of the smallest log loss. The loss is convex in the bias and the inverse of the
    temperature: a golden section search over the latter, each with its best bias."""
    if not len(scores):
        return Scaling()
    odds, wanted = log_odds(scores), targets(correct)

    def best_of(inverse: float) -> Tuple[float, float]:
        bias = best_bias(odds * inverse, wanted)
        scaled = odds * inverse + bias
        return float((numpy.logaddexp(0.0, scaled) - wanted * scaled).mean()), bias

    low, high = 1 / HIGHEST, 1 / LOWEST
    while high - low > 1e-4:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if best_of(left)[0] <= best_of(right)[0]:
            high = right
        else:
            low = left
    inverse = (low + high) / 2
    found = Scaling(round(1 / inverse, 4), round(best_of(inverse)[1], 4))
    better = log_loss(scores, correct, found) < log_loss(scores, correct)
    return found if better else Scaling()


def best_bias(odds: numpy.ndarray, wanted: numpy.ndarray) -> float:
    """What must be added to the log-odds so that the mean confidence is the mean of the targets, where
    the loss is smallest; by bisection, as the confidence only rises."""
    low, high = -float(odds.max()) - 20.0, -float(odds.min()) + 20.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if (1 / (1 + numpy.exp(-odds - middle))).mean() < wanted.mean():
            low = middle
        else:
            high = middle
    return (low + high) / 2
