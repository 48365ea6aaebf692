"""Laws of rows: every start token is owned once, and rows hold what they promise."""

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_spanner.batch import DOC, END, OWN_END, OWN_START, START
from spacy_spanner.pipeline.rows import cut_rows, windows

VOCAB = spacy.blank("en").vocab


def make_doc(length, sentence_starts=None):
    starts = None
    if sentence_starts is not None:
        starts = [i == 0 or i in sentence_starts for i in range(length)]
    return Doc(VOCAB, words=["w"] * length, sent_starts=starts)


@given(st.integers(1, 200), st.integers(2, 40), st.data())
@settings(max_examples=200, deadline=None)
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
@settings(max_examples=100, deadline=None)
def test_sentences_stay_whole_where_they_fit(sentence_lengths, pack):
    bounds = numpy.cumsum([0, *sentence_lengths])
    doc = make_doc(int(bounds[-1]), set(bounds[:-1].tolist()))
    rows = cut_rows([doc], window=20, overlap=8, pack=pack)
    for start, end in zip(bounds[:-1], bounds[1:]):
        holds = (rows[:, START] <= start) & (rows[:, END] >= end)
        assert holds.any() == (end - start <= 20)
    if not pack and max(sentence_lengths) <= 20:
        assert rows[:, START].tolist() == bounds[:-1].tolist()
    owned = numpy.concatenate([numpy.arange(a, b) for a, b in rows[:, [OWN_START, OWN_END]]])
    assert owned.tolist() == list(range(len(doc)))


def test_rows_of_a_document_do_not_depend_on_the_batch():
    docs = [make_doc(n) for n in (3, 0, 70, 20)]
    together = cut_rows(docs, window=16, overlap=4, pack=True)
    for i, doc in enumerate(docs):
        alone = cut_rows([doc], window=16, overlap=4, pack=True)
        assert together[together[:, DOC] == i][:, 1:].tolist() == alone[:, 1:].tolist()


@pytest.mark.parametrize("length,expected", [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_number_of_rows(length, expected):
    assert len(cut_rows([make_doc(length)], window=16, overlap=4, pack=True)) == expected
