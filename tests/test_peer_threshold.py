"""The threshold that the benchmark fits for spaCy's span categorizer."""

import numpy
import pytest
import spacy
from thinc.api import fix_random_seed

from benchmarks import scoring
from benchmarks.peer_threshold import LOWEST, best_threshold, fitted_threshold

from .systems import make_examples, train


@pytest.mark.parametrize(
    "scores, correct, n_gold, expected",
    [
        ([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], 2, 0.5),  # between the last right and the first wrong
        ([0.9, 0.5, 0.5, 0.1], [1, 0, 1, 0], 2, 0.3),  # equal scores are taken together
        ([0.9, 0.8], [1, 1], 4, 0.41),  # all
        ([0.9, 0.8], [0, 0], 4, LOWEST),
        ([], [], 4, LOWEST),
    ],
)
def test_threshold_of_the_best_f(scores, correct, n_gold, expected):
    found = best_threshold(numpy.array(scores), numpy.array(correct, dtype=bool), n_gold)
    assert found == pytest.approx(expected)


def test_the_threshold_of_spancat_is_fitted():
    """Hardly trained, it scores everything below one half."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("spancat")
    examples = make_examples(nlp)
    train(nlp, examples, steps=5)
    docs = [eg.reference for eg in examples]
    found = scoring.score_pairs(docs, scoring.predict(nlp, docs))["f"]
    fitted = scoring.fitted_scores(nlp, docs)["fitted"]["f"]
    assert fitted >= found and fitted > 0
    cfg = nlp.get_pipe("spancat").cfg
    with fitted_threshold(nlp, docs) as is_fitted:
        assert is_fitted and cfg["threshold"] != 0.5
    assert cfg["threshold"] == 0.5  # as it was
