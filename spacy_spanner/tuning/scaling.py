"""Temperature and biases that calibrate confidences (Platt 1999; Guo et al. 2017 for the temperature
alone), fitted to correct and wrong spans. Legend: N spans, C labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

import numpy

from ..pipeline.scaling import Scaling, log_odds, sigmoid

LOWEST, HIGHEST = 0.5, 10.0  # temperatures; lower, scores would become equal at 0 and 1
SPREADS = (0.25, 0.5, 1.0)  # of the biases of labels, as a standard deviation
DIGITS = 4  # of what is found
RIDGE = 1e-6  # keeps temperature and bias apart where all scores are equal
MOST_STEPS = 50
SMALLEST_STEP = 1e-6
RAW = Scaling()  # scores as the head gives them


def targets(correct: numpy.ndarray) -> numpy.ndarray:
    """What confidences are fitted to: nearly 1 for correct spans and nearly 0 for wrong ones, the nearer
    the more there are (Platt). So a few spans that are all correct do not make a model sure.  (N,)"""
    n_correct = int(correct.sum())
    high = (n_correct + 1) / (n_correct + 2)
    low = 1 / (len(correct) - n_correct + 2)
    return numpy.where(correct, high, low)


def cross_entropy(odds: numpy.ndarray, wanted: numpy.ndarray) -> numpy.ndarray:
    """Of confidences with these log-odds.  (N,)"""
    return numpy.logaddexp(0.0, odds) - wanted * odds


def log_loss(
    scores: numpy.ndarray,
    correct: numpy.ndarray,
    labels: numpy.ndarray,
    scaling: Scaling = RAW,
) -> float:
    """Mean cross entropy of the targets and the confidences."""
    if not len(scores):
        return 0.0
    odds = log_odds(scores) / scaling.temperature + scaling.biases(labels)
    return float(cross_entropy(odds, targets(correct)).mean())


def fit_scaling(
    scores: numpy.ndarray,
    correct: numpy.ndarray,
    labels: numpy.ndarray,
    n_labels: int = 0,
    *,
    before: float = 1.0,
) -> Scaling:
    """The scaling of the smallest log loss, or none if it is no better.

    n_labels: Also a bias of each of so many labels, which a normal distribution holds near 0: a label
        with few spans hardly moves from the common bias. Its spread, which may be none, is that of the
        highest evidence: where all labels need the same bias, they have it.
    before: The temperature that the scores already have: the bounds are those of both together.
    """
    if not len(scores):
        return RAW
    odds, wanted = log_odds(scores), targets(correct)
    spans = Spans(odds, wanted, labels, before=before)
    fits = [spans.fit()]
    if n_labels:
        fits += [replace(spans, n_labels=n_labels, spread=spread).fit() for spread in SPREADS]
    inverse, bias, *of_labels = min(fits, key=lambda fit: fit.surprise).point
    found = Scaling(1 / float(inverse), float(bias), tuple(of_labels)).rounded(DIGITS)
    better = log_loss(scores, correct, labels, found) < log_loss(scores, correct, labels)
    return found if better else RAW


class Fit(NamedTuple):
    """The smallest loss, and what it says of the spread that it was found with."""

    point: numpy.ndarray  # (2 + C,)
    surprise: float  # minus the log evidence, by Laplace's approximation


class Curvature(NamedTuple):
    """Second derivatives of the loss. The biases of labels do not meet in them, so they are eliminated:
    two equations are left however many labels there are."""

    common: numpy.ndarray  # (2, 2) of inverse temperature and bias, the biases of labels eliminated
    labels: numpy.ndarray  # (C,) of the biases of labels
    shares: numpy.ndarray  # (2, C) mixed derivatives over those of the labels


@dataclass(frozen=True)
class Spans:
    """Log-odds of scores, what their confidences are fitted to, and labels (N,). A point is the inverse of
    the temperature, the bias and the biases of the labels (2 + C,); the loss is convex in it."""

    odds: numpy.ndarray
    wanted: numpy.ndarray
    labels: numpy.ndarray
    n_labels: int = 0  # that have a bias: all or none
    spread: float = 1.0
    before: float = 1.0  # the temperature that the log-odds already have

    def scaled(self, point: numpy.ndarray) -> numpy.ndarray:
        """Log-odds of the confidences.  (N,)"""
        return self.odds * point[0] + point[1] + (point[2:][self.labels] if self.n_labels else 0.0)

    def loss(self, point: numpy.ndarray) -> float:
        prior = (point[2:] ** 2).sum() / self.spread**2 + RIDGE * (point[0] - 1) ** 2
        return float(cross_entropy(self.scaled(point), self.wanted).sum() + prior / 2)

    def by_label(self, values: numpy.ndarray) -> numpy.ndarray:
        """Sums over the spans of each label that has a bias.  (N,) -> (C,)"""
        if not self.n_labels:
            return numpy.zeros(0)
        return numpy.bincount(self.labels, values, minlength=self.n_labels)

    def fit(self) -> Fit:
        """The smallest loss within the bounds of the temperature."""
        point = self.minimise()
        inverse = min(max(point[0], self.before / HIGHEST), self.before / LOWEST)
        if inverse != point[0]:
            point = self.minimise(inverse)
        common, labels, _ = self.curvature(point)
        volume = numpy.linalg.slogdet(common)[1] + numpy.log(labels * self.spread**2).sum()
        return Fit(point, self.loss(point) + float(volume) / 2)

    def minimise(self, inverse: Optional[float] = None) -> numpy.ndarray:
        """The point of the smallest loss, by Newton's method; with this inverse of the temperature if it
        is given."""
        point = numpy.zeros(2 + self.n_labels)
        point[0] = 1.0 if inverse is None else inverse
        loss = self.loss(point)
        for _ in range(MOST_STEPS):
            step = self.newton_step(point, is_free=inverse is None)
            while (new := self.loss(point - step)) > loss and abs(step).max() > SMALLEST_STEP:
                step = step / 2
            if new > loss:
                break
            point, loss = point - step, new
            if abs(step).max() <= SMALLEST_STEP:
                break
        return point

    def newton_step(self, point: numpy.ndarray, *, is_free: bool) -> numpy.ndarray:
        """is_free: Move the temperature, too.  (2 + C,)"""
        slope = sigmoid(self.scaled(point)) - self.wanted
        of_labels = self.by_label(slope) + point[2:] / self.spread**2  # (C,)
        of_common = numpy.array([self.odds @ slope + RIDGE * (point[0] - 1), slope.sum()])
        common, labels, shares = self.curvature(point)
        left = of_common - shares @ of_labels  # (2,)
        step = (
            numpy.linalg.solve(common, left)
            if is_free
            else numpy.array([0, left[1] / common[1, 1]])
        )
        return numpy.concatenate([step, of_labels / labels - step @ shares])

    def curvature(self, point: numpy.ndarray) -> Curvature:
        scaled = self.scaled(point)
        weight = sigmoid(scaled) * sigmoid(-scaled)
        inputs = numpy.stack([self.odds, numpy.ones(len(self.odds))])  # (2, N)
        labels = self.by_label(weight) + 1 / self.spread**2  # (C,)
        mixed = numpy.stack([self.by_label(row * weight) for row in inputs])  # (2, C)
        common = (inputs * weight) @ inputs.T + RIDGE * numpy.eye(2)
        return Curvature(common - (mixed / labels) @ mixed.T, labels, mixed / labels)
