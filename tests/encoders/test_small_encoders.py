"""The encoders of the small configs, in a shared `tok2vec` component."""

from __future__ import annotations

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.vectors import Vectors
from thinc.api import Config, fix_random_seed

from spacy_spanner.encoders.small import build_hash_vectors, build_lstm_encoder
from spacy_spanner.training_config import complete, join_config

from ..systems import make_examples

LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 256, "upstream": "*"}
TEXTS = ["The CAT sat", "", "a", "the cat in 1995 , the cat sat in Moscow"]


@pytest.fixture
def vectors_folder(tmp_path):
    nlp = spacy.blank("en")
    words = ["harbour", "torvik", "calder"]
    data = numpy.random.default_rng(0).normal(size=(3, 8)).astype("float32")
    keys = [nlp.vocab.strings.add(word) for word in words]
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=keys)
    nlp.to_disk(tmp_path / "vectors")
    return tmp_path / "vectors"


@pytest.mark.parametrize("build", [build_hash_vectors, build_lstm_encoder])
def test_vectors_do_not_depend_on_the_batch(make_docs, build):
    docs = make_docs(*TEXTS)
    model = build(width=12)
    model.initialize(docs)
    together = model.predict(docs)
    for doc, vectors in zip(docs, together, strict=True):
        assert vectors.shape == (len(doc), 12)
        assert_allclose(model.predict([doc])[0], vectors, atol=1e-5)


def test_capitals_find_their_vector(make_docs, vocab):
    """spaCy's `StaticVectors` finds nothing for a word that is written in another way."""
    words = build_hash_vectors(width=12).layers[0].layers[1]
    docs = make_docs("The CAT 2024 Haus")
    words.initialize(docs)
    expected = vocab.vectors.get_batch(["the", "cat", "0000", "Haus"])
    assert_array_equal(words.predict(docs)[0], expected)


def test_a_word_is_found_as_written_first():
    vocab = spacy.blank("en").vocab
    data = numpy.eye(2, dtype="float32")
    keys = [vocab.strings.add(word) for word in ("apple", "Apple")]
    vocab.vectors = Vectors(strings=vocab.strings, data=data, keys=keys)
    words = build_hash_vectors(width=12).layers[0].layers[1]
    docs = [Doc(vocab, words=["Apple", "apple", "APPLE"])]
    words.initialize(docs)
    assert_array_equal(words.predict(docs)[0], data[[1, 0, 0]])


def test_static_vectors_must_be_there():
    doc = Doc(spacy.blank("en").vocab, words=["word"])
    with pytest.raises(ValueError, match="S240"):
        build_hash_vectors(width=12).initialize([doc])
    build_lstm_encoder(width=12).initialize([doc])


@pytest.mark.parametrize("option", ["feature_width", "char_filters"])
def test_parts_can_be_left_out(make_docs, option):
    model = build_lstm_encoder(width=12, **{option: 0})
    model.initialize(make_docs(*TEXTS))
    assert len(model.layers) == 2 and model.predict(make_docs("the cat"))[0].shape == (2, 12)
    with pytest.raises(ValueError, match=option):
        build_lstm_encoder(**{option: -1})


def config_of(system, encoder, tmp_path, vectors=None) -> Config:
    """A complete config over a corpus of the examples of the tests."""
    blank = spacy.blank("en")
    path = tmp_path / "train.spacy"
    DocBin(docs=[eg.reference for eg in make_examples(blank)] * 2).to_disk(path)
    config = join_config(system, encoder)
    config["paths"].update(train=str(path), dev=str(path), vectors=vectors and str(vectors))
    return complete(config)


@pytest.mark.parametrize("with_vectors", [True, False])
@pytest.mark.parametrize("system", ["global_pointer", "ner"])
def test_lstm_is_shared_trained_and_loaded(tmp_path, vectors_folder, system, with_vectors):
    fix_random_seed(0)
    vectors = vectors_folder if with_vectors else None
    nlp = init_nlp(config_of(system, "lstm", tmp_path, vectors))
    other = {"@architectures": "spacy-spanner.SeqNER.v1", "tok2vec": LISTENER}
    nlp.add_pipe("seq_ner", config={"model": other})
    examples = make_examples(nlp)
    nlp.get_pipe("seq_ner").initialize(lambda: examples, nlp=nlp)
    table = nlp.get_pipe("tok2vec").model.layers[0].shims[0].module
    before = table.rows.detach().clone()
    assert len(before) > 5  # words of the corpus have rows, whoever listens
    optimizer = nlp.create_optimizer()
    first = nlp.update(examples, sgd=optimizer, losses={})
    for _ in range(20):
        losses = nlp.update(examples, sgd=optimizer, losses={})
    assert losses[system] < first[system] and losses["seq_ner"] < first["seq_ner"]
    assert (table.rows != before).any()
    text = "Calder met Lind in Torvik."
    expected = nlp(text)
    nlp.to_disk(tmp_path / "model")
    found = spacy.load(tmp_path / "model")(text)
    assert_allclose(found.tensor, expected.tensor, atol=1e-5)
    assert [(s.text, s.label_) for s in found.ents] == [(s.text, s.label_) for s in expected.ents]


def test_vectors_config_trains_with_vectors(tmp_path, vectors_folder):
    nlp = init_nlp(config_of("ner", "vectors", tmp_path, vectors_folder))
    examples = make_examples(nlp)
    nlp.update(examples, sgd=nlp.create_optimizer())
    assert nlp("Calder met Lind.").tensor.shape[1] == 128
