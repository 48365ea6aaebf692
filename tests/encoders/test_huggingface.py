"""Laws of the encoder over transformers: every kind of model, pooling and windows by slow loops."""

from __future__ import annotations

import pickle
from typing import List

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from thinc.api import Adam, Model

from spacy_spanner.encoders.huggingface import build_huggingface_encoder
from spacy_spanner.encoders.huggingface_files import KINDS

from .tiny_transformers import WIDTH, save

pytestmark = pytest.mark.huggingface
TEXTS = [
    "The cat sat on the mat, and Anna slept.",
    "",
    "Łukasz don't  know\n\n(x) 1995",
    "東京都に住む Anna",
    "a" * 150,
    " ",
    "cat " * 30,
]


@pytest.fixture(scope="module", params=list(KINDS))
def any_kind(request, tmp_path_factory):
    return save(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save(tmp_path_factory.mktemp("bert"), "bert")


def build(folder, **options) -> Model:
    torch.manual_seed(0)
    model = build_huggingface_encoder(str(folder), width=WIDTH, **options)
    model.initialize()
    return model


def make_docs(texts=TEXTS) -> List[Doc]:
    nlp = spacy.blank("en")
    return [nlp.make_doc(text) for text in texts]


def module_of(model: Model):
    return model.shims[0].module


def test_one_vector_for_each_token(any_kind):
    model, docs = build(any_kind, window=10, stride=6), make_docs()
    for doc, vectors in zip(docs, model.predict(docs), strict=True):
        assert vectors.shape == (len(doc), WIDTH) and vectors.dtype == numpy.float32
        assert numpy.isfinite(vectors).all()
        for token, vector in zip(doc, vectors, strict=True):
            assert token.is_space or vector.any()


def test_a_document_is_the_same_whatever_shares_the_batch(any_kind):
    model, docs = build(any_kind, window=10, stride=6, max_batch_tokens=64), make_docs()
    together = model.predict(docs)
    backwards = model.predict(docs[::-1])[::-1]
    for doc, vectors, other in zip(docs, together, backwards, strict=True):
        assert_allclose(model.predict([doc])[0], vectors, atol=1e-5)
        assert_allclose(other, vectors, atol=1e-5)


def test_stored_and_loaded(any_kind):
    model, docs = build(any_kind), make_docs()
    expected = model.predict(docs)
    loaded = build_huggingface_encoder("nowhere", width=WIDTH).from_bytes(model.to_bytes())
    for other in (loaded, model.copy(), pickle.loads(pickle.dumps(model))):
        for one, two in zip(expected, other.predict(docs), strict=True):
            assert_array_equal(one, two)


def test_every_kind_learns(any_kind):
    model, docs = build(any_kind), make_docs()
    start = model.predict(docs)
    for _ in range(2):
        vectors, backprop = model.begin_update(docs)
        assert backprop([numpy.ones_like(v) for v in vectors]) == []
        model.finish_update(Adam(0.01))
    assert all(p.grad is None for p in module_of(model).parameters())
    assert abs(model.predict(docs)[0] - start[0]).max() > 1e-3


def slow_vectors(model: Model, doc: Doc, *, pooling: str, layers: int = 1) -> numpy.ndarray:
    """Piece by piece, for a document of one window."""
    module = module_of(model)
    encoding = module.reader.tokenizer.encode(doc.text.rstrip())
    module.eval()
    with torch.no_grad():
        output = module.encoder(
            input_ids=torch.tensor([encoding.ids]), output_hidden_states=True, return_dict=True
        )
    states = torch.stack(output.hidden_states[-layers:])[:, 0].mean(0).numpy()
    rows = []
    for token in doc:
        chars = set(range(token.idx, token.idx + len(token)))
        own = [i for i, (a, b) in enumerate(encoding.offsets) if chars & set(range(a, b))]
        pooled = {"first": lambda x: x[0], "mean": lambda x: x.mean(0), "max": lambda x: x.max(0)}
        rows.append(pooled[pooling](states[own]) if own else numpy.zeros(WIDTH))
    return numpy.array(rows)


@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
@pytest.mark.parametrize("layers", [1, 3])
def test_pooling_by_a_slow_loop(bert, pooling, layers):
    model = build(bert, pooling=pooling, layers=layers)
    for doc in make_docs(TEXTS[:1] + TEXTS[2:4]):
        expected = slow_vectors(model, doc, pooling=pooling, layers=layers)
        assert_allclose(model.predict([doc])[0], expected, atol=1e-5)


@pytest.mark.parametrize("n_words", [1, 6, 9, 10, 11, 37])
def test_strided_windows_by_a_slow_loop(bert, n_words):
    """Each word from the window in which it is farthest from an edge that cuts the document."""
    window, stride = 10, 6
    model = build(bert, window=window, stride=stride)
    doc = make_docs([" ".join(["cat sat on the mat and Anna slept in a"] * 5)])[0][
        :n_words
    ].as_doc()
    best: dict = {}
    for start in range(0, max(1, n_words - (window - stride)), stride):
        end = min(start + window, n_words)
        part = slow_vectors(model, doc[start:end].as_doc(), pooling="mean")
        for i in range(start, end):
            left = numpy.inf if start == 0 else i - start
            right = numpy.inf if end == n_words else end - 1 - i
            if i not in best or min(left, right) > best[i][0]:
                best[i] = min(left, right), part[i - start]
    expected = numpy.array([best[i][1] for i in range(n_words)])
    assert_allclose(model.predict([doc])[0], expected, atol=1e-5)


def test_window_with_too_many_pieces_is_read_in_parts(bert):
    model = build(bert, window=None)
    doc = make_docs(["Łukasz slept while Anna sat on mats, " * 30])[0]
    seen = [len(ids) for ids in module_of(model).reader.read([doc]).ids]
    assert len(seen) > 10 and max(seen) <= 40
    assert model.predict([doc])[0].any(1).all()


def test_words_have_the_pieces_of_both_windows_if_wanted(bert):
    doc = make_docs(["the cat sat on a mat"])[0]
    both = build(bert, window=4, stride=2, overlap="spacy-transformers").predict([doc])[0]
    parts = [doc[:4].as_doc(), doc[2:].as_doc()]
    left, right = build(bert, window=4, stride=4).predict(parts)
    assert_allclose(both[:2], left[:2], atol=1e-5)
    assert_allclose(both[4:], right[2:], atol=1e-5)
    assert_allclose(both[2:4], (left[2:] + right[:2]) / 2, atol=1e-5)


def test_sentences_with_and_without_their_neighbours(bert):
    doc = make_docs(["the cat sat . Anna slept . a mat sat on the cat ."])[0]
    for token in doc:
        token.is_sent_start = token.i in (0, 4, 7)
    alone = build(bert, split="sentences").predict([doc])[0]
    apart = build(bert).predict([doc[:4].as_doc(), doc[4:7].as_doc(), doc[7:].as_doc()])
    assert_allclose(alone, numpy.concatenate(apart), atol=1e-5)
    near = build(bert, split="sentences", context=2).predict([doc])[0]
    middle = build(bert).predict([doc[2:9].as_doc()])[0]
    assert_allclose(near[4:7], middle[2:5], atol=1e-5)
    whole = build(bert, split="sentences", context=20).predict([doc])[0]
    assert_allclose(whole, build(bert).predict([doc])[0], atol=1e-5)


def test_documents_without_tokens(bert):
    model, docs = build(bert), make_docs(["", ""])
    vectors, backprop = model.begin_update(docs)
    assert [v.shape for v in vectors] == [(0, WIDTH)] * 2 and backprop(vectors) == []
    assert model.predict([]) == []


def changed(model: Model, docs: List[Doc], optimizer=None) -> set:
    before = {name: p.detach().clone() for name, p in module_of(model).named_parameters()}
    vectors, backprop = model.begin_update(docs)
    backprop([numpy.ones_like(v) for v in vectors])
    model.finish_update(optimizer or Adam(0.01, L2=0.0))
    return {n for n, p in module_of(model).named_parameters() if not torch.equal(p, before[n])}


def test_frozen_parts_keep_their_weights(any_kind):
    docs = make_docs()
    assert changed(build(any_kind, frozen=True, layers=2), docs) == set()
    assert changed(build(any_kind), docs)
    lower = changed(build(any_kind, frozen_layers=2), docs)
    assert lower and not any(".0." in n or ".1." in n or "embeddings." in n for n in lower)


def test_layers_learn_at_their_own_rate_and_vectors_do_not_decay(bert):
    shim = build(bert, learn_rate_scale=0.5, layer_decay=0.5).shims[0]
    scales = {n: shim.step_options(n, p) for n, p in shim.module.named_parameters()}
    assert scales["encoder.embeddings.word_embeddings.weight"] == (0.5 * 0.5**3, True)
    assert scales["encoder.encoder.layer.0.output.dense.weight"] == (0.5 * 0.5**2, True)
    assert scales["encoder.encoder.layer.2.output.dense.bias"] == (0.5, False)
    assert scales["encoder.embeddings.LayerNorm.weight"] == (0.5 * 0.5**3, False)


def test_weights_decay_only_where_they_should(bert):
    model, optimizer = build(bert), Adam(0.1, L2=0.5)
    module = module_of(model)
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    model.finish_update(optimizer)
    assert optimizer.L2 == 0.5
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter, before[name]) == (parameter.dim() == 1), name


def test_averaged_weights_reach_the_encoder_and_leave_it_after_an_error(bert):
    model, docs = build(bert), make_docs()
    optimizer = Adam(0.05, use_averages=True)
    for _ in range(3):
        changed(model, docs, optimizer)
    last = model.predict(docs)[0]
    with pytest.raises(KeyError), model.use_params(optimizer.averages):
        averaged = model.predict(docs)[0]
        raise KeyError
    assert abs(averaged - last).max() > 1e-4
    assert_array_equal(model.predict(docs)[0], last)


def test_embeddings_looked_up_at_once_give_the_same(any_kind, monkeypatch):
    module = module_of(build(any_kind, window=10, stride=6, max_batch_tokens=64)).eval()
    batch = module.reader.read([doc for doc in make_docs() if len(doc)])
    results = []
    for at_once in (True, False):
        if not at_once:
            monkeypatch.setattr(module, "prepared", lambda groups: groups)
        module.zero_grad(set_to_none=True)
        vectors = module(batch)
        vectors.square().sum().backward()
        grads = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        results.append((vectors.detach(), grads))
    (one, grads), (two, others) = results
    torch.testing.assert_close(one, two)
    assert grads.keys() == others.keys()
    for name, grad in grads.items():
        torch.testing.assert_close(grad, others[name], atol=1e-3, rtol=1e-3)


def test_gradient_checkpointing_gives_the_same_gradient(bert):
    grads = []
    for checkpointing in (False, True):
        model = build(bert, gradient_checkpointing=checkpointing)
        for part in module_of(model).modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
            if hasattr(part, "dropout_prob"):
                part.dropout_prob = 0.0
        vectors, backprop = model.begin_update(make_docs())
        backprop([numpy.ones_like(v) for v in vectors])
        grads.append([p.grad.clone() for p in module_of(model).parameters() if p.grad is not None])
    for one, two in zip(*grads, strict=True):
        assert_allclose(one, two, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 0},
        {"window": 8, "stride": 9},
        {"stride": 0},
        {"context": 3},
        {"layers": 0},
        {"frozen_layers": -1},
        {"max_batch_tokens": 0},
        {"layer_decay": 0.0},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(ValueError, match="S041"):
        build_huggingface_encoder("any", width=WIDTH, **options)
