"""The bridge: gradients to the token vectors, groups of rows, and weights that are safe to load."""

import io
import json
import pickle
import struct
import warnings

import numpy
import pytest
import safetensors.torch
import spacy
import torch
from thinc.api import Adam, Model

from spacy_spanner.batch import Rows, SpanBatch
from spacy_spanner.bridge import head_of
from spacy_spanner.grouping import group_rows, padding_budget
from spacy_spanner.models.global_pointer import build_global_pointer
from spacy_spanner.pipeline.component import SpanTablePipe

from .systems import SYSTEMS, TEXTS, TRAIN_DATA, found, make_examples, make_nlp, trained

WIDTH = 5


def vectors_layer(values):
    """A tok2vec whose output is given, and which keeps the gradient it gets."""
    kept = {}

    def forward(model, docs, is_train):
        def backprop(gradient):
            kept["gradient"] = gradient
            return docs

        return [values[doc.text] for doc in docs], backprop

    return Model("given", forward, dims={"nO": WIDTH}), kept


@pytest.mark.parametrize("window,join", [(64, 0.0), (64, 1.0), (6, 0.0)])
def test_finite_differences_through_the_bridge(window, join):
    nlp = spacy.blank("en")
    rng = numpy.random.default_rng(0)
    examples = make_examples(nlp)
    values = {
        eg.predicted.text: rng.normal(size=(len(eg.predicted), WIDTH)).astype("float32")
        for eg in examples
    }
    layer, kept = vectors_layer(values)
    rows = {"window": window, "overlap": window // 2, "join_training": join}
    pipe = nlp.add_pipe("global_pointer", config=rows)
    pipe.model = build_global_pointer(layer, head_size=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small windows lose the longest spans
        pipe.initialize(lambda: examples)

    def loss():
        return pipe.update(examples, losses={})[pipe.name]

    pipe.model.shims[0].module.double()
    for text in values:
        values[text] = values[text].astype("float64")
    loss()
    gradient = dict(zip(values, kept["gradient"]))
    for text, vectors in values.items():
        assert gradient[text].shape == vectors.shape
        for token, channel in [(0, 0), (len(vectors) // 2, 3), (len(vectors) - 1, 1)]:
            before = vectors[token, channel]
            vectors[token, channel] = before + 1e-5
            above = loss()
            vectors[token, channel] = before - 1e-5
            below = loss()
            vectors[token, channel] = before
            assert gradient[text][token, channel] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_groups_hold_every_row_once_within_the_budget():
    model = build_global_pointer(None, head_size=4)
    module = head_of(model).maker(width=4, n_labels=3)
    lengths = numpy.random.default_rng(0).integers(1, 60, size=100)
    ends = lengths.cumsum()
    table = numpy.stack([ends - lengths, ends, ends - lengths, ends], axis=1)
    rows = Rows(lengths, numpy.arange(100), table)
    batch = SpanBatch([], rows, numpy.zeros(3), max_cells=20_000)
    groups = list(group_rows(module, batch))
    assert sorted(numpy.concatenate(groups).tolist()) == list(range(100))
    for group in groups:
        longest = int(lengths[group].max())
        assert len(group) == 1 or len(group) * module.cells(longest) <= 20_000
        assert len(group) * longest - lengths[group].sum() <= padding_budget(module, longest)
    waste = sum(len(group) * lengths[group].max() for group in groups) / lengths.sum()
    assert waste < 1.6


def test_a_small_budget_changes_nothing():
    nlp = trained("global_pointer")
    texts = TEXTS * 3 + ["One"]
    expected = [found(doc) for doc in list(nlp.pipe(texts))]
    nlp.get_pipe("global_pointer").cfg["max_cells"] = 1
    got = [found(doc) for doc in list(nlp.pipe(texts))]
    for a, b in zip(got, expected):
        assert [x[:3] for x in a] == [x[:3] for x in b]
        numpy.testing.assert_allclose([x[3] for x in a], [x[3] for x in b], atol=1e-5)


def test_learn_rate_scale_reaches_the_head_alone():
    steps = {}
    for scale in (1.0, 10.0):
        nlp = make_nlp("global_pointer", model={"learn_rate_scale": scale})
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        model = nlp.get_pipe("global_pointer").model
        head = model.shims[0].module.scorer.project.weight
        layer = next(n for n in model.layers[0].walk() if n.has_param("W"))
        before = head.detach().clone(), layer.get_param("W").copy()
        nlp.update(examples, sgd=Adam(0.001, L2=0.0))
        steps[scale] = (
            (model.shims[0].module.scorer.project.weight - before[0]).abs().max().item(),
            abs(layer.get_param("W") - before[1]).max(),
        )
    assert steps[10.0][0] == pytest.approx(10 * steps[1.0][0], rel=1e-3)
    assert steps[10.0][1] == pytest.approx(steps[1.0][1], rel=1e-3)


def test_averaged_weights_are_used_and_put_back():
    nlp = make_nlp("global_pointer")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    optimizer = Adam(0.01, use_averages=True)
    for _ in range(3):
        nlp.update(examples, sgd=optimizer)
    module = nlp.get_pipe("global_pointer").model.shims[0].module
    last = module.scorer.project.weight.detach().clone()
    with nlp.use_params(optimizer.averages):
        assert not torch.equal(module.scorer.project.weight, last)
    assert torch.equal(module.scorer.project.weight, last)


@pytest.fixture(scope="module")
def weights():
    nlp = make_nlp("global_pointer")
    nlp.initialize(lambda: make_examples(nlp))
    shim = nlp.get_pipe("global_pointer").model.shims[0]
    return shim, shim.to_bytes()


def with_header(data, change):
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    change(header)
    new = json.dumps(header).encode()
    return struct.pack("<Q", len(new)) + new + data[8 + size :]


def corrupt(name, data):
    if name == "pickled":
        return pickle.dumps({"weights": [1, 2, 3]})
    if name == "torch.save":
        buffer = io.BytesIO()
        torch.save({"x": torch.zeros(2)}, buffer)
        return buffer.getvalue()
    if name == "cut short":
        return data[:-20]
    if name == "text":
        return b"hello, I am not a weight file at all"
    if name == "tiny":
        return b"\x01"
    if name == "foreign safetensors":
        return safetensors.torch.save({"x": torch.zeros(2)})
    if name == "offsets":

        def overlap(header):
            first = next(k for k in header if k != "__metadata__")
            header[first]["data_offsets"] = [0, 10**9]

        return with_header(data, overlap)
    return with_header(data, lambda header: header["__metadata__"].update({"spacy-spanner": "[1]"}))


@pytest.mark.parametrize(
    "name",
    [
        "pickled",
        "torch.save",
        "cut short",
        "text",
        "tiny",
        "foreign safetensors",
        "offsets",
        "sizes",
    ],
)
def test_tampered_weights_are_refused(weights, name):
    shim, data = weights
    with pytest.raises(ValueError, match="cannot be read"):
        shim.copy().from_bytes(corrupt(name, data))


def test_weights_of_another_head_are_refused(weights):
    other = build_global_pointer(None, head_size=8).shims[0]
    with pytest.raises(ValueError, match="do not fit"):
        other.from_bytes(weights[1])


@pytest.mark.parametrize("factory", SYSTEMS)
def test_loading_never_unpickles(factory, monkeypatch, tmp_path):
    nlp = make_nlp(factory)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)

    def refuse(*args, **kwargs):
        raise AssertionError("a pickle was loaded")

    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    spacy.load(tmp_path)(TRAIN_DATA[0][0])
    stored = (tmp_path / factory / "model").read_bytes()
    assert b"__metadata__" in stored and b"cpickle" not in stored.lower()


def test_other_token_width_is_told():
    nlp = trained("global_pointer", steps=1)
    model = nlp.get_pipe("global_pointer").model
    layer, _ = vectors_layer({TEXTS[0]: numpy.zeros((10, WIDTH), dtype="float32")})
    model.layers[0] = layer
    with pytest.raises(ValueError, match="width 5 but was built for width 32"):
        nlp(TEXTS[0])


def test_other_architectures_are_refused():
    other = Model("other", lambda model, X, is_train: (X, lambda dY: dY))
    with pytest.raises(ValueError, match="not one of spacy-spanner's"):
        SpanTablePipe(spacy.blank("en").vocab, other, "mine")
    with pytest.raises(ValueError, match="not one of spacy-spanner's"):
        head_of(other)
