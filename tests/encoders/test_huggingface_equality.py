"""Token vectors equal those of spacy-transformers on the same model and windows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose

from ..minilm import FOLDER

TEXTS = [
    "IL-4 didn't inhibit c-fos expression  in LPS-treated cells (Fig. 2).\n\nIt was Anna's mat.",
    "",
    "The ship, which had left Torvik in the morning, was never seen again. " * 20,
]
# Made by spacy-transformers 1.4.0: the first numbers of each vector of the first text.
STORED = Path(__file__).parent / "minilm_vectors.json"


def ours(texts, **options):
    nlp = spacy.blank("en")
    block = {"@architectures": "spacy-spanner.HuggingFaceEncoder.v1", "width": 384, **options}
    nlp.add_pipe("tok2vec", config={"model": {**block, "name": str(FOLDER)}})
    nlp.initialize()
    return [doc.tensor for doc in nlp.pipe(texts)]


def theirs(texts, *, window, stride):
    from spacy_transformers.layers.trfs2arrays import trfs2arrays
    from thinc.api import reduce_mean

    nlp = spacy.blank("en")
    getter = {"@span_getters": "spacy-transformers.strided_spans.v1"}
    block = {"@architectures": "spacy-transformers.TransformerModel.v3", "name": str(FOLDER)}
    block["get_spans"] = {**getter, "window": window, "stride": stride}
    nlp.add_pipe("transformer", config={"model": block})
    nlp.initialize()
    return trfs2arrays(reduce_mean(), 1.0).predict([d._.trf_data for d in nlp.pipe(texts)])


@pytest.mark.spacy_transformers
@pytest.mark.parametrize(
    "window, stride, overlap", [(64, 64, "best"), (64, 48, "spacy-transformers")]
)
def test_same_environment(window, stride, overlap):
    expected = theirs(TEXTS, window=window, stride=stride)
    got = ours(TEXTS, window=window, stride=stride, overlap=overlap)
    for one, two in zip(got, expected, strict=True):
        assert len(one) == len(two)
        if len(one):
            assert_allclose(one, two, atol=1e-4)


@pytest.mark.huggingface
def test_any_version_of_transformers():
    stored = numpy.array(json.loads(STORED.read_text(encoding="utf8")))
    got = ours(TEXTS[:1])[0]
    assert_allclose(got[:, : stored.shape[1]], stored, atol=1e-4)
