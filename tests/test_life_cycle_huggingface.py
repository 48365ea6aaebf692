"""The promises of `test_life_cycle.py` with every system over a tiny transformer."""

import pytest

from . import test_life_cycle as laws
from .encoders.tiny_transformers import WIDTH, save
from .systems import SYSTEMS, make_examples, make_nlp, train

pytestmark = pytest.mark.huggingface


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("bert"), "bert")


@pytest.fixture(scope="module", params=SYSTEMS)
def nlp(request, folder):
    encoder = {
        "@architectures": "spacy-spanner.HuggingFaceEncoder.v1",
        "name": str(folder),
        "width": WIDTH,
    }
    nlp = make_nlp(request.param, output="both", tok2vec=encoder)
    train(nlp, make_examples(nlp), steps=40)
    nlp.get_pipe(request.param).cfg["threshold"] = 0.05  # a random transformer learns slowly
    return nlp


def test_finds_something(nlp):
    assert any(doc.spans["sc"] for doc in nlp.pipe(laws.TEXTS))


test_scores_are_probabilities_of_each_span = laws.test_scores_are_probabilities_of_each_span
test_batch_and_order_do_not_matter = laws.test_batch_and_order_do_not_matter
test_empty_documents_get_empty_groups = laws.test_empty_documents_get_empty_groups
test_pickle_and_copy = laws.test_pickle_and_copy
test_worker_processes = laws.test_worker_processes
test_updates_with_empty_documents = laws.test_updates_with_empty_documents
test_error_handler_sees_failing_batches = laws.test_error_handler_sees_failing_batches
test_as_tuples_and_disabled = laws.test_as_tuples_and_disabled
test_results_survive_a_docbin = laws.test_results_survive_a_docbin
test_config_round_trip = laws.test_config_round_trip
test_sourced_component_predicts_the_same = laws.test_sourced_component_predicts_the_same


def test_disk(nlp, tmp_path):
    expected = laws.predictions(nlp)
    nlp.to_disk(tmp_path)
    assert laws.predictions(laws.spacy.load(tmp_path)) == expected
