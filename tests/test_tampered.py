"""A stored pipeline that was changed or damaged ends in a clear error before anything is built."""

import numpy
import pytest
import spacy
import torch

from spacy_spanner.models.memory_index import count_slots

from .systems import make_examples, make_nlp
from .tampered import cases, change_and_load, make, stored_bytes, weights

CASES = cases()


@pytest.mark.parametrize("name", sorted({name for _, name, _ in CASES}))
def test_unchanged_components_load(name):
    pipe = change_and_load(name, lambda stored: None)
    assert pipe.to_bytes(exclude=["vocab"]) == stored_bytes(name)
    assert pipe.labels


@pytest.mark.parametrize("told, name, change", CASES, ids=[f"{n}-{t}" for t, n, _ in CASES])
def test_changed_components_are_refused(told, name, change):
    with pytest.raises(ValueError, match=r"^\[S\d+\] .*\. [A-Z].*\.$|^\[S003\]"):
        change_and_load(name, change)


def test_there_are_enough_changes():
    assert len(CASES) > 93


@pytest.mark.parametrize("key", ["window", "seen", "threshold", "label_thresholds", "width_factor"])
def test_missing_settings_get_their_defaults(key):
    pipe = change_and_load("global_pointer", lambda stored: stored["cfg"].pop(key) and None)
    assert pipe.cfg[key] == make("global_pointer").pipeline[0][1].cfg[key]


@pytest.mark.parametrize("file", ["cfg", "model"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe" * 99])
def test_files_that_lack_or_hold_something_else(tmp_path, file, content):
    nlp = make_nlp("seq_ner")
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path)
    (tmp_path / "seq_ner" / file).unlink()
    if content is not None:
        (tmp_path / "seq_ner" / file).write_bytes(content)
    with pytest.raises(ValueError, match=r"\[S12[45]\] Component 'seq_ner'"):
        spacy.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table[:3],
        lambda table: table.flip(1),
        lambda table: table * torch.tensor([[1], [2], [1], [1]]),
        lambda table: table * torch.tensor([[1], [-1], [1], [1]]),
        lambda table: table * torch.tensor([[1], [0], [1], [1]]),
        lambda table: table + torch.tensor([[0], [0], [1 << 62], [0]]),
        lambda table: table[:, 1:],
        lambda table: table.float(),
    ],
)
def test_memory_of_another_size_than_its_words(change):
    index = "memory._extra_state"

    def apply(state, sizes):
        state[index] = change(state[index]).contiguous()

    with pytest.raises(ValueError, match=r"\[S005\]"):
        change_and_load("hierarchical_ner", weights(apply))


def test_slots_of_a_table():
    table = numpy.array([[-5, 2, 9], [1, 2, 3], [1, 2, 3], [0, 9, 9]])
    assert count_slots(table) == 6 and count_slots(table[:, :0]) == 0
    assert count_slots(table[:, ::-1]) is None and count_slots(table[:2]) is None
