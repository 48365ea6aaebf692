"""The fitted temperature is the best of a grid; calibrating has an inverse."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.pipeline.outputs import calibrate
from spacy_spanner.tuning.temperature import fit_temperature, log_loss

SCORES = st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=1, max_size=30)


@settings(max_examples=40)
@given(SCORES)
def test_temperature_is_the_best_of_a_grid(pairs):
    scores = numpy.array([score for score, _ in pairs])
    correct = numpy.array([right for _, right in pairs])
    found = fit_temperature(scores, correct)
    losses = [log_loss(scores, correct, t) for t in numpy.geomspace(0.5, 10, 200)]
    assert log_loss(scores, correct, found) <= min(losses) + 1e-3
    assert log_loss(scores, correct, found) <= log_loss(scores, correct)


def test_log_loss_by_hand():
    scores, correct = numpy.array([0.8, 0.6]), numpy.array([True, False])
    assert log_loss(scores, correct) == pytest.approx(-(numpy.log(0.8) + numpy.log(0.4)) / 2)
    warm = numpy.array([1 / (1 + 0.25**0.5), 1 / (1 + (2 / 3) ** 0.5)])  # odds 4 and 1.5, roots
    expected = -(numpy.log(warm[0]) + numpy.log(1 - warm[1])) / 2
    assert log_loss(scores, correct, 2.0) == pytest.approx(expected)
    assert calibrate(scores, 2.0) == pytest.approx(warm)
    assert fit_temperature(numpy.zeros(0), numpy.zeros(0, dtype=bool)) == 1.0


def test_calibrate_has_its_inverse_and_keeps_zero():
    scores = numpy.array([0.0, 0.01, 0.5, 0.99], dtype="float32")
    assert calibrate(scores, 1.0) is scores
    warm = calibrate(scores, 2.5)
    assert warm.dtype == scores.dtype and warm[0] == 0 and warm[2] == 0.5
    assert calibrate(warm, 1 / 2.5) == pytest.approx(scores, abs=1e-6)
