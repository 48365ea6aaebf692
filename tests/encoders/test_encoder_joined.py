"""What goes through the joined encoder, forward and back."""

from __future__ import annotations

from itertools import pairwise
from typing import List

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from thinc.api import Model

from spacy_spanner.encoders.characters import build_char_cnn
from spacy_spanner.encoders.joined import build_joined_encoder


def given_vectors(width: int, *, dim: bool, seed: int = 0) -> Model:
    """A part like a transformer listener: vectors come from outside, documents without tokens have
    no width, and the gradient is only taken down."""

    def forward(model, docs: List[Doc], is_train):
        vectors = [model.attrs["given"][token.orth % 97] for doc in docs for token in doc]
        flat = numpy.array(vectors, dtype="float32").reshape(-1, width)
        bounds = numpy.cumsum([0] + [len(doc) for doc in docs])
        outputs = [flat[a:b] if b > a else numpy.zeros((0, 0), "f") for a, b in pairwise(bounds)]

        def backprop(d_outputs):
            for d, out in zip(d_outputs, outputs, strict=True):
                assert d.shape == out.shape and d.dtype == out.dtype
                assert d.flags.c_contiguous
            model.attrs["taken"] = d_outputs
            return []

        return outputs, backprop

    given = numpy.random.default_rng(seed).normal(size=(97, width)).astype("float32")
    dims = {"nO": width} if dim else {}
    return Model("given", forward, dims=dims, attrs={"given": given})


TEXTS = ["a b c", "", "d", "a e f g h"]


def test_parts_stand_side_by_side(make_docs):
    docs = make_docs(*TEXTS)
    parts = [given_vectors(3, dim=True), build_char_cnn(filters=4), given_vectors(2, dim=False)]
    model = build_joined_encoder(*parts)
    model.initialize(docs)
    assert model.get_dim("nO") == 9
    singles = [part.predict(docs) for part in parts]
    for i, vectors in enumerate(model.predict(docs)):
        if len(docs[i]):
            assert_array_equal(vectors, numpy.concatenate([s[i] for s in singles], axis=1))
        else:
            assert vectors.shape == (0, 9)


def test_each_part_gets_its_columns_of_the_gradient(make_docs):
    docs = make_docs(*TEXTS)
    first, second = given_vectors(3, dim=True), given_vectors(2, dim=False)
    model = build_joined_encoder(first, second)
    model.initialize(docs)
    outputs, backprop = model.begin_update(docs)
    d_outputs = [numpy.random.default_rng(1).normal(size=v.shape).astype("f") for v in outputs]
    backprop(d_outputs)
    for doc, d, one, two in zip(
        docs, d_outputs, first.attrs["taken"], second.attrs["taken"], strict=True
    ):
        if len(doc):
            assert_array_equal(one, d[:, :3])
            assert_array_equal(two, d[:, 3:])


def test_gradient_through_the_lstm_is_the_slope(make_docs):
    docs = make_docs(*TEXTS)
    part = given_vectors(3, dim=True)
    model = build_joined_encoder(part, lstm_width=4)
    model.initialize(docs)
    outputs, backprop = model.begin_update(docs)
    weights = [numpy.random.default_rng(1).normal(size=v.shape).astype("f") for v in outputs]
    backprop(weights)
    row = docs[0][1].orth % 97  # "b", which occurs once
    gradient = part.attrs["taken"][0][1]

    def loss() -> float:
        found = model.predict(docs)
        return sum(float((v.astype("d") * w).sum()) for v, w in zip(found, weights, strict=True))

    for i in range(3):
        losses = []
        for step in (1e-2, -2e-2):
            part.attrs["given"][row, i] += step
            losses.append(loss())
        part.attrs["given"][row, i] += 1e-2
        assert (losses[0] - losses[1]) / 2e-2 == pytest.approx(gradient[i], abs=2e-3)


def test_lstm_reads_each_document_by_itself(make_docs):
    docs = make_docs("a b", "c d")
    model = build_joined_encoder(given_vectors(3, dim=True), lstm_width=4)
    model.initialize(docs)
    before = model.predict(docs)
    after = model.predict(make_docs("a b", "c e"))
    assert_allclose(before[0], after[0], atol=1e-6)
    changed = numpy.abs(before[1][0] - after[1][0]) > 1e-4
    assert changed.tolist() == [False, False, True, True]  # one direction sees the next word


def test_dropout(make_docs):
    docs = make_docs(*TEXTS)
    model = build_joined_encoder(given_vectors(50, dim=True), dropout=0.5)
    model.initialize(docs)
    plain, (dropped, *_) = model.predict(docs)[0], model.begin_update(docs)[0]
    assert 0.25 < (dropped == 0).mean() < 0.75
    assert_allclose(dropped[dropped != 0], 2 * plain[dropped != 0])


def test_changed_part_is_refused(make_docs):
    docs = make_docs(*TEXTS)
    model = build_joined_encoder(given_vectors(3, dim=True))
    model.initialize(docs)
    model.replace_node(model.layers[0], given_vectors(5, dim=True))
    with pytest.raises(ValueError, match="width 5"):
        model.predict(docs)


@pytest.mark.parametrize("options", [{"lstm_width": 5}, {"lstm_width": 0}])
def test_impossible_width_is_refused(options):
    with pytest.raises(ValueError, match="lstm_width"):
        build_joined_encoder(given_vectors(3, dim=True), **options)


def test_no_parts_are_refused():
    with pytest.raises(ValueError, match="parts"):
        build_joined_encoder()


def test_a_sentence_by_itself_has_the_vectors_it_has_in_a_document(make_docs):
    """Also behind an empty document; boundaries that are marked count before those of the rules."""
    texts = ["Ada came from Torvik .", "Nobody left .", "Was it the boat or Calder ?"]
    model = build_joined_encoder(given_vectors(3, dim=True), lstm_width=8, by_sentence=True)
    alone = make_docs(*texts)
    model.initialize(alone)
    expected = numpy.concatenate(model.predict(alone))
    (marked,) = make_docs(" ".join(texts))
    for token in marked:
        token.is_sent_start = token.i in (0, 5, 8)
    assert_allclose(model.predict([*make_docs(""), marked])[1], expected, atol=1e-6)
    (found,) = make_docs(" ".join(texts * 4))  # rules cut nothing shorter
    assert_allclose(model.predict([found])[0], numpy.tile(expected, (4, 1)), atol=1e-6)
    states, backprop = model.begin_update([found])
    assert_allclose(states[0], numpy.tile(expected, (4, 1)), atol=1e-6)
    assert backprop([numpy.ones_like(states[0])]) == []
