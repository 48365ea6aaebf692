"""Memory that was freed goes back to the system now and then."""

import sys

import pytest

from spacy_spanner import heap

from .systems import make_examples, make_nlp


def test_every_few_updates(monkeypatch):
    calls = []
    monkeypatch.setattr(heap, "TRIM", calls.append)
    for _ in range(3 * heap.EVERY):
        heap.after_update()
    assert calls == [0, 0, 0]


def test_a_system_without_it(monkeypatch):
    monkeypatch.setattr(heap, "TRIM", None)
    for _ in range(heap.EVERY):
        heap.after_update()


def test_components_call_it(monkeypatch):
    calls = []
    monkeypatch.setattr(heap, "TRIM", calls.append)
    monkeypatch.setattr(heap, "EVERY", 1)
    nlp = make_nlp("global_pointer")
    examples = make_examples(nlp)
    nlp.update(examples, sgd=nlp.initialize(lambda: examples))
    assert calls == [0]


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_glibc_has_it():
    assert heap.find_trim() is not None
