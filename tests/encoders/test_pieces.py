"""Windows, words and pieces: laws by brute force, without a tokenizer."""

from __future__ import annotations

import numpy
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_spanner.encoders.pieces import (
    END,
    OWN_END,
    OWN_START,
    START,
    PieceReader,
    Windows,
    overlaps,
)
from spacy_spanner.grouping import like_lengths

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=40)


@given(st.integers(0, 200), st.integers(1, 20), st.integers(1, 20), st.integers(0, 7))
def test_every_word_is_owned_once_and_read_where_it_is_owned(n_words, size, stride, start):
    stride = min(size, stride)
    table = Windows(size, stride).strided(start, start + n_words)
    owned = [i for row in table for i in range(row[OWN_START], row[OWN_END])]
    assert owned == list(range(start, start + n_words))
    assert (table[:, START] <= table[:, OWN_START]).all()
    assert (table[:, OWN_END] <= table[:, END]).all()
    assert (table[:, END] - table[:, START] <= size).all()


@given(st.integers(1, 200), st.integers(2, 20), st.data())
def test_each_word_is_owned_where_it_has_most_context(n_words, size, data):
    stride = data.draw(st.integers((size + 1) // 2, size))  # no word is in more than two windows
    table = Windows(size, stride).strided(0, n_words)

    def context(row, word):
        left = numpy.inf if row[START] == 0 else word - row[START]
        right = numpy.inf if row[END] == n_words else row[END] - 1 - word
        return min(left, right)

    for word in range(n_words):
        reading = [row for row in table if row[START] <= word < row[END]]
        owner = next(row for row in reading if row[OWN_START] <= word < row[OWN_END])
        assert context(owner, word) == max(context(row, word) for row in reading)


@pytest.mark.huggingface
def test_white_space_is_a_sequence_without_special_pieces_too():
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"ada": 0}, unk_token="ada")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    reader = PieceReader(tokenizer, max_pieces=8, windows=Windows())
    vocab = spacy.blank("en").vocab
    batch = reader.read([Doc(vocab, words=["\n"]), Doc(vocab, words=["ada"])])
    assert [len(ids) for ids in batch.ids] == [1, 1]
    assert (batch.word.tolist(), batch.sequence.tolist(), batch.n_words) == ([1], [1], 2)


spans = st.lists(st.integers(0, 3), min_size=2, max_size=40)


@given(spans, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6)), max_size=30))
def test_pairs_share_a_character(steps, pieces):
    bounds = numpy.cumsum([step + 1 for step in steps])
    starts, ends = bounds[:-1], bounds[:-1] + numpy.maximum(numpy.diff(bounds) - 1, 1)
    first = numpy.array([a for a, _ in pieces], dtype="int64")
    last = numpy.array([a + n for a, n in pieces], dtype="int64")
    expected = [
        (i, j)
        for i, (a, b) in enumerate(zip(first, last))
        for j, (c, d) in enumerate(zip(starts, ends))
        if set(range(a, b)) & set(range(c, d))
    ]
    assert list(zip(*map(numpy.ndarray.tolist, overlaps(first, last, starts, ends)))) == expected


@given(LENGTHS, st.integers(1, 300))
def test_groups_hold_each_sequence_once_within_the_budget(lengths, budget):
    array = numpy.array(lengths)
    groups = list(like_lengths(array, lambda size: budget // size, lambda _: budget // 32))
    assert sorted(numpy.concatenate(groups).tolist()) == list(range(len(lengths)))
    for rows in groups:
        assert array[rows[0]] == array[rows].max()
        assert len(rows) == 1 or len(rows) * array[rows].max() <= budget
