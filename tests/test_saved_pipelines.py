"""Pipelines saved by an earlier version load and give the output they gave then."""

from pathlib import Path

import numpy
import pytest
import spacy
import srsly

from .systems import found

PIPELINES = Path(__file__).parent / "data" / "pipelines"


@pytest.mark.parametrize("path", sorted(PIPELINES.glob("*.json")), ids=lambda path: path.stem)
def test_same_output_as_when_saved(path):
    nlp = spacy.load(path.with_suffix(""))
    for expected in srsly.read_json(path):
        doc = nlp(expected["text"])
        for key in ("sc", "ents"):
            got = found(doc, key)
            assert [span[:3] for span in got] == [tuple(span[:3]) for span in expected[key]]
            scores = [span[3] for span in expected[key]]
            numpy.testing.assert_allclose([span[3] for span in got], scores, atol=1e-5)
