"""The encoder over transformers on devices: what can be known without them, and what runs on them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose
from thinc.api import Adam

from spacy_spanner import shim as shim_module
from spacy_spanner.encoders.huggingface import HuggingFaceShim, build_huggingface_encoder
from spacy_spanner.encoders.pieces import PieceBatch

from .test_huggingface import build, make_docs
from .tiny_transformers import WIDTH, save

pytestmark = pytest.mark.huggingface


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save(tmp_path_factory.mktemp("bert"), "bert")


class Embedding(torch.nn.Module):
    """In place of a transformer; the library itself looks at padding on the host."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.words = torch.nn.Embedding(config.vocab_size, WIDTH)

    def get_input_embeddings(self):
        return self.words

    def forward(self, *, input_ids, inputs_embeds, attention_mask, **options):
        states = self.words(input_ids) if inputs_embeds is None else inputs_embeds
        assert attention_mask is None or attention_mask.shape == states.shape[:2]
        return SimpleNamespace(hidden_states=[states] * 3, last_hidden_state=states)


@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
@pytest.mark.parametrize("layers", [1, 2])
def test_on_the_meta_device_nothing_is_read_or_made_elsewhere(bert, pooling, layers):
    module = build(bert, pooling=pooling, layers=layers).shims[0].module
    module.encoder = Embedding(module.encoder.config)
    batch = module.reader.read(make_docs())
    vectors = module.to("meta").train()(batch)
    assert vectors.device.type == "meta" and vectors.shape == (batch.n_words, WIDTH)
    vectors.sum().backward()


def test_whole_encoder_on_the_meta_device_without_padding(bert):
    import transformers

    if int(transformers.__version__.split(".")[0]) < 5:
        pytest.skip("transformers 4 looks at its mask on the host also where there is no padding")
    module = build(bert).shims[0].module
    batch = module.reader.read(make_docs(["the cat sat", "the cat sat"]))
    module.to("meta").train()(batch).sum().backward()


def test_words_without_any_piece(bert):
    module = build(bert).shims[0].module
    none = numpy.zeros(0, dtype="int64")
    batch = PieceBatch([numpy.array([0, 2])], none, none, none, 3)
    assert torch.equal(module(batch), torch.zeros(3, WIDTH))


class Recorder(torch.nn.Module):
    def to(self, device):
        self.seen = torch.device(device)
        return self


@pytest.mark.parametrize(
    "default, device_type, expected",
    [
        ("cpu", "cpu", "cpu"),
        ("mps", "cpu", "mps"),  # thinc's arrays are on the CPU there
        ("cpu", "gpu", "cuda:1"),
        ("cuda:1", "cpu", "cpu"),
    ],
)
def test_a_module_goes_where_thinc_works(monkeypatch, default, device_type, expected):
    monkeypatch.setattr(shim_module, "get_torch_default_device", lambda: torch.device(default))
    shim = HuggingFaceShim(Recorder)
    shim.build()
    shim.to_device(device_type, 1)
    assert shim.module.seen == torch.device(expected)


class Scaler:
    """A scaler of gradients that works without a GPU."""

    _enabled, factor, found_inf, updates = True, 8.0, False, 0

    def to_(self, device):
        pass

    def scale(self, tensor):
        return tensor * self.factor

    def unscale(self, tensors):
        for tensor in tensors:
            tensor /= self.factor
            self.found_inf = self.found_inf or not bool(torch.isfinite(tensor).all())

    def update(self):
        self.updates += 1
        self.found_inf = False


def test_scaled_gradients_are_added_up_whole_and_bad_steps_left_out(bert, monkeypatch):
    docs = make_docs()
    plain, half = build(bert), build(bert)
    shim = half.shims[0]
    shim._grad_scaler = Scaler()
    monkeypatch.setattr(HuggingFaceShim, "scales", property(lambda self: self is shim))
    for model in (plain, half):
        torch.manual_seed(0)
        for _ in range(2):  # gradients of two batches for one step
            vectors, backprop = model.begin_update(docs)
            backprop([numpy.ones_like(v) for v in vectors])
    for one, two in zip(plain.shims[0].module.parameters(), shim.module.parameters(), strict=True):
        if one.grad is not None:
            assert_allclose(one.grad, two.grad, atol=1e-4)
    before = shim.to_bytes()
    next(shim.module.parameters()).grad.fill_(float("inf"))
    shim._grad_scaler.found_inf = True
    half.finish_update(Adam(0.01))
    assert shim.to_bytes() == before and shim._grad_scaler.updates == 1
    assert all(p.grad is None for p in shim.module.parameters())


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["none", "bf16", "fp16"])
def test_gpu_gives_what_the_cpu_gives(bert, precision):
    docs = make_docs()
    model = build(bert)
    expected, data = model.predict(docs), model.to_bytes()
    spacy.require_gpu()
    try:
        on_gpu = build_huggingface_encoder("any", width=WIDTH, mixed_precision=precision)
        on_gpu.from_bytes(data)
        vectors, backprop = on_gpu.begin_update(docs)
        backprop(vectors)
        on_gpu.finish_update(Adam(0.001))
        on_gpu.from_bytes(data)
        atol = 1e-4 if precision == "none" else 0.1
        for one, two in zip(expected, on_gpu.predict(docs), strict=True):
            assert_allclose(one, two.get(), atol=atol)
    finally:
        spacy.require_cpu()
