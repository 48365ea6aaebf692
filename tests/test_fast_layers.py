"""spaCy's encoder by the faster functions: the same vectors as by its own."""

import numpy
import pytest
import spacy
from spacy.ml.models import MaxoutWindowEncoder, MultiHashEmbed
from spacy.ml.models.tok2vec import build_hash_embed_cnn_tok2vec, build_Tok2Vec_model
from thinc.api import NumpyOps, chain, with_array

from spacy_spanner import fast_layers, use_fastest_layers

from .systems import TEXTS, make_examples, make_nlp

TEXT = "the cat sat on the mat , and the dog sat on the cat . "
LENGTHS = [[3], [1, 1, 1], [0, 5, 0, 2, 30], [600, 1, 700]]
ATTRS = ["NORM", "PREFIX", "SUFFIX", "SHAPE"]


def docs_of(nlp, lengths):
    words = [*(TEXT * 50).split(), *(f"w{i}" for i in range(200))]
    return [spacy.tokens.Doc(nlp.vocab, words=words[-n:] if n % 2 else words[:n]) for n in lengths]


def make_tok2vec(*, depth=4, window=1, pieces=3, attrs=ATTRS):
    model = build_Tok2Vec_model(
        MultiHashEmbed(width=16, attrs=attrs, rows=[50] * len(attrs), include_static_vectors=False),
        MaxoutWindowEncoder(width=16, window_size=window, maxout_pieces=pieces, depth=depth),
    )
    nlp = spacy.blank("en")
    model.initialize(X=docs_of(nlp, [4]))
    random = numpy.random.RandomState(0)
    for node in model.walk():  # biases and norms are not 0 and 1
        for name in node.param_names:
            param = node.get_param(name)
            node.set_param(name, param + random.uniform(-0.3, 0.3, param.shape).astype("float32"))
    return nlp, model


def assert_equal(left, right):
    assert [part.shape for part in left] == [part.shape for part in right]
    for one, two in zip(left, right, strict=True):
        assert two.dtype == "float32"
        numpy.testing.assert_allclose(one, two, atol=2e-5)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(
    "options",
    [{}, {"depth": 1}, {"depth": 2, "window": 2}, {"pieces": 1}, {"pieces": 2, "depth": 3}],
)
def test_vectors_are_those_of_thinc(lengths, options):
    nlp, model = make_tok2vec(**options)
    docs = docs_of(nlp, lengths)
    expected = model.predict(docs)
    stored = model.to_bytes()
    assert fast_layers.use_fast_layers(model) == 2
    assert_equal(expected, model.predict(docs))
    assert model.to_bytes() == stored
    assert_equal(expected, model.copy().predict(docs))


@pytest.mark.parametrize("attrs", [["NORM", "SHAPE"], ["ORTH", "PREFIX", "SHAPE"]])
def test_other_features(attrs):
    nlp, model = make_tok2vec(attrs=attrs)
    docs = docs_of(nlp, [7, 40])
    expected = model.predict(docs)
    assert fast_layers.use_fast_layers(model) == 2
    assert_equal(expected, model.predict(docs))


def test_words_that_are_mixed_to_the_same_number(monkeypatch):
    nlp, model = make_tok2vec()
    docs = docs_of(nlp, [40])
    expected = model.predict(docs)
    fast_layers.use_fast_layers(model)
    monkeypatch.setattr(fast_layers, "MIX", fast_layers.MIX * 0)
    assert_equal(expected, model.predict(docs))


def test_no_tokens():
    nlp, model = make_tok2vec()
    fast_layers.use_fast_layers(model)
    (found,) = model.predict(docs_of(nlp, [0]))
    assert len(found) == 0


def test_training_is_that_of_thinc_and_prediction_follows_the_weights():
    nlp, slow = make_tok2vec()
    fast = slow.copy()
    fast_layers.use_fast_layers(fast)
    docs = docs_of(nlp, [5, 9])
    for model in (slow, fast):
        found, backprop = model.begin_update(docs)
        backprop([numpy.ones_like(part) for part in found])
        for node in model.walk():
            for name in node.param_names:
                if node.has_grad(name):
                    node.set_param(name, node.get_param(name) - 0.01 * node.get_grad(name))
    assert_equal(slow.predict(docs), fast.predict(docs))


def test_what_is_not_known_stays():
    """No padding between documents, static vectors, other layers."""
    encoder = MaxoutWindowEncoder(width=16, window_size=1, maxout_pieces=3, depth=2)
    assert fast_layers.use_fast_layers(with_array(encoder.layers[0], pad=1)) == 0
    static = MultiHashEmbed(width=16, attrs=ATTRS, rows=[9] * 4, include_static_vectors=True)
    assert fast_layers.use_fast_layers(static) == 0
    assert fast_layers.use_fast_layers(chain(static, encoder)) == 1
    assert fast_layers.use_fast_layers(encoder) == 0  # already replaced


def test_a_whole_pipeline():
    nlp = make_nlp("global_pointer")
    nlp.initialize(lambda: make_examples(nlp))
    expected = [doc.tensor for doc in nlp.pipe(TEXTS)]
    scores = [next(iter(doc.spans.values())).attrs["scores"] for doc in nlp.pipe(TEXTS)]
    assert use_fastest_layers(nlp) > 0
    assert_equal(expected, [doc.tensor for doc in nlp.pipe(TEXTS)])
    found = [next(iter(doc.spans.values())).attrs["scores"] for doc in nlp.pipe(TEXTS)]
    for one, two in zip(scores, found, strict=True):
        numpy.testing.assert_allclose(one, two, atol=1e-4)


def test_hash_embed_cnn_of_the_configs():
    model = build_hash_embed_cnn_tok2vec(
        width=32,
        depth=4,
        embed_size=200,
        window_size=1,
        maxout_pieces=3,
        subword_features=True,
        pretrained_vectors=None,
    )
    assert fast_layers.use_fast_layers(model) == 2
    assert isinstance(model.ops, NumpyOps)
