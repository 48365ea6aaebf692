"""Is the difference between two systems more than chance? A paired bootstrap over documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy

from .rates import by_document
from .tables import System

CELLS = 4_000_000  # numbers of one block of resamples


class Difference(NamedTuple):
    """F of the first system minus F of the second (-1 to 1)."""

    value: float
    low: float  # 95 % interval
    high: float
    p_value: float
    resamples: int


def paired_bootstrap(
    first: System, second: System, *, resamples: int = 1000, seed: int = 0
) -> Difference:
    """Draw as many documents as there are, with replacement, and score both systems on each draw.

    The p-value (two-sided) is the share of draws whose difference is at least as far from the
    observed one as that is from zero, the observed one counted in.
    """
    counts = numpy.stack([by_document(first), by_document(second)])  # (2, D, 3)
    return bootstrap_counts(counts, resamples=resamples, seed=seed)


def bootstrap_counts(counts: numpy.ndarray, *, resamples: int, seed: int) -> Difference:
    """counts: (2, D, 3) hits, misses and false alarms of two systems for each document."""
    n_docs = counts.shape[1]
    observed = float(differences_of(counts.sum(axis=1, keepdims=True))[0])
    if n_docs == 0:
        return Difference(0.0, 0.0, 0.0, 1.0, resamples)
    rng = numpy.random.default_rng(seed)
    drawn = []
    block = max(1, CELLS // n_docs)
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        times = rng.multinomial(n_docs, numpy.full(n_docs, 1 / n_docs), size=size)  # (S, D)
        drawn.append(differences_of(times @ counts))
    differences = numpy.concatenate(drawn)
    low, high = numpy.quantile(differences, [0.025, 0.975])
    # Rounding must not tell apart what is equal.
    far = numpy.abs(differences - observed) >= abs(observed) - 1e-12
    p_value = (1 + int(far.sum())) / (1 + resamples)
    return Difference(observed, float(low), float(high), p_value, resamples)


def differences_of(counts: numpy.ndarray) -> numpy.ndarray:
    """F of the first minus F of the second system, for S sums of counts (2, S, 3).  (S,)"""
    hits, misses, alarms = numpy.moveaxis(counts, -1, 0)  # (2, S) each
    first, second = 2 * hits / numpy.maximum(2 * hits + misses + alarms, 1)
    return first - second
