"""From the scores of a head to confidences, and back for thresholds."""

from __future__ import annotations

from typing import NamedTuple, Tuple

import numpy


def log_odds(scores: numpy.ndarray) -> numpy.ndarray:
    clipped = numpy.clip(scores.astype("float64"), 1e-7, 1 - 1e-7)
    return numpy.log(clipped) - numpy.log1p(-clipped)


def sigmoid(odds: numpy.ndarray) -> numpy.ndarray:
    """The inverse of `log_odds`."""
    return 0.5 * (1 + numpy.tanh(odds / 2))  # exp would overflow


class Scaling(NamedTuple):
    """Log-odds of a score divided by the temperature, plus the bias, plus the bias of its label."""

    temperature: float = 1.0
    bias: float = 0.0
    label_bias: Tuple[float, ...] = ()  # of each label; none of any

    def biases(self, labels: numpy.ndarray) -> numpy.ndarray:
        """What is added to the log-odds of a score of each of these labels.  (N,) -> (N,)"""
        of_labels = numpy.array(self.label_bias)[labels] if self.label_bias else 0.0
        return numpy.full(len(labels), self.bias) + of_labels

    def calibrate(self, scores: numpy.ndarray, labels: numpy.ndarray) -> numpy.ndarray:
        """Confidences of scores of these labels, or of thresholds. 0, the threshold that lets
        everything through, stays 0.  (N,), (N,) -> (N,)"""
        if self.temperature == 1 and self.bias == 0 and not any(self.label_bias):
            return scores
        scaled = sigmoid(log_odds(scores) / self.temperature + self.biases(labels))
        return numpy.where(scores > 0, scaled, 0.0).astype(scores.dtype)

    def raw_thresholds(self, thresholds: numpy.ndarray) -> numpy.ndarray:
        """Thresholds of all labels for scores of the head, from those for confidences: the inverse of
        `calibrate`. 1, the threshold that lets nothing through, stays 1.  (C,) -> (C,)"""
        labels = numpy.arange(len(thresholds))
        inverse = -self.biases(labels) * self.temperature
        raw = Scaling(1 / self.temperature, 0.0, tuple(inverse.tolist()))
        return numpy.where(thresholds < 1, raw.calibrate(thresholds, labels), thresholds)

    def then(self, temperature: float, bias: float) -> Scaling:
        """This, and its confidences scaled once more."""
        of_labels = tuple(own / temperature for own in self.label_bias)
        return Scaling(self.temperature * temperature, self.bias / temperature + bias, of_labels)

    def rounded(self, digits: int) -> Scaling:
        of_labels = tuple(round(float(own), digits) for own in self.label_bias)
        return Scaling(round(self.temperature, digits), round(self.bias, digits), of_labels)
