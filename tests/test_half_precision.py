"""Heads under torch's autocast: losses and spans stay finite and near those of float32."""

from types import SimpleNamespace

import numpy
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_spanner.decoders import crf, tagger
from spacy_spanner.models import hscrf

from .systems import SYSTEMS, TEXTS, found, make_examples, trained


@pytest.fixture(scope="module", params=SYSTEMS)
def nlp(request):
    return trained(request.param, output="spans", steps=40)


@pytest.fixture(params=[torch.bfloat16, torch.float16], ids=str)
def dtype(request, nlp):
    module = nlp.get_pipe(nlp.pipe_names[0]).model.shims[0].module
    if request.param is torch.float16 and any(
        isinstance(m, torch.nn.LSTM) for m in module.modules()
    ):
        pytest.skip("torch has no LSTM of float16 on a CPU")
    return request.param


def loss_of(nlp):
    """The loss of the training data; the weights stay as they are."""
    torch.manual_seed(0)
    (name,) = nlp.pipe_names
    pipe = nlp.get_pipe(name)
    batch = pipe._gold_batch(make_examples(nlp), pipe.new_counts())
    loss, backprop = pipe.model.begin_update(batch)
    backprop(loss)
    grads = [p.grad for p in pipe.model.shims[0].module.parameters() if p.grad is not None]
    assert grads and all(grad.isfinite().all() for grad in grads)
    pipe.model.shims[0].module.zero_grad(set_to_none=True)
    return float(loss)


def test_losses(nlp, dtype):
    expected = loss_of(nlp)
    with torch.autocast("cpu", dtype=dtype):
        assert loss_of(nlp) == pytest.approx(expected, rel=0.1, abs=0.1)


def test_spans(nlp, dtype):
    expected = {(i, *s[:3]): s[3] for i, text in enumerate(TEXTS) for s in found(nlp(text))}
    with torch.autocast("cpu", dtype=dtype):
        got = {(i, *s[:3]): s[3] for i, text in enumerate(TEXTS) for s in found(nlp(text))}
    assert expected.keys() == got.keys()
    scores = numpy.array(list(got.values()))
    assert numpy.isfinite(scores).all()
    numpy.testing.assert_allclose(scores, [expected[span] for span in got], atol=0.05)


def test_long_rows(nlp, dtype):
    """Sums over many tokens stay finite."""
    with torch.autocast("cpu", dtype=dtype):
        docs = list(nlp.pipe([" ".join(TEXTS * 20), *TEXTS, "x"]))
    assert all(numpy.isfinite(doc.spans["sc"].attrs["scores"]).all() for doc in docs)


class NoFloat64(TorchDispatchMode):
    """Refuses float64, as Apple's MPS does."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = result if isinstance(result, (tuple, list)) else [result]
        assert not any(torch.is_tensor(t) and t.dtype == torch.float64 for t in tensors), func
        return result


def test_float32_is_enough_where_there_is_no_float64(nlp, monkeypatch):
    expected = [found(nlp(text)) for text in TEXTS], loss_of(nlp)
    for module in (crf, tagger, hscrf):
        monkeypatch.setattr(module, "wide_dtype", lambda x: torch.float32)
    with NoFloat64():
        got = [found(nlp(text)) for text in TEXTS], loss_of(nlp)
    assert got[1] == pytest.approx(expected[1], rel=1e-3, abs=1e-3)
    for left, right in zip(expected[0], got[0], strict=True):
        assert [s[:3] for s in left] == [s[:3] for s in right]
        numpy.testing.assert_allclose([s[3] for s in left], [s[3] for s in right], atol=1e-4)


def test_mps_is_what_has_no_float64():
    assert crf.wide_dtype(torch.zeros(1)) == torch.float64
    assert crf.wide_dtype(SimpleNamespace(device=torch.device("mps"))) == torch.float32
