"""Calibration, the bootstrap test and lists of errors, by hand and against slow loops."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.analysis.calibration import calibration, fit_temperature, log_loss, reliability
from spacy_spanner.analysis.confident import CONTEXT, confident_errors, shorten
from spacy_spanner.analysis.significance import bootstrap_counts, paired_bootstrap
from spacy_spanner.pipeline.outputs import calibrate

from .cases import OTHER, PRED, make_systems

SCORES = st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=1, max_size=30)


def test_calibration_by_hand():
    """right .9 .8 .3, wrong .7 .95 .55; ten bins."""
    [system] = make_systems(PRED)
    curve = calibration(system)
    told = [(own.size, round(own.confidence, 3), own.accuracy) for own in curve.bins]
    # .3 | .55 | .7 | .8 | .9 | .95: an upper end belongs to its bin
    assert told == [(1, 0.3, 1), (1, 0.55, 0), (1, 0.7, 0), (1, 0.8, 1), (1, 0.9, 1), (1, 0.95, 0)]
    assert curve.error == pytest.approx((0.7 + 0.55 + 0.7 + 0.2 + 0.1 + 0.95) / 6)
    assert curve.size == 6 and curve.accuracy == 0.5
    assert curve.confidence == pytest.approx(4.2 / 6)
    two = reliability(system.pred.scores, system.correct, n_bins=2)
    assert [own.size for own in two.bins] == [1, 5]
    assert two.error == pytest.approx((0.7 + 5 * abs(3.9 / 5 - 2 / 5)) / 6)


def test_no_confidences_no_calibration():
    without = [[span[:3] for span in own] for own in PRED]
    assert calibration(make_systems(without)[0]) is None


@settings(max_examples=40, deadline=None)
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


def f_score(counts):
    hits, misses, alarms = counts
    return 2 * hits / max(2 * hits + misses + alarms, 1)


def test_bootstrap_equals_a_loop():
    rng = numpy.random.default_rng(3)
    counts = rng.integers(0, 4, size=(2, 6, 3))
    result = bootstrap_counts(counts, resamples=200, seed=5)
    observed = f_score(counts[0].sum(axis=0)) - f_score(counts[1].sum(axis=0))
    draws = numpy.random.default_rng(5).multinomial(6, [1 / 6] * 6, size=200)
    differences = []
    for times in draws:
        docs = [doc for doc, n in enumerate(times) for _ in range(n)]
        both = [f_score(sum(own[doc] for doc in docs)) for own in counts]
        differences.append(both[0] - both[1])
    far = sum(abs(d - observed) >= abs(observed) for d in differences)
    assert result.value == pytest.approx(observed)
    assert result.p_value == pytest.approx((1 + far) / 201)
    assert result.low == pytest.approx(numpy.quantile(differences, 0.025))
    assert result.high == pytest.approx(numpy.quantile(differences, 0.975))


def test_bootstrap_of_equal_and_of_clearly_different_systems():
    first, same = make_systems(PRED, PRED)
    assert paired_bootstrap(first, same, resamples=50)[:4] == (0.0, 0.0, 0.0, 1.0)
    right, wrong = [[5, 0, 0]] * 30, [[1, 4, 4]] * 30
    clear = bootstrap_counts(numpy.array([right, wrong]), resamples=99, seed=0)
    # every draw is the same: no draw is as far from the observed difference as that from 0
    assert clear.value == pytest.approx(0.8) and clear.p_value == 1 / 100
    turned = bootstrap_counts(numpy.array([wrong, right]), resamples=99, seed=0)
    assert turned.value == -clear.value and turned.p_value == clear.p_value
    first, other = make_systems(PRED, OTHER)
    assert paired_bootstrap(first, other).value == pytest.approx(6 / 11 - 4 / 7)
    assert bootstrap_counts(numpy.zeros((2, 0, 3), "int64"), resamples=9, seed=0).p_value == 1.0


def test_confident_errors():
    [system] = make_systems(PRED)
    errors = confident_errors(system)
    told = [(own["kind"], own["label"], own["text"], own["score"]) for own in errors]
    assert told == [
        ("boundary", "LOC", "Rome fell", 0.95),
        ("type", "PER", "Rome", 0.7),
        ("spurious", "PER", "here", 0.55),
    ]
    assert errors[0]["gold"] == [{"text": "Rome", "label": "LOC"}]
    assert errors[1]["before"] == "Ann met the Bank of Rome in " and errors[1]["after"] == " today"
    assert errors[2]["gold"] == [] and errors[2]["document"] == 2
    assert [own["label"] for own in confident_errors(system, limit=1)] == ["LOC"]
    without = [[span[:3] for span in own] for own in PRED]
    assert confident_errors(make_systems(without)[0])[0]["score"] is None


def test_context_is_cut_between_words():
    text = "word\n" * 40
    assert shorten(text, keep="end").startswith("… word ") and len(shorten(text, keep="end")) <= (
        CONTEXT + 2
    )
    assert shorten(text, keep="start").endswith("word …")
    assert shorten("short ", keep="end") == "short "
