"""Transformers with int8 weights: close to what they were made of, stored like any other block."""

import numpy
import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import DocBin
from typer.testing import CliRunner

pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import spacy_spanner.cli  # noqa: F401
from spacy_spanner.encoders import quantized
from spacy_spanner.errors import UserError
from spacy_spanner.quantization import pipeline as quantization

from ..encoders.test_huggingface_pipeline import LISTENER, make_nlp
from ..encoders.tiny_transformers import save
from ..systems import SYSTEMS, TEXTS, make_examples

pytestmark = pytest.mark.huggingface


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    folder = save(tmp_path_factory.mktemp("bert"), "bert")
    block = {"@architectures": "spacy-spanner.GlobalPointer.v1", "tok2vec": LISTENER}
    nlp = make_nlp(folder, {"global_pointer": {**SYSTEMS["global_pointer"], **block}}, layers=2)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


@pytest.fixture(scope="module")
def small(nlp):
    return quantization.quantize(nlp)


def vectors(nlp):
    docs = [nlp.make_doc(text) for text in [*TEXTS, "", " ".join(TEXTS * 6)]]
    return numpy.concatenate(nlp.get_pipe("tok2vec").predict(docs))


def test_vectors_are_close_in_batches_of_any_length(nlp, small):
    full, int8 = vectors(nlp), vectors(small)
    norms = numpy.linalg.norm(full, axis=1) * numpy.linalg.norm(int8, axis=1)
    cosine = (full * int8).sum(axis=1) / norms
    assert cosine.mean() > 0.99 and cosine.min() > 0.95
    assert not numpy.allclose(full, int8, atol=1e-6)  # it is int8, not a copy


def test_it_is_saved_loaded_and_copied_like_any_pipeline(small, tmp_path):
    expected = vectors(small)
    small.to_disk(tmp_path / "small")
    loaded = spacy.load(tmp_path / "small")
    assert numpy.array_equal(vectors(loaded), expected)
    model = loaded.get_pipe("tok2vec").model
    assert numpy.array_equal(numpy.concatenate(model.copy().predict([loaded.make_doc(TEXTS[0])])),
                             numpy.concatenate(model.predict([loaded.make_doc(TEXTS[0])])))  # fmt: skip
    assert loaded.config["components"]["tok2vec"]["model"]["@architectures"] == quantization.INT8
    assert [doc.text for doc in loaded.pipe(TEXTS)] == TEXTS


def test_what_cannot_be_is_said(nlp, small, monkeypatch):
    with pytest.raises(ValueError, match="S211"):
        small.update(make_examples(small))
    with pytest.raises(ValueError, match="S211"):
        small.initialize(lambda: make_examples(small))
    blank = spacy.blank("en")
    blank.add_pipe("sentencizer")
    with pytest.raises(UserError, match=r"S213.*sentencizer"):
        quantization.quantize(blank)
    monkeypatch.setattr(quantized, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"S212.*spacy-spanner\[onnx\]"):
        quantized.build_quantized_encoder(width=4)
    monkeypatch.setattr(quantization, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"S055.*spacy-spanner\[onnx\]"):
        quantization.quantize(nlp)


def test_the_command_shows_before_and_after(nlp, small, tmp_path, monkeypatch):
    nlp.to_disk(tmp_path / "full")
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(tmp_path / "dev.spacy")
    monkeypatch.setattr(quantization, "quantize", lambda nlp: small)  # made once is enough
    command = ["spanner", "quantize", str(tmp_path / "full"), "-o", str(tmp_path / "small")]
    command += ["--corpus", str(tmp_path / "dev.spacy"), "--limit", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    for part in ("Words/s", "On disk, MB", "Before", "After", "95 % interval"):
        assert part in result.output
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 1 and "S111" in again.output
