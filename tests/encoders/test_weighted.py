"""Components of spaCy and ours that teach a shared encoder by weights, as in a bundle."""

import numpy
import pytest
import spacy
from spacy.util import load_model_from_config
from thinc.api import Model

from spacy_spanner.encoders.weighted import build_weighted_encoder
from spacy_spanner.training_config import join_config

from ..systems import make_examples

LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}


def bundle(other, alpha):
    """A component of spaCy that weighs alpha, and SeqNER, on one encoder."""
    config = join_config("seq_ner", "hash", output="ents").interpolate()
    config["components"][other] = join_config(other, "hash").interpolate()["components"][other]
    for name, weight in {"seq_ner": 1 - alpha, other: alpha}.items():
        block = {"@architectures": "spacy-spanner.WeightedEncoder.v1", "weight": weight}
        config["components"][name]["model"]["tok2vec"] = {**block, "tok2vec": LISTENER}
    config["nlp"]["pipeline"] = ["tok2vec", other, "seq_ner"]
    return load_model_from_config(config, auto_fill=True)


@pytest.mark.parametrize("other", ["ner", "spancat"])
def test_components_of_spacy_and_ours_learn_on_one_encoder(other):
    nlp = bundle(other, 0.1)
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    losses = [nlp.update(examples, sgd=optimizer, losses={}) for _ in range(40)]
    assert losses[-1]["seq_ner"] < losses[0]["seq_ner"]
    nlp.remove_pipe("seq_ner")
    found = [nlp(example.text) for example in examples]
    assert any(doc.ents or doc.spans.get("sc") for doc in found)


def test_vectors_stay_and_gradients_are_weighed():
    def forward(model, docs, is_train):
        return [numpy.ones((len(doc), 2), dtype="f") for doc in docs], lambda d_vectors: d_vectors

    encoder = build_weighted_encoder(Model("encoder", forward, dims={"nO": 2}), 0.25)
    encoder.initialize()
    docs = [spacy.blank("en")(text) for text in ("a b", "c")]
    vectors, backprop = encoder(docs, is_train=True)
    assert encoder.get_dim("nO") == 2 and [own.tolist() for own in vectors] == [
        [[1, 1]] * 2,
        [[1, 1]],
    ]
    assert [own.tolist() for own in backprop(vectors)] == [[[0.25] * 2] * 2, [[0.25] * 2]]


def test_weight_must_be_positive():
    with pytest.raises(ValueError, match="weight"):
        build_weighted_encoder(Model("encoder", lambda *_: None), 0.0)
