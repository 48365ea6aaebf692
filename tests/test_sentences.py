"""Sentence boundaries: marked or rule-based; never longer than the bound."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_spanner.pipeline.rows import cut_rows
from spacy_spanner.sentences import found_starts, marked_starts, sentence_starts

VOCAB = spacy.blank("en").vocab
LONGEST = 20


def starts_of(words, **options):
    starts = sentence_starts([Doc(VOCAB, words=words, **options)], LONGEST)[0]
    return [i for i, begins in enumerate(starts) if begins]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("He came . She left .", ["He", "She"]),
        ("Really ? ! Yes . And so on", ["Really", "Yes", "And"]),
        ("About 0 . 5 mg", ["About"]),  # before a number
        ("J . Smith left . It rained", ["J", "It"]),  # after a single letter
        ("in vitamin B . The next , e . g . , this", ["in", "The"]),  # a function word, a comma
        ("( see 3 ) . Two more", ["(", "Two"]),
        ("the theater. In Calif. , Sept. 3", ["the", "In"]),  # the stop left at the word
        ("growth of cells vs . controls", ["growth"]),  # before a word in lower case
        ("今天 很 好 。 明天 呢 ？ 好", ["今天", "明天", "好"]),  # noqa: RUF001
        ("no end at all", ["no"]),
        ('He said " yes . " She left .', ["He", "She"]),  # a quotation mark that closes
        ('He left . " No . " " Yes . "', ["He", '"', '"']),  # and one that opens
        ("( They left . ) All did", ["(", "All"]),
        ("` ` Why ? ' ' he said . So", ["`", "So"]),
        ("in the city. On May 30. It", ["in", "On", "It"]),
    ],
)
def test_unmarked_sentences_end_at_their_marks(text, expected):
    words = text.split()
    assert [words[i] for i in starts_of(words)] == expected


def test_marked_sentences_are_taken_as_they_are():
    words = ["One", ".", "Two", ".", "Three"]
    assert starts_of(words, sent_starts=[True, False, True, False, False]) == [0, 2]
    one = Doc(VOCAB, words=words, sent_starts=[True, False, False, False, False])
    assert marked_starts(one) == [0] and sentence_starts([one], LONGEST)[0].sum() == 1
    assert marked_starts(Doc(VOCAB, words=words)) == []


def test_blank_lines_end_sentences():
    assert starts_of(["Chapter", "One", "\n\n", "it", "rained", "\n", "again"]) == [0, 3]


def test_sentences_longer_than_the_bound_are_cut_evenly():
    assert starts_of(["w"] * (2 * LONGEST + 3)) == [0, 15, 30]
    assert starts_of(["w"] * 5 + ["!"] + ["w"] * (LONGEST + 1)) == [0, 6, 17]
    assert starts_of([]) == [] and starts_of(["w"]) == [0]
    marked = [True, False, True, *[False] * LONGEST]
    assert starts_of(["w"] * len(marked), sent_starts=marked) == [0, 2, 13]


def test_short_documents_are_one_sentence_if_so_wanted():
    """For a head as for its encoder: corpora come so."""
    text = ["He", "came", ".", "She", "left", "."]
    docs = [Doc(VOCAB, words=text), Doc(VOCAB, words=text * 2)]
    docs.append(Doc(VOCAB, words=text, sent_starts=[i in (0, 4) for i in range(len(text))]))
    starts = sentence_starts(docs, LONGEST, whole=6)[0]
    assert numpy.flatnonzero(starts).tolist() == [0, 6, 9, 12, 15, 18, 22]
    assert found_starts(docs[0]) == [0] == found_starts(docs[1])
    rows = cut_rows(docs, window=50, overlap=8, pack=True, marked=docs)
    assert rows.sentence_starts is not None
    assert numpy.flatnonzero(rows.sentence_starts).tolist() == [0, 6, 18, 22]


def test_documents_do_not_matter_to_each_other():
    texts = ["He came . She left .", "", "And so", "One . Two", "w " * 300]
    texts += ['" Open', 'He left . " No . "', "a b", ". It"]
    docs = [Doc(VOCAB, words=text.split()) for text in texts]
    docs.append(Doc(VOCAB, words=["a", ".", "B"], sent_starts=[True, False, False]))
    alone = [start for doc in docs for start in sentence_starts([doc], LONGEST)[0]]
    assert sentence_starts(docs, LONGEST)[0].tolist() == alone
    assert sentence_starts([], LONGEST)[0].tolist() == []


def test_a_cut_is_no_annotated_boundary():
    words = ["a"] * 10
    doc = Doc(VOCAB, words=words, sent_starts=[True, False, True, *[False] * 7])
    starts, marked = sentence_starts([doc, Doc(VOCAB, words=words)], 4)
    assert numpy.flatnonzero(starts).tolist() == [0, 2, 6, 10, 14, 18]
    assert marked.tolist() == [i < 10 and i != 6 for i in range(20)]
