"""The fitted temperature and bias are the best of a grid; calibrating has an inverse."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.pipeline.outputs import calibrate, log_odds, raw_thresholds
from spacy_spanner.tuning.scaling import Scaling, fit_scaling, log_loss

SCORES = st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=1, max_size=30)


@settings(max_examples=40)
@given(SCORES)
def test_the_fit_is_the_best_of_a_grid(pairs):
    scores = numpy.array([score for score, _ in pairs])
    correct = numpy.array([right for _, right in pairs])
    found = log_loss(scores, correct, fit_scaling(scores, correct))
    for temperature in numpy.geomspace(0.5, 10, 25):
        for bias in numpy.linspace(-6, 6, 25):
            assert found <= log_loss(scores, correct, Scaling(temperature, bias)) + 1e-3
    assert found <= log_loss(scores, correct)


def test_log_loss_by_hand():
    scores, correct = numpy.array([0.8, 0.6]), numpy.array([True, False])
    high, low = 2 / 3, 1 / 3  # one of each kind: Platt's targets
    expected = high * numpy.log(0.8) + (1 - high) * numpy.log(0.2)
    expected += low * numpy.log(0.6) + (1 - low) * numpy.log(0.4)
    assert log_loss(scores, correct) == pytest.approx(-expected / 2)
    warm = numpy.array([1 / (1 + 0.25**0.5), 1 / (1 + (2 / 3) ** 0.5)])  # odds 4 and 1.5, roots
    assert calibrate(scores, 2.0) == pytest.approx(warm)
    shifted = calibrate(scores, 2.0, 0.5)
    assert log_odds(shifted) == pytest.approx(log_odds(warm) + 0.5)
    assert log_loss(scores, correct, Scaling(2.0, 0.5)) == pytest.approx(log_loss(shifted, correct))
    assert fit_scaling(numpy.zeros(0), numpy.zeros(0, dtype=bool)) == Scaling()


def test_a_bias_mends_what_a_temperature_cannot():
    """Scores around .3 of which two thirds are correct: dividing the log-odds never makes that of them."""
    scores = numpy.linspace(0.2, 0.4, 300)
    correct = numpy.arange(300) % 3 > 0
    fitted = calibrate(scores, *fit_scaling(scores, correct))
    assert fitted.mean() == pytest.approx(2 / 3, abs=0.01)


def test_a_few_spans_make_no_model_sure():
    fitted = calibrate(numpy.array([0.5]), *fit_scaling(numpy.array([0.5]), numpy.array([True])))
    assert fitted[0] == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize("temperature,bias", [(2.5, 0.0), (0.7, 1.5), (1.0, -2.0)])
def test_calibrate_has_its_inverse_and_keeps_zero(temperature, bias):
    scores = numpy.array([0.0, 0.01, 0.5, 0.99], dtype="float32")
    assert calibrate(scores, 1.0) is scores
    scaled = calibrate(scores, temperature, bias)
    assert scaled.dtype == scores.dtype and scaled[0] == 0
    assert raw_thresholds(scaled, temperature, bias) == pytest.approx(scores, abs=1e-6)
    assert raw_thresholds(numpy.ones(1, "float32"), temperature, bias) == 1
