"""Scores, calibration and the bootstrap test, by hand, by spaCy and against slow loops."""

import numpy
import pytest
from hypothesis import given, settings
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_spanner.analysis import scores
from spacy_spanner.analysis.scores import Counts
from spacy_spanner.analysis.systems import read_systems

from .cases import CORPORA, GOLD, OTHER, PRED, TEXTS, VOCAB, make_doc, make_systems, random_systems


@pytest.fixture
def system():
    return make_systems(PRED)[0]


def test_scores(system):
    assert scores.overall(system) == Counts(3, 2, 3)
    assert scores.unlabelled(system) == Counts(4, 1, 2)  # the type error has the right offsets
    by_label = scores.by_label(system)
    assert by_label == {"LOC": Counts(1, 2, 1), "ORG": Counts(1, 0, 0), "PER": Counts(1, 0, 2)}
    assert list(by_label) == ["LOC", "ORG", "PER"]
    assert scores.macro_f(by_label) == pytest.approx((2 / 5 + 1 + 2 / 4) / 3)
    assert scores.by_length(system) == [
        (1, Counts(2, 2, 2)),
        (2, Counts(0, 0, 1)),
        (3, Counts(1, 0, 0)),
    ]
    assert scores.by_document(system).tolist() == [[3, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert len(system.corpus.docs) == 3  # the document without annotation is left out


@settings(max_examples=25)
@given(CORPORA)
def test_scores_are_those_of_spacy(corpora):
    [system] = random_systems(corpora)
    examples = []
    for gold, pred in corpora:
        docs = [make_doc("u v w x y z", sorted(spans)) for spans in (pred, gold)]
        examples.append(Example(*docs))
    theirs = Scorer.score_spans(
        examples, "spans_sc", getter=lambda doc, _: doc.spans["sc"], allow_overlap=True
    )
    ours = scores.overall(system)
    if ours.tp:
        assert ours.f_score == pytest.approx(theirs["spans_sc_f"])
        assert ours.precision == pytest.approx(theirs["spans_sc_p"])


def test_other_tokens_do_not_matter():
    """Predictions are compared by characters; lengths are counted in gold tokens."""
    gold = make_doc("New York-based firm", [(0, 3, "ORG")])
    pred = Doc(VOCAB, words=["New", "York", "-", "based", "firm"])
    pred = Doc(VOCAB, words=[t.text for t in pred], spaces=[True, False, False, True, True])
    pred.spans["sc"] = [Span(pred, 0, 5, label="ORG"), Span(pred, 0, 2, label="LOC")]
    [system] = read_systems(["x"], [[pred]], [gold], output="spans", spans_key="sc")
    assert scores.overall(system) == Counts(1, 0, 1)
    assert system.pred.tokens.tolist() == [[0, 2], [0, 3]]


def test_cases_are_as_described():
    assert [len(text.split()) for text in TEXTS[:3]] == [9, 2, 2] and len(GOLD) == len(PRED)


def test_calibration_by_hand():
    """right .9 .8 .3, wrong .7 .95 .55; ten bins."""
    [system] = make_systems(PRED)
    curve = scores.system_calibration(system)
    found = [(own.size, round(own.confidence, 3), own.accuracy) for own in curve.bins]
    # .3 | .55 | .7 | .8 | .9 | .95: an upper end belongs to its bin
    assert found == [(1, 0.3, 1), (1, 0.55, 0), (1, 0.7, 0), (1, 0.8, 1), (1, 0.9, 1), (1, 0.95, 0)]
    assert curve.error == pytest.approx((0.7 + 0.55 + 0.7 + 0.2 + 0.1 + 0.95) / 6)
    assert curve.size == 6 and curve.accuracy == 0.5
    assert curve.confidence == pytest.approx(4.2 / 6)
    two = scores.calibration(system.pred.scores, system.correct, n_bins=2)
    assert [own.size for own in two.bins] == [1, 5]
    assert two.error == pytest.approx((0.7 + 5 * abs(3.9 / 5 - 2 / 5)) / 6)


def test_the_error_of_perfect_confidences_is_that_of_chance():
    rng = numpy.random.default_rng(0)
    confidences = rng.beta(3, 1, size=600)
    drawn = rng.random((300, 600)) < confidences
    errors = [scores.calibration(confidences, correct).error for correct in drawn]
    chance = scores.calibration(confidences, drawn[0]).chance
    assert 0.02 < chance < 0.05 and chance == pytest.approx(numpy.mean(errors), rel=0.05)
    assert scores.calibration(numpy.zeros(5), numpy.zeros(5, dtype=bool)).chance == 0


def test_no_confidences_no_calibration():
    without = [[span[:3] for span in own] for own in PRED]
    assert scores.system_calibration(make_systems(without)[0]) is None


def f_score(counts):
    tp, fn, fp = counts
    return 2 * tp / max(2 * tp + fn + fp, 1)


def test_bootstrap_equals_a_loop():
    rng = numpy.random.default_rng(3)
    counts = rng.integers(0, 4, size=(2, 6, 3))
    result = scores.bootstrap_counts(counts, resamples=200, seed=5)
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
    assert scores.paired_bootstrap(first, same, resamples=50)[:4] == (0.0, 0.0, 0.0, 1.0)
    right, wrong = [[5, 0, 0]] * 30, [[1, 4, 4]] * 30
    clear = scores.bootstrap_counts(numpy.array([right, wrong]), resamples=99, seed=0)
    # every draw is the same: no draw is as far from the observed difference as that from 0
    assert clear.value == pytest.approx(0.8) and clear.p_value == 1 / 100
    turned = scores.bootstrap_counts(numpy.array([wrong, right]), resamples=99, seed=0)
    assert turned.value == -clear.value and turned.p_value == clear.p_value
    first, other = make_systems(PRED, OTHER)
    assert scores.paired_bootstrap(first, other).value == pytest.approx(6 / 11 - 4 / 7)
    assert (
        scores.bootstrap_counts(numpy.zeros((2, 0, 3), "int64"), resamples=9, seed=0).p_value == 1.0
    )
