"""How the slots of the memory are written, stored and counted."""

import numpy
import pytest
import torch

from spacy_spanner.models.memory import WordMemory, unit
from spacy_spanner.models.memory_index import COUNT, WRITES

from .memory_cases import (
    COUNTS,
    FAR,
    KEYS,
    LENGTHS,
    WORDS,
    D,
    E,
    fill,
    make_inputs,
    make_memory,
    slots_of,
)


def test_nothing_is_written_in_evaluation():
    memory = fill(make_memory())
    before = {name: value.clone() for name, value in memory.state_dict().items()}
    memory(*make_inputs(), KEYS, LENGTHS)
    for name, value in memory.state_dict().items():
        assert torch.equal(before[name], value), name


def test_query_comes_before_the_write():
    memory, copy = fill(make_memory(read_singletons=True)), fill(make_memory())
    vectors, states = make_inputs()
    memory.train()
    response = memory(vectors, states, KEYS, LENGTHS)[0]
    torch.testing.assert_close(response, copy(vectors, states, KEYS, LENGTHS)[0])
    assert not torch.equal(memory.values, copy.values)


def test_silent_until_one_epoch_was_written():
    memory = make_memory()
    memory.train()
    keys = numpy.repeat(WORDS, COUNTS)[None]
    for place in range(keys.shape[1]):
        one = keys[:, place : place + 1]
        for mode in (False, True):
            assert not memory.train(mode)(*make_inputs(place, (1, 1)), one, [1])[1].any()
    assert memory.eval()(*make_inputs(0, (1, 1)), keys[:, :1], [1])[1].all()


def test_every_slot_is_written_once_an_epoch():
    memory, rng = make_memory(), numpy.random.default_rng(0)
    memory.train()
    for epoch in range(3):
        order = rng.permutation(numpy.repeat(WORDS, COUNTS))
        vectors, states = make_inputs(epoch, (1, len(order)))
        states[..., 0] = torch.arange(len(order)) + 1000.0 * epoch  # a number for each token
        for part in numpy.array_split(numpy.arange(len(order)), 4):
            keys = order[None, part]
            memory(vectors[:, part], states[:, part], keys, [len(part)])
        assert sorted(memory.values[:, 0].tolist()) == states[0, :, 0].tolist()
        for word in WORDS:
            stored = memory.values[slots_of(memory, word), 0] - 1000.0 * epoch
            assert sorted(stored.tolist()) == numpy.flatnonzero(order == word).tolist()


def test_a_crowded_batch_leaves_the_last_tokens():
    memory = make_memory()
    keys = numpy.full((1, 7), 12)  # two slots
    vectors, states = make_inputs(0, (1, 7))
    memory.train()(vectors, states, keys, [7])
    stored = memory.values[slots_of(memory, 12)]
    torch.testing.assert_close(stored, states[0, [6, 5]])  # the seventh is the first of its round
    torch.testing.assert_close(memory.keys[slots_of(memory, 12)], unit(vectors[0, [6, 5]]))


def test_capped_memory_answers_and_wakes_after_an_epoch():
    memory = make_memory(max_slots=10)
    assert len(memory.keys) == memory.index.n_slots == 9  # 3 + 1 + 2 + 3
    assert memory.index.is_silent
    fill(memory)
    assert not memory.index.is_silent
    assert memory(*make_inputs(), KEYS, LENGTHS)[1].sum() == 7
    dropped = make_memory(max_slots=2)
    assert dropped.index.table[0].tolist() == [40, FAR]


def test_half_precision_is_close_and_half_as_big():
    full, half = fill(make_memory()), fill(make_memory(dtype="float16"))
    assert half.values.dtype == half.keys.dtype == torch.float16
    table = full.index.table.nbytes
    assert half.megabytes * 1e6 - table == (full.megabytes * 1e6 - table) / 2
    ask = (*make_inputs(), KEYS, LENGTHS)
    torch.testing.assert_close(full(*ask)[0], half(*ask)[0], rtol=1e-2, atol=1e-2)
    assert half(*ask)[0].dtype == torch.float32


def test_megabytes():
    memory = make_memory()
    assert memory.megabytes == pytest.approx((28 * (E + D) * 4 + 4 * 4 * 8) / 1e6)


def test_state_goes_into_a_fresh_memory_and_training_goes_on():
    memory = fill(make_memory())
    fresh = WordMemory(key_width=E, value_width=D).eval()
    fresh.load_state_dict(memory.state_dict())
    for _ in range(2):
        ask = (*make_inputs(), KEYS, LENGTHS)
        assert torch.equal(memory.eval()(*ask)[0], fresh.eval()(*ask)[0])
        for one in (memory, fresh):
            one.train()(*make_inputs(7), KEYS, LENGTHS)
            assert one.index.table[WRITES].sum() > one.index.table[COUNT].sum()
    assert torch.equal(memory.values, fresh.values)


def test_saved_state_is_a_copy():
    memory = fill(make_memory())
    state = memory.state_dict()
    before = state["_extra_state"].clone()
    memory.train()(*make_inputs(), KEYS, LENGTHS)
    assert torch.equal(state["_extra_state"], before)


def test_words_are_learned_once():
    memory = fill(make_memory())
    memory.learn_words(numpy.array([1]), numpy.array([3]))
    assert memory.index.n_slots == COUNTS.sum()
