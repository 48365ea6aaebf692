"""Answers of the key-value memory against slow loops."""

import math

import numpy
import pytest
import torch

from spacy_spanner.models.memory import WordMemory, unit

from .memory_cases import (
    FAR,
    KEYS,
    LENGTHS,
    UNSEEN,
    D,
    E,
    fill,
    make_inputs,
    make_memory,
    slots_of,
)


def slow_response(memory, query, key, similarity):
    """Eq. 9-12 for one token, over all slots of its word."""
    slots = slots_of(memory, key)
    logits = []
    for slot in slots:
        k = memory.keys[slot].to(query.dtype)
        u = sum(float(a) * float(b) for a, b in zip(query, k, strict=True))
        if similarity == "scaled":
            u /= math.sqrt(len(query))
        if similarity == "cosine":
            u /= float(query.norm()) * float(k.norm())
        logits.append(u)
    total = sum(math.exp(u) for u in logits)
    response = torch.zeros(D, dtype=query.dtype)
    for slot, u in zip(slots, logits, strict=True):
        response += math.exp(u) / total * memory.values[slot].to(query.dtype)
    return response


@pytest.mark.parametrize("similarity", ["dot", "scaled", "cosine"])
@pytest.mark.parametrize("with_grad", [True, False])
def test_response_equals_a_loop(similarity, with_grad):
    memory = fill(make_memory(similarity=similarity))
    vectors, states = make_inputs()
    with torch.set_grad_enabled(with_grad):
        response, answered = memory(vectors, states, KEYS, LENGTHS)
    for row, n in enumerate(LENGTHS):
        for t in range(KEYS.shape[1]):
            seen = t < n and KEYS[row, t] != UNSEEN
            assert bool(answered[row, t]) == seen
            expected = torch.zeros(D)
            if seen:
                expected = slow_response(memory, vectors[row, t], KEYS[row, t], similarity)
            torch.testing.assert_close(response[row, t], expected, rtol=1e-4, atol=1e-5)


def test_cached_answers_are_the_same_and_never_stale():
    memory = fill(make_memory())
    vectors, states = make_inputs()
    with torch.no_grad():
        first = memory(vectors, states, KEYS, LENGTHS)[0]
        again = memory(vectors, states, KEYS, LENGTHS)[0]
        torch.testing.assert_close(first, again)
        # Another vector of the same word is another question.
        other = memory(vectors + 1, states, KEYS, LENGTHS)[0]
        with torch.enable_grad():
            torch.testing.assert_close(other, memory(vectors + 1, states, KEYS, LENGTHS)[0])
        assert not torch.allclose(first, other)
        fill(memory, seed=9)
        later = memory(vectors, states, KEYS, LENGTHS)[0]
        with torch.enable_grad():
            torch.testing.assert_close(later, memory(vectors, states, KEYS, LENGTHS)[0])
        assert not torch.allclose(first, later)


def test_cache_is_read():
    memory = fill(make_memory())
    vectors, states = make_inputs()
    with torch.no_grad():
        static = vectors[:1, :1].expand(*KEYS.shape, E)
        first = memory(static, states, KEYS, LENGTHS)[0]
        memory.values.zero_()  # behind its back: only the cache still knows
        torch.testing.assert_close(memory(static, states, KEYS, LENGTHS)[0], first)


def test_cache_of_words_that_never_ask_the_same_is_given_up(monkeypatch):
    monkeypatch.setattr("spacy_spanner.models.memory.TRIED", 8)
    memory = fill(make_memory())
    vectors, states = make_inputs()
    with torch.no_grad():
        for step in range(4):
            found = memory(vectors + step, states, KEYS, LENGTHS)[0]
            assert memory.cache.is_of_use == (step < 2)  # the first questions were all new
            with torch.enable_grad():
                torch.testing.assert_close(found, memory(vectors + step, states, KEYS, LENGTHS)[0])


@pytest.mark.parametrize("most_read", [500, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_slots_read_where_they_are(most_read, dtype, monkeypatch):
    memory = fill(make_memory(most_read=most_read, dtype=dtype))
    vectors, states = make_inputs()
    keys = numpy.full((2, 20), FAR)  # more than a block of questions
    many = (*make_inputs(0, keys.shape), keys, [20, 15])
    with torch.no_grad():
        expected = [memory(vectors, states, KEYS, LENGTHS)[0], memory(*many)[0]]
        memory.cache = None
        monkeypatch.setattr("spacy_spanner.models.memory.MANY_SLOTS", 1)
        found = [memory(vectors, states, KEYS, LENGTHS)[0], memory(*many)[0]]
    torch.testing.assert_close(found, expected)


def test_rows_do_not_depend_on_each_other_or_on_padding():
    memory = fill(make_memory(most_read=3))
    vectors, states = make_inputs()
    whole = memory(vectors, states, KEYS, LENGTHS)[0]
    for row, n in enumerate(LENGTHS):
        cut = slice(row, row + 1), slice(0, n)
        alone = memory(vectors[cut], states[cut], KEYS[cut], [n])[0]
        torch.testing.assert_close(whole[row, :n], alone[0])


def test_words_that_occur_once_have_no_answer_of_their_own_in_training():
    memory = fill(make_memory())
    keys = numpy.array([[-7, 12]])
    ask = (*make_inputs(0, keys.shape), keys, [2])
    assert memory(*ask)[1].tolist() == [[True, True]]
    assert memory.train()(*ask)[1].tolist() == [[False, True]]
    assert fill(make_memory(read_singletons=True)).train()(*ask)[1].tolist() == [[True, True]]


def test_at_most_so_many_slots_answer():
    memory = fill(make_memory(most_read=4, similarity="dot"))
    memory.keys.zero_()  # all slots alike
    memory.values.copy_(torch.eye(len(memory.values), D))
    memory.values[:, 0] = 0
    slots = slots_of(memory, FAR)
    memory.values[slots, 0] = 2.0 ** torch.arange(len(slots))  # sums tell which slots were read
    keys = numpy.array([[FAR, 40]])

    def slots_read():
        total = round(float(memory(*make_inputs(0, keys.shape), keys, [2])[0][0, 0, 0]) * 4)
        assert bin(total).count("1") == 4
        return total

    assert len({slots_read() for _ in range(5)}) == 1  # prediction repeats itself
    memory.index.claim = lambda found: (numpy.zeros(0, "int64"), numpy.zeros(0, "int64"))
    memory.train()
    assert len({slots_read() for _ in range(8)}) > 1  # training does not


@pytest.mark.parametrize("seeds,same", [((3, 3), True), ((3, 4), False)])
def test_choice_of_slots_is_seeded(seeds, same):
    first, second = (fill(make_memory(most_read=4, seed=seed)) for seed in seeds)
    ask = (*make_inputs(), KEYS, LENGTHS)
    assert torch.equal(first(*ask)[0], second(*ask)[0]) == same


def test_without_words_nothing_is_answered():
    memory = WordMemory(key_width=E, value_width=D).train()
    response, answered = memory(*make_inputs(), None, LENGTHS)
    assert not response.any() and not answered.any()


def test_gradient_goes_to_the_query_only():
    memory = fill(make_memory()).double()
    vectors, states = make_inputs(dtype=torch.float64)
    vectors.requires_grad_(True)
    states.requires_grad_(True)

    def ask(x):
        return memory(x, states, KEYS, LENGTHS)[0]

    assert torch.autograd.gradcheck(ask, vectors)
    grad_vectors, grad_states = torch.autograd.grad(
        ask(vectors).pow(2).sum(), [vectors, states], allow_unused=True
    )
    assert grad_states is None
    has_gradient = grad_vectors.abs().sum(2) > 0
    # A word with one slot is answered alike whatever it asks.
    assert has_gradient.tolist() == [
        [True, True, True, False, True],
        [False, True, True, False, False],
    ]


def test_no_gradient_into_the_memory():
    memory = fill(make_memory()).train()
    vectors, states = make_inputs()
    states.requires_grad_(True)
    memory(vectors, states, KEYS, LENGTHS)
    assert not memory.values.requires_grad and not memory.keys.requires_grad


def test_zero_vectors_have_finite_gradients():
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    out = unit(x)
    torch.testing.assert_close(out.detach(), torch.tensor([[0.0, 0.0], [0.6, 0.8]]))
    out.sum().backward()
    assert x.grad.isfinite().all()


def test_answers_are_those_of_the_word_alone_to_the_last_bit():
    """Whatever was asked before, and whatever is asked at the same time."""
    memory = WordMemory(key_width=24, value_width=40, most_read=30)
    words, counts = numpy.arange(5), numpy.array([1, 3, 17, 33, 70])
    memory.learn_words(words, counts)
    everything = numpy.repeat(words, counts)[None]
    memory.train()
    n_words = everything.shape[1]
    memory(torch.randn(1, n_words, 24), torch.randn(1, n_words, 40), everything, [n_words])
    memory.eval()
    vectors, states = torch.randn(1, 50, 24), torch.zeros(1, 50, 40)
    keys = numpy.random.default_rng(0).choice(words, (1, 50))
    with torch.inference_mode():
        together = memory(vectors, states, keys, [50])[0]
        assert torch.equal(memory(vectors, states, keys, [50])[0], together)
        memory.cache = None
        for at in range(50):
            one = slice(at, at + 1)
            alone = memory(vectors[:, one], states[:, one], keys[:, one], [1])[0]
            assert torch.equal(alone, together[:, one])
        memory.cache = None
        few = memory(vectors[:, :7], states[:, :7], keys[:, :7], [7])[0]
        assert torch.equal(few, together[:, :7])
        assert torch.equal(memory(vectors, states, keys, [50])[0], together)
