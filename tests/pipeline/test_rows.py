"""Laws of rows: every start token is owned once, and rows hold what they promise."""

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_spanner.batch import END, OWN_END, OWN_START, START, renumber
from spacy_spanner.pipeline.rows import cut_rows, windows

VOCAB = spacy.blank("en").vocab


def make_doc(length, sentence_starts=None):
    starts = None
    if sentence_starts is not None:
        starts = [i == 0 or i in sentence_starts for i in range(length)]
    return Doc(VOCAB, words=["w"] * length, sent_starts=starts)


@given(st.integers(1, 200), st.integers(2, 40), st.data())
@settings(max_examples=200)
def test_every_start_is_owned_once_and_short_spans_are_held(length, window, data):
    overlap = data.draw(st.integers(0, window - 1))
    rows = list(windows(0, length, window=window, overlap=overlap))
    owned = [i for _, _, a, b in rows for i in range(a, b)]
    assert owned == list(range(length))
    for start, end, own_start, own_end in rows:
        assert start <= own_start < own_end <= end and end - start <= window
        for first in range(own_start, own_end):  # spans of three quarters of the overlap fit
            assert min(first + overlap - overlap // 4, length) <= end


def test_cost_is_linear():
    rows = list(windows(0, 50_000, window=256, overlap=64))
    assert sum(end - start for start, end, _, _ in rows) < 1.4 * 50_000


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.booleans())
@settings(max_examples=100)
def test_sentences_stay_whole_where_they_fit(sentence_lengths, pack):
    bounds = numpy.cumsum([0, *sentence_lengths])
    doc = make_doc(int(bounds[-1]), set(bounds[:-1].tolist()))
    rows = cut_rows([doc], window=20, overlap=8, pack=pack).table
    for start, end in zip(bounds[:-1], bounds[1:]):
        holds = (rows[:, START] <= start) & (rows[:, END] >= end)
        assert holds.any() == (end - start <= 20)
    if not pack and max(sentence_lengths) <= 20:
        assert rows[:, START].tolist() == bounds[:-1].tolist()
    owned = numpy.concatenate([numpy.arange(a, b) for a, b in rows[:, [OWN_START, OWN_END]]])
    assert owned.tolist() == list(range(len(doc)))


def test_unmarked_sentences_are_found_by_rules_where_each_is_a_row():
    sentence = ["Ada", "met", "Bo", "in", "Torvik", "last", "week", "."]
    doc = Doc(VOCAB, words=8 * sentence)  # 64 tokens
    rows = cut_rows([doc], window=20, overlap=8, pack=False, joined=numpy.ones(1, dtype=bool))
    assert rows.table.tolist() == [[8 * i, 8 * i + 8] * 2 for i in range(8)]
    short = Doc(VOCAB, words=6 * sentence)  # taken for one sentence
    assert len(cut_rows([short], window=60, overlap=8, pack=False)) == 1
    assert len(cut_rows([doc], window=60, overlap=8, pack=True)) == 2


def test_rows_of_a_document_do_not_depend_on_the_batch():
    docs = [make_doc(n) for n in (3, 0, 70, 20)]
    together = cut_rows(docs, window=16, overlap=4, pack=True)
    owner, _ = together.locate(together.table[:, START])
    for i, doc in enumerate(docs):
        alone = cut_rows([doc], window=16, overlap=4, pack=True)
        own = together.table[owner == i] - together.doc_starts[i]
        assert own.tolist() == alone.table.tolist()


@pytest.mark.parametrize("length,expected", [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_number_of_rows(length, expected):
    assert len(cut_rows([make_doc(length)], window=16, overlap=4, pack=True)) == expected


@given(st.lists(st.integers(0, 30), max_size=12), st.floats(0, 1), st.integers(0, 9))
@settings(max_examples=200)
def test_joined_rows_own_every_token_once(lengths, share, seed):
    joined = numpy.random.default_rng(seed).random(len(lengths)) < share
    docs = [make_doc(n) for n in lengths]
    rows = cut_rows(docs, window=20, overlap=8, pack=True, joined=joined)
    assert sorted(rows.order.tolist()) == list(range(len(docs)))
    owned = [i for a, b in rows.table[:, [OWN_START, OWN_END]] for i in range(a, b)]
    assert owned == list(range(sum(lengths)))
    assert (rows.table[:, END] - rows.table[:, START] <= 20).all()
    # Every position is a token of a document, and the other way round.
    doc, token = rows.locate(numpy.arange(sum(lengths)))
    assert sorted(zip(doc, token)) == [(d, i) for d, n in enumerate(lengths) for i in range(n)]
    assert (rows.doc_starts[doc] + token).tolist() == list(range(sum(lengths)))


def test_documents_are_joined_as_far_as_they_fit():
    docs = [make_doc(n) for n in (5, 9, 0, 40, 6, 7, 3)]
    rows = cut_rows(docs, window=20, overlap=8, pack=True, joined=numpy.ones(7, dtype=bool))
    sizes = [end - start for start, end in rows.table[:, [START, END]].tolist()]
    assert sizes == [14, 20, 20, 16, 16]  # 5 + 9; windows of 40 with an overlap; 6 + 7 + 3
    apart = cut_rows(docs, window=20, overlap=8, pack=True)
    assert len(apart) == 5 + 3
    chosen = numpy.array([1, 1, 0, 0, 0, 0, 0], dtype=bool)
    some = cut_rows(docs, window=20, overlap=8, pack=True, joined=chosen)
    assert some.table[0].tolist() == [0, 14, 0, 14] and len(some) == 4 + 3


def test_rows_are_renumbered():
    table = numpy.array([[0, 7], [2, 8], [2, 9], [3, 1]])
    assert renumber(table, numpy.array([2, 0]), 4).tolist() == [1, 0, 0, -1]
