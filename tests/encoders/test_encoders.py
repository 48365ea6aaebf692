"""Laws that hold for every encoder block."""

from __future__ import annotations

import pickle
from typing import Callable, Dict, List

import numpy
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy import registry
from thinc.api import Adam, Model

from spacy_spanner.encoders.characters import build_char_bilstm, build_char_cnn, build_int_net
from spacy_spanner.encoders.joined import build_joined_encoder
from spacy_spanner.encoders.tags import build_tag_embed
from spacy_spanner.encoders.tuned_vectors import build_tuned_vectors


def joined(**options) -> Model:
    parts = [
        build_tuned_vectors(),
        build_char_cnn(char_width=4, filters=5),
        build_tag_embed(width=3),
    ]
    return build_joined_encoder(*parts, **options)


ENCODERS: Dict[str, Callable[[], Model]] = {
    "tuned": build_tuned_vectors,
    "lstm_last": lambda: build_char_bilstm(char_width=4, hidden_width=3),
    "lstm_mean": lambda: build_char_bilstm(char_width=4, hidden_width=3, pool="mean"),
    "cnn": lambda: build_char_cnn(char_width=4, filters=5),
    "int_net": lambda: build_int_net(char_width=4, first_filters=3, filters=2, dropout=0.0),
    "tags": lambda: build_tag_embed(width=5),
    "joined": joined,
    "joined_lstm": lambda: joined(lstm_width=8, lstm_layers=2),
    "nested": lambda: build_joined_encoder(joined(lstm_width=4), build_char_cnn(filters=3)),
}
WIDTHS = {
    "tuned": 6,
    "lstm_last": 6,
    "lstm_mean": 6,
    "cnn": 5,
    "int_net": 2 * (3 + 3 * 2),
    "tags": 5,
    "joined": 14,
    "joined_lstm": 8,
    "nested": 7,
}
TEXTS = ["The cat sat on the mat", "", "a 1995 1996 B7 cat", "Łódź 東京 x", "Haus haus zzz zzz zzz"]
LONG_WORD = "w" * 90


@pytest.fixture(params=list(ENCODERS))
def model(request, make_docs) -> Model:
    torch.manual_seed(0)
    model = ENCODERS[request.param]()
    docs = make_docs(*TEXTS)
    model.initialize(docs)
    assert model.get_dim("nO") == WIDTHS[request.param]
    learn(model, docs)
    return model


def learn(model: Model, docs: List) -> None:
    """What the component does in `initialize`."""
    for node in model.walk():
        if "learn_words" in node.attrs:
            node.attrs["learn_words"](node, iter(docs))


def parameters(model: Model) -> List[torch.nn.Parameter]:
    return [p for node in model.walk() for shim in node.shims for p in shim.module.parameters()]


def test_one_vector_for_each_token(model, make_docs):
    docs = make_docs(*TEXTS)
    for doc, vectors in zip(docs, model.predict(docs), strict=True):
        assert vectors.shape == (len(doc), model.get_dim("nO"))
        assert vectors.dtype == numpy.float32
        assert numpy.isfinite(vectors).all()


def test_a_document_is_the_same_alone_and_in_a_batch(model, make_docs):
    docs = make_docs(*TEXTS, LONG_WORD, "a b c d e f g h i j k l m n o p")
    together = model.predict(docs)
    for doc, vectors in zip(docs, together, strict=True):
        assert_allclose(model.predict([doc])[0], vectors, atol=1e-6)
    backwards = model.predict(docs[::-1])[::-1]
    for one, other in zip(together, backwards, strict=True):
        assert_allclose(one, other, atol=1e-6)


def test_documents_without_tokens(model, make_docs):
    docs = make_docs("", "")
    vectors, backprop = model.begin_update(docs)
    assert [v.shape for v in vectors] == [(0, model.get_dim("nO"))] * 2
    assert backprop(vectors) == []
    assert model.predict([]) == []


def test_gradient_is_the_slope_of_the_output(model, make_docs):
    """The loss is a fixed weighting of the output; its slope along the gradient is |gradient|²."""
    docs = make_docs(*TEXTS)
    outputs, backprop = model.begin_update(docs)
    rng = numpy.random.default_rng(0)
    weights = [rng.normal(size=v.shape).astype("float32") for v in outputs]
    backprop([w.copy() for w in weights])
    tensors = parameters(model)
    grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in tensors]
    starts = [p.detach().clone() for p in tensors]
    norm2 = float(sum((g.double() ** 2).sum() for g in grads))
    assert norm2 > 0

    def loss(step: float) -> float:
        for p, start, grad in zip(tensors, starts, grads, strict=True):
            p.data = start + step * grad
        return float(
            sum(
                (v.astype("d") * w).sum() for v, w in zip(model.predict(docs), weights, strict=True)
            )
        )

    step = 1e-3 / norm2**0.5
    assert (loss(step) - loss(-step)) / (2 * step) == pytest.approx(norm2, rel=2e-2)


def test_training_lowers_a_loss(model, make_docs):
    docs = make_docs(*TEXTS)
    rng = numpy.random.default_rng(1)
    n_out = model.get_dim("nO")
    # One target for each word and tag, as the blocks see no more than that.
    words = {token.text: 0.3 * rng.normal(size=n_out) for doc in docs for token in doc}
    targets = [
        numpy.array([words[t.text] for t in doc], dtype="float32").reshape(-1, n_out)
        for doc in docs
    ]
    optimizer, losses = Adam(0.02), []
    for _ in range(25):
        outputs, backprop = model.begin_update(docs)
        errors = [v - target for v, target in zip(outputs, targets, strict=True)]
        backprop(errors)
        model.finish_update(optimizer)
        losses.append(sum(float((e**2).sum()) for e in errors))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("how", ["bytes", "disk", "pickle", "copy"])
def test_a_copy_gives_the_same(model, make_docs, how, request, tmp_path):
    docs = make_docs(*TEXTS, "unseen moscow")
    outputs, backprop = model.begin_update(docs)
    backprop(outputs)
    model.finish_update(Adam(0.1))
    before = model.predict(docs)
    if how == "pickle":
        other = pickle.loads(pickle.dumps(model))
    elif how == "copy":
        other = model.copy()
    else:
        name = request.node.callspec.params["model"]
        if how == "bytes":
            other = ENCODERS[name]().from_bytes(model.to_bytes())
        else:
            model.to_disk(tmp_path / "model")
            other = ENCODERS[name]().from_disk(tmp_path / "model")
    for one, two in zip(before, other.predict(docs), strict=True):
        assert_array_equal(one, two)
    assert other.get_dim("nO") == model.get_dim("nO")


def test_a_copy_is_trained_by_itself(model, make_docs):
    docs = make_docs(*TEXTS)
    before = model.predict(docs)
    other = model.copy()
    outputs, backprop = other.begin_update(docs)
    backprop(outputs)
    other.finish_update(Adam(0.1))
    for one, two in zip(before, model.predict(docs), strict=True):
        assert_array_equal(one, two)


@pytest.mark.parametrize(
    "name", ["TunedVectors", "CharBiLSTM", "CharCNN", "IntNet", "TagEmbed", "JoinedEncoder"]
)
def test_registered(name):
    assert callable(registry.architectures.get(f"spacy-spanner.{name}.v1"))


@pytest.mark.parametrize("build", [build_tuned_vectors, build_char_cnn, build_tag_embed])
def test_dropout_is_on_in_training_only(build, make_docs):
    docs = make_docs(*TEXTS)
    model = build(dropout=0.5)
    model.initialize(docs)
    model.begin_update(docs)  # also shows the tags' watch a training step
    assert_array_equal(model.predict(docs)[0], model.predict(docs)[0])
    assert (model.begin_update(docs)[0][0] != model.predict(docs)[0]).any()
