"""The fitted temperature and biases are the best of a grid; labels differ only if their spans do;
calibrating has an inverse."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.pipeline.scaling import Scaling, log_odds
from spacy_spanner.tuning.scaling import RAW, SPREADS, Spans, fit_scaling, log_loss, targets

SCORES = st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=1, max_size=30)
N_LABELS = 3


def no_labels(scores):
    return numpy.zeros(len(scores), dtype="int64")


def fit_common(scores, correct):
    return fit_scaling(scores, correct, no_labels(scores))


def draw(n, biases, *, seed=0):
    """Scores of labels whose log-odds of being correct are those of the score plus the label's bias."""
    rng = numpy.random.default_rng(seed)
    scores = rng.uniform(0.1, 0.95, n)
    labels = rng.integers(0, len(biases), n)
    odds = log_odds(scores) + numpy.array(biases)[labels]
    return scores, rng.uniform(size=n) < 1 / (1 + numpy.exp(-odds)), labels


@settings(max_examples=40)
@given(SCORES)
def test_the_fit_is_the_best_of_a_grid(pairs):
    scores = numpy.array([score for score, _ in pairs])
    correct = numpy.array([right for _, right in pairs])
    labels = no_labels(scores)
    found = log_loss(scores, correct, labels, fit_common(scores, correct))
    for temperature in numpy.geomspace(0.5, 10, 25):
        for bias in numpy.linspace(-6, 6, 25):
            tried = log_loss(scores, correct, labels, Scaling(temperature, bias))
            assert found <= tried + 1e-3
    assert found <= log_loss(scores, correct, labels)


@settings(max_examples=40)
@given(SCORES, st.sampled_from(SPREADS), st.integers(0, 99))
def test_no_point_nearby_has_a_smaller_loss(pairs, spread, seed):
    """The loss is convex, so this is its minimum, with and without biases of labels."""
    rng = numpy.random.default_rng(seed)
    odds = log_odds(numpy.array([score for score, _ in pairs]))
    wanted = targets(numpy.array([right for _, right in pairs]))
    labels = rng.integers(0, N_LABELS, len(odds))
    for n_labels in (0, N_LABELS):
        spans = Spans(odds, wanted, labels, n_labels, spread)
        point = spans.fit().point
        assert 0.1 <= point[0] <= 2.0
        for _ in range(20):
            other = point + rng.normal(size=len(point)) * 0.01
            other[0] = numpy.clip(other[0], 0.1, 2.0)
            assert spans.loss(point) <= spans.loss(other) + 1e-9


def test_evidence_is_that_of_the_whole_matrix_of_second_derivatives():
    scores, correct, labels = draw(60, [0.5, -1.0, 0.2])
    for spread in SPREADS:
        spans = Spans(log_odds(scores), targets(correct), labels, N_LABELS, spread)
        point, surprise = spans.fit()
        step = 1e-3
        moves = numpy.eye(len(point)) * step

        def slope(at, spans=spans, moves=moves, step=step):
            return [(spans.loss(at + move) - spans.loss(at - move)) / (2 * step) for move in moves]

        curves = numpy.array(
            [numpy.subtract(slope(point + m), slope(point - m)) / (2 * step) for m in moves]
        )
        determinant = numpy.linalg.slogdet(curves)[1] + 2 * N_LABELS * numpy.log(spread)
        assert surprise == pytest.approx(spans.loss(point) + determinant / 2, abs=1e-2)


@pytest.mark.parametrize("seed", range(3))
def test_labels_differ_only_if_their_spans_do(seed):
    alike = fit_scaling(*draw(2000, [-0.7, -0.7, -0.7], seed=seed), N_LABELS)
    assert numpy.abs(alike.label_bias or [0.0]).max() < 0.2
    assert alike.bias == pytest.approx(-0.7, abs=0.2)
    wanted = numpy.array([1.0, -1.0, 0.0])
    found = fit_scaling(*draw(2000, wanted, seed=seed), N_LABELS)
    biases = found.biases(numpy.arange(N_LABELS))
    assert biases == pytest.approx(wanted, abs=0.3)
    assert found.temperature == pytest.approx(1.0, abs=0.2)


def test_a_label_with_few_spans_hardly_moves():
    scores, correct, labels = draw(1000, [0.8, -0.8])
    rare = numpy.array([0.5, 0.5])
    scores, labels = numpy.append(scores, rare), numpy.append(labels, [2, 2])
    found = fit_scaling(scores, numpy.append(correct, [True, True]), labels, N_LABELS)
    most, least, of_rare = found.label_bias
    assert least < 0 < of_rare < most


def test_log_loss_by_hand():
    scores, correct = numpy.array([0.8, 0.6]), numpy.array([True, False])
    labels = numpy.array([0, 1])
    high, low = 2 / 3, 1 / 3  # one of each kind: Platt's targets
    expected = high * numpy.log(0.8) + (1 - high) * numpy.log(0.2)
    expected += low * numpy.log(0.6) + (1 - low) * numpy.log(0.4)
    assert log_loss(scores, correct, labels) == pytest.approx(-expected / 2)
    warm = numpy.array([1 / (1 + 0.25**0.5), 1 / (1 + (2 / 3) ** 0.5)])  # odds 4 and 1.5, roots
    assert Scaling(2.0).calibrate(scores, labels) == pytest.approx(warm)
    scaling = Scaling(2.0, 0.5, (0.0, -1.0))
    shifted = scaling.calibrate(scores, labels)
    assert log_odds(shifted) == pytest.approx(log_odds(warm) + numpy.array([0.5, -0.5]))
    found = log_loss(scores, correct, labels, scaling)
    assert found == pytest.approx(log_loss(shifted, correct, labels))
    assert fit_common(numpy.zeros(0), numpy.zeros(0, dtype=bool)) == RAW


def test_a_bias_mends_what_a_temperature_cannot():
    """Scores around .3 of which two thirds are correct: dividing the log-odds never makes that of them."""
    scores = numpy.linspace(0.2, 0.4, 300)
    correct = numpy.arange(300) % 3 > 0
    fitted = fit_common(scores, correct).calibrate(scores, no_labels(scores))
    assert fitted.mean() == pytest.approx(2 / 3, abs=0.01)


def test_a_few_spans_make_no_model_sure():
    score = numpy.array([0.5])
    fitted = fit_common(score, numpy.array([True])).calibrate(score, no_labels(score))
    assert fitted[0] == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize(
    "scaling", [Scaling(2.5), Scaling(0.7, 1.5), Scaling(1.0, -2.0, (0.5, 0.0, -1.0, 2.0))]
)
def test_calibrate_has_its_inverse_and_keeps_zero(scaling):
    scores = numpy.array([0.0, 0.01, 0.5, 0.99], dtype="float32")
    labels = numpy.arange(4)
    assert RAW.calibrate(scores, labels) is scores
    scaled = scaling.calibrate(scores, labels)
    assert scaled.dtype == scores.dtype and scaled[0] == 0
    assert scaling.raw_thresholds(scaled) == pytest.approx(scores, abs=1e-6)
    assert (scaling.raw_thresholds(numpy.ones(4, "float32")) == 1).all()


def test_one_scaling_after_another():
    scores, labels = numpy.array([0.2, 0.6, 0.9]), numpy.arange(3)
    first, second = Scaling(1.5, 0.3, (0.5, 0.0, -1.0)), Scaling(0.8, -0.4)
    expected = second.calibrate(first.calibrate(scores, labels), labels)
    joined = first.then(second.temperature, second.bias)
    assert joined.calibrate(scores, labels) == pytest.approx(expected)
