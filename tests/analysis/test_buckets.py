"""Attributes and buckets equal what is counted by hand in `cases`; parts sum to the whole."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.analysis import attributes, mistakes, scores
from spacy_spanner.analysis.buckets import bucket_counts, make_split
from spacy_spanner.analysis.scores import Counts
from spacy_spanner.analysis.systems import read_systems

from .cases import CORPORA, PRED, VOCAB, make_facts, make_systems, random_systems


@pytest.fixture
def system():
    return make_systems(PRED)[0]


def value(system, key):
    """An attribute of all gold and all predicted spans."""
    own = {attribute.key: attribute for attribute in attributes.ATTRIBUTES}[key]
    facts, corpus = make_facts(), system.corpus
    return (
        own.values(corpus, corpus.gold, facts).tolist(),
        own.values(corpus, system.pred, facts).tolist(),
    )


def test_attributes(system):
    assert value(system, "entity_length") == ([1, 3, 1, 1, 1], [1, 3, 1, 1, 2, 1])
    assert value(system, "text_length") == ([9] * 4 + [2], [9] * 4 + [2, 2])
    four = [4 / 9] * 4
    assert value(system, "entity_density") == ([*four, 1 / 2], [*four, 1 / 2, 0])
    five = [5 / 9] * 4  # Ann, Bank of Rome, Rome
    assert value(system, "entity_tokens") == ([*five, 1 / 2], [*five, 1 / 2, 0])
    # only Rome in Bank of Rome is inside; "Rome fell" is larger than gold, not inside it
    assert value(system, "nesting_depth") == ([1, 1, 2, 1, 1], [1, 1, 2, 1, 1, 1])
    third = 2 / 3
    assert value(system, "label_consistency") == (
        [0, 0, third, third, third],
        [0, 0, third, 0, 0, 0],
    )
    # not in training: Bank in, of the nine; fell; Nothing here
    assert value(system, "oov_density") == ([2 / 9] * 4 + [1 / 2], [2 / 9] * 4 + [1 / 2, 1])
    assert value(system, "vocabulary") == ([0, 1, 0, 0, 0], [0, 1, 0, 0, 1, 1])
    assert attributes.corpus_oov_density(system.corpus, make_facts()) == 5 / 13


def test_vocabularies_with_vectors():
    vocab = Vocab()
    vocab.reset_vectors(width=2)
    for word in ("ann", "Bank", "fell"):
        vocab.set_vector(word, numpy.ones(2, dtype="float32"))
    words = ["Ann", "Bank", "fell", "Rome", "Nothing"]
    pred = Doc(vocab, words=words)
    gold = Doc(VOCAB, words=words)
    for doc in (pred, gold):
        spans = [Span(doc, i, i + 1, label="X") for i in range(5)]
        doc.spans["sc"] = SpanGroup(doc, name="sc", spans=[*spans, Span(doc, 1, 4, label="X")])
    [system] = read_systems(["x"], [[pred]], [gold], output="spans", spans_key="sc")
    assert system.corpus.embedded == {"Ann", "Bank", "fell"}
    facts = attributes.TrainingFacts(words={"Ann", "Rome"})
    values = attributes.vocabulary(system.corpus, system.corpus.gold, facts).tolist()
    # Ann; Bank; Bank fell Rome; fell; Rome; Nothing
    assert [attributes.VOCABULARIES[i] for i in values] == [
        "IV",
        "OOTV",
        "OOBV",
        "OOTV",
        "OOEV",
        "OOBV",
    ]
    split = make_split(attributes.ATTRIBUTES[-1], system.corpus, facts)
    counts = [bucket.counts.tp for bucket in bucket_counts(system, split, facts)]
    assert split.names == attributes.VOCABULARIES and counts == [1, 2, 1, 2]


# Table 5 of the paper, and both ends of each interval.
@pytest.mark.parametrize(
    "key,expected",
    [
        ("entity_length", {1: "XS", 2: "S", 3: "L", 4: "L", 5: "XL", 30: "XL"}),
        ("text_length", {1: "XS", 7: "XS", 8: "S", 16: "S", 17: "L", 31: "L", 32: "XL"}),
        ("label_consistency", {0: "XS", 0.1: "XS", 0.11: "S", 0.5: "S", 0.9: "L", 0.91: "XL"}),
        ("entity_density", {0: "XS", 0.01: "XS", 0.025: "S", 0.05: "L", 0.051: "XL", 1: "XL"}),
        ("entity_tokens", {0: "S", 0.1: "S", 0.11: "M", 0.3: "M", 0.31: "L"}),
        ("nesting_depth", {1: "outer", 2: "2nd", 3: "3rd +", 5: "3rd +"}),
    ],
)
def test_intervals(system, key, expected):
    own = {attribute.key: attribute for attribute in attributes.ATTRIBUTES}[key]
    split = make_split(own, system.corpus, make_facts())
    numbers = split.numbers(numpy.array(list(expected)))
    assert [split.names[i] for i in numbers] == list(expected.values())


def test_bucket_rates_by_hand(system):
    split = make_split(attributes.ATTRIBUTES[0], system.corpus, None)
    assert [tuple(bucket) for bucket in bucket_counts(system, split)] == [
        ("XS", "1", Counts(2, 2, 2)),
        ("S", "2", Counts(0, 0, 1)),
        ("L", "3-4", Counts(1, 0, 0)),
        ("XL", "5 +", Counts(0, 0, 0)),
    ]


def test_quartiles(system):
    length = attributes.ATTRIBUTES[1]
    split = make_split(length, system.corpus, None, quartiles=True)
    # gold text lengths 2 9 9 9 9: all quartiles are 9, the largest, so nothing is cut
    assert split.bounds == () and split.names == ("all",)
    density = attributes.ATTRIBUTES[2]
    split = make_split(density, system.corpus, None, quartiles=True)
    assert split.bounds == (4 / 9,) and split.names == ("S", "L")
    assert [bucket.interval for bucket in bucket_counts(system, split)] == ["≤ .44", "> .44"]


@settings(max_examples=40, deadline=None)
@given(CORPORA, st.booleans())
def test_parts_sum_to_the_whole(corpora, quartiles):
    """Buckets, labels, lengths, documents, kinds of errors and the confusion table all hold every
    true positive, false negative and false positive once; a true positive has the same bucket on both
    sides."""
    [system] = random_systems(corpora)
    whole, facts = scores.overall(system), make_facts()
    for attribute in attributes.ATTRIBUTES:
        split = make_split(attribute, system.corpus, facts, quartiles=quartiles)
        parts = [bucket.counts for bucket in bucket_counts(system, split, facts)]
        assert Counts(*map(sum, zip(*parts, strict=True))) == whole
        gold = attribute.values(system.corpus, system.corpus.gold, facts)
        pred = attribute.values(system.corpus, system.pred, facts)
        assert numpy.array_equal(gold[system.found], pred[system.correct])
    for parts in (scores.by_label(system).values(), dict(scores.by_length(system)).values()):
        assert Counts(*map(sum, zip(*parts, strict=True))) == whole if parts else not any(whole)
    assert tuple(scores.by_document(system).sum(axis=0)) == whole
    errors = mistakes.error_counts(system)
    assert errors.type + errors.boundary + errors.spurious == whole.fp
    assert errors.total == whole.fn + whole.fp
    counts, n_labels = mistakes.confusion(system), len(system.corpus.labels)
    gold, pred = system.corpus.gold.spans[:, 3], system.pred.spans[:, 3]
    assert (counts[:-1].sum(axis=1) == numpy.bincount(gold, minlength=n_labels)).all()
    assert (counts[:, :-1].sum(axis=0) == numpy.bincount(pred, minlength=n_labels)).all()
    assert counts.trace() == whole.tp
