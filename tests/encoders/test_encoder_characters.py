"""Character encoders against slow loops over single words."""

from __future__ import annotations

from typing import List

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_spanner.encoders.characters import (
    EXACT,
    build_char_bilstm,
    build_char_cnn,
    build_int_net,
    character_rows,
    grouped,
)
from spacy_spanner.encoders.packing import PackedBiLSTM, packed_order

WORDS = ["a", "bb", "the", "Straße", "Zürich", "internationalization", "x1", "東京都", "ab" * 30]


def encode(model, make_docs) -> numpy.ndarray:
    docs = make_docs(" ".join(WORDS))
    model.initialize(docs)
    return model.predict(docs)[0]


def embedded(model, word: str) -> torch.Tensor:
    """(1, E, K)"""
    rows, _ = character_rows([word], model.attrs["n_chars"], model.attrs["max_chars"])
    return model.shims[0].module.table.rows[torch.from_numpy(rows)].T[None]


def test_cnn_is_the_largest_filter_response_of_a_word(make_docs):
    model = build_char_cnn(char_width=4, filters=5, kernel=3)
    found = encode(model, make_docs)
    convolve = model.shims[0].module.convolve
    for word, vector in zip(WORDS, found, strict=True):
        x = embedded(model, word)[0].T  # (K, E)
        x = torch.cat([torch.zeros(1, 4), x, torch.zeros(1, 4)])
        windows = [x[i : i + 3].T for i in range(len(x) - 2)]  # (E, 3) each
        responses = [
            (window * convolve.weight).sum(dim=(1, 2)) + convolve.bias for window in windows
        ]
        assert_allclose(vector, torch.stack(responses).detach().amax(dim=0), atol=1e-5)


def test_int_net_follows_its_definition_on_a_single_word(make_docs):
    model = build_int_net(char_width=4, first_filters=3, filters=2, layers=7)
    found = encode(model, make_docs)
    net = model.shims[0].module
    for word, vector in zip(WORDS, found, strict=True):
        x = embedded(model, word)
        channels = torch.cat([torch.relu(conv(x)) for conv in net.first.kernels], dim=1)
        for narrow, wide in zip(net.narrow, net.wide, strict=True):
            x = torch.relu(narrow(channels))
            new = torch.cat([torch.relu(conv(x)) for conv in wide.kernels], dim=1)
            channels = torch.cat([new, channels], dim=1)
        assert_allclose(vector, channels[0].max(dim=1).values.detach(), atol=1e-5)


def test_int_net_has_the_published_size():
    assert build_int_net().get_dim("nO") == 160


@pytest.mark.parametrize("pool", ["last", "mean"])
def test_bilstm_is_that_of_a_single_word(make_docs, pool):
    model = build_char_bilstm(char_width=4, hidden_width=3, pool=pool)
    found = encode(model, make_docs)
    lstm = model.shims[0].module.lstm.lstm
    for word, vector in zip(WORDS, found, strict=True):
        states, (last, _) = lstm(embedded(model, word).permute(2, 0, 1))  # (K, 1, 2H)
        expected = last.reshape(-1) if pool == "last" else states[:, 0].mean(dim=0)
        assert_allclose(vector, expected.detach(), atol=1e-5)


def test_the_same_word_is_encoded_once(make_docs):
    model = build_char_cnn(char_width=4, filters=5)
    docs = make_docs("a b a", "b a b a")
    model.initialize(docs)
    seen = []
    model.shims[0].module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[1])))
    first, second = model.predict(docs)
    assert seen == [2]
    assert_allclose(first[[0, 1, 0, 1]], second[[1, 0, 3, 2]])


def test_character_rows():
    rows, lengths = character_rows(["aé", "", "abcdefg", "東"], 500, 5)
    assert lengths.tolist() == [2, 1, 5, 1]
    assert rows[:2].tolist() == [ord("a"), ord("é")]
    assert rows[2] == 0
    assert "".join(map(chr, rows[3:8])) == "abcfg"  # the middle of a long word is left out
    assert rows[8] == EXACT + ord("東") % (500 - EXACT)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6))
def test_every_character_has_a_row(texts: List[str]):
    rows, lengths = character_rows(texts, 400, 8)
    assert len(rows) == lengths.sum()
    assert ((rows >= 0) & (rows < 400)).all()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_groups_hold_each_word_once(sizes: List[int]):
    lengths = numpy.array(sizes)
    starts = numpy.cumsum(lengths) - lengths
    seen = []
    for words, places, mask in grouped(lengths):
        seen.extend(words.tolist())
        for word, row, real in zip(words, places, mask, strict=True):
            expected = list(range(starts[word], starts[word] + lengths[word]))
            assert row[real].tolist() == expected
            assert real[: lengths[word]].all()
    assert sorted(seen) == list(range(len(sizes)))


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_packed_order_is_that_of_torch(sizes: List[int]):
    rows = torch.split(torch.arange(sum(sizes)), sizes)
    packed = torch.nn.utils.rnn.pack_sequence(list(rows), enforce_sorted=False)
    order, turned, batch_sizes = packed_order(numpy.array(sizes))
    assert batch_sizes.tolist() == packed.batch_sizes.tolist()
    # Rows of one length may change places; each row keeps its own.
    ours = torch.nn.utils.rnn.PackedSequence(torch.from_numpy(order), packed.batch_sizes)
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(ours, batch_first=True)
    found = {tuple(row[:n].tolist()) for row, n in zip(padded, lengths, strict=True)}
    assert found == {tuple(row.tolist()) for row in rows}
    backwards = torch.nn.utils.rnn.PackedSequence(torch.from_numpy(turned), packed.batch_sizes)
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(backwards, batch_first=True)
    found = {tuple(row[:n].flip(0).tolist()) for row, n in zip(padded, lengths, strict=True)}
    assert found == {tuple(row.tolist()) for row in rows}


@pytest.mark.parametrize("learns", [True, False])
def test_packed_bilstm_is_that_of_single_rows(learns: bool):
    torch.manual_seed(0)
    lstm = PackedBiLSTM(width=3, hidden=2, layers=2)
    lengths = numpy.array([2, 5, 1, 5])
    x = torch.randn(13, 3)
    with torch.set_grad_enabled(learns):
        states, last = lstm(x, lengths)
    for i, (row, found) in enumerate(
        zip(x.split(lengths.tolist()), states.split(lengths.tolist()), strict=True)
    ):
        alone, (h, _) = lstm.lstm(row[:, None])
        torch.testing.assert_close(found, alone[:, 0])
        torch.testing.assert_close(last[i], torch.cat([h[-2, 0], h[-1, 0]]))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 2))
def test_gradients_of_the_bilstm_are_those_of_torch(sizes: List[int], layers: int):
    lstm = PackedBiLSTM(width=3, hidden=2, layers=layers).double()
    x = torch.randn(sum(sizes), 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(sum(sizes), 4, dtype=torch.float64)
    parameters = [x, *lstm.parameters()]
    ours, theirs = (
        torch.autograd.grad((weights * states).sum(), parameters)
        for states in (lstm.learn(x, numpy.array(sizes)), lstm.run(x, numpy.array(sizes)))
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "build, options",
    [
        (build_char_cnn, {"kernel": 2}),
        (build_char_cnn, {"n_chars": EXACT}),
        (build_char_bilstm, {"max_chars": 1}),
        (build_int_net, {"kernels": [3, 4]}),
        (build_int_net, {"kernels": []}),
        (build_int_net, {"layers": 4}),
    ],
)
def test_impossible_options_are_refused(build, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        build(**options)
