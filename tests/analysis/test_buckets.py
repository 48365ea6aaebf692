"""Attributes and buckets equal what is counted by hand in `cases`; parts sum to the whole."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.analysis import attributes, mistakes, scores
from spacy_spanner.analysis.buckets import (
    DOCUMENT_BOUNDS,
    bucket_counts,
    interval_text,
    length_buckets,
    make_split,
    read_edges,
)
from spacy_spanner.analysis.scores import Counts
from spacy_spanner.analysis.systems import read_systems
from spacy_spanner.errors import UserError
from spacy_spanner.relations import StoredRelation, get_relations, set_relations

from .cases import CORPORA, PRED, VOCAB, make_doc, make_facts, make_systems, random_systems


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
    split = make_split(attributes.ATTRIBUTES[0], system.corpus, make_facts())
    assert [tuple(bucket) for bucket in bucket_counts(system, split, make_facts())] == [
        ("XS", "1", Counts(2, 2, 2)),
        ("S", "2", Counts(0, 0, 1)),
        ("L", "3-4", Counts(1, 0, 0)),
        ("XL", "5 +", Counts(0, 0, 0)),
    ]


def test_quartiles(system):
    length = attributes.ATTRIBUTES[1]
    split = make_split(length, system.corpus, make_facts(), quartiles=True)
    # gold text lengths 2 9 9 9 9: all quartiles are 9, the largest, so nothing is cut
    assert split.bounds == () and split.names == ("all",)
    density = attributes.ATTRIBUTES[2]
    split = make_split(density, system.corpus, make_facts(), quartiles=True)
    assert split.bounds == (4 / 9,) and split.names == ("S", "L")
    assert [bucket.interval for bucket in bucket_counts(system, split, make_facts())] == [
        "≤ .44",
        "> .44",
    ]


@settings(max_examples=40)
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


def slow_length_buckets(docs, bounds, size, items):
    """The counts of `length_buckets` by loops over documents.

    items: Gold and predicted sets of a pair of documents; None to leave the pair out.
    """
    result, low = [], -1
    for high in (*bounds, 10**9):
        n_docs, counts = 0, [0, 0, 0]
        for pred, gold in docs:
            both = items(pred, gold)
            if both is None or size(gold) is None or not low < size(gold) <= high:
                continue
            n_docs += 1
            for item in both[0] | both[1]:
                kind = 1 if item not in both[1] else 0 if item in both[0] else 2
                counts[kind] += 1
        if n_docs:
            result.append((n_docs, Counts(*counts)))
        low = high
    return result


def span_items(pred, gold):
    return tuple({(s.start, s.end, s.label_) for s in doc.spans["sc"]} for doc in (gold, pred))


def relation_items(pred, gold):
    if get_relations(gold) is None:
        return None
    return tuple({tuple(r)[:7] for r in get_relations(doc) or []} for doc in (gold, pred))


def n_sentences(doc):
    return len(list(doc.sents)) if doc.has_annotation("SENT_START") else None


def random_pair(rng, *, relations, sentences):
    """A document of random length with random spans, relations and sentences, and predictions."""
    size = int(rng.choice([1, 3, 30, 32, 33, 64, 65, 200, 513, 1024, 1025]))
    starts = [i == 0 or rng.random() < 0.05 for i in range(size)] if sentences else None
    pair = []
    for _ in range(2):
        doc = Doc(VOCAB, words=["w"] * size, sent_starts=starts)
        places = rng.integers(0, min(size, 4), size=6)
        spans = {(int(at), int(at) + 1, str(rng.choice(["A", "B"]))) for at in places}
        doc.spans["sc"] = [Span(doc, *span) for span in sorted(spans)]
        if relations:
            ends = sorted(spans)
            links = {(*ends[i % len(ends)], *ends[0], "r") for i in rng.integers(0, 9, size=4)}
            set_relations(doc, [StoredRelation(*link) for link in sorted(links)])
        pair.append(doc)
    return tuple(pair)


@pytest.mark.parametrize("relations", [0.0, 0.7])
@pytest.mark.parametrize("sentences", [0.0, 0.7, 1.0])
def test_length_buckets_equal_a_loop(relations, sentences):
    rng = numpy.random.default_rng(11)
    docs = [
        random_pair(rng, relations=rng.random() < relations, sentences=rng.random() < sentences)
        for _ in range(60)
    ]
    preds, golds = zip(*docs, strict=True)
    [system] = read_systems(["x"], [preds], golds, output="spans", spans_key="sc")
    buckets = length_buckets(system)
    assert list(buckets) == ["tokens", "sentences"][: 2 if sentences else 1]
    for unit, size in zip(buckets, (len, n_sentences)):
        assert list(buckets[unit]) == ["spans", "relations"][: 2 if relations else 1]
        for kind, items in zip(buckets[unit], (span_items, relation_items)):
            slow = slow_length_buckets(docs, DOCUMENT_BOUNDS[unit], size, items)
            assert [(own.documents, own.counts) for own in buckets[unit][kind]] == slow
    assert [own.interval for own in buckets["tokens"]["spans"]] == [
        *("≤ 32", "33-64", "65-128", "129-256", "513-1024", "1025 +"),
    ]
    parts = [own.counts for own in buckets["tokens"]["spans"]]
    assert Counts(*map(sum, zip(*parts, strict=True))) == scores.overall(system)


def test_length_quartiles():
    """Lengths 1 to 8: two documents in each quarter."""
    docs = [make_doc(" ".join("w" * n), [(0, 1, "A")]) for n in range(1, 9)]
    [system] = read_systems(["x"], [docs], docs, output="spans", spans_key="sc")
    buckets = length_buckets(system, quartiles=True)["tokens"]["spans"]
    assert [tuple(own[:2]) for own in buckets] == [("≤ 2", 2), ("3-4", 2), ("5-6", 2), ("7 +", 2)]


def test_intervals_of_large_numbers_are_whole():
    assert interval_text((328, 700), 0, integer=True) == "≤ 328"
    assert [interval_text((1, 2, 5), i, integer=True) for i in range(4)] == ["1", "2", "3-5", "6 +"]
    assert [interval_text((0.1, 0.5), i, integer=False) for i in range(3)] == [
        *("≤ .1", ".1-.5", "> .5"),
    ]


# Own buckets


def test_own_buckets_hold_every_value_once(system):
    splits = read_edges(["length=1-4,5-9,10-", "density=0-.1,.1-.3,.3-"])
    assert list(splits) == ["entity_length", "entity_density"]
    length = splits["entity_length"]
    assert length.names == ("1-4", "5-9", "10-") and length.interval(0) == ""
    assert length.numbers(numpy.array([1, 4, 5, 9, 10, 70])).tolist() == [0, 0, 1, 1, 2, 2]
    assert read_edges(["length=1,2,3-"])["entity_length"].bounds == (1, 2)
    attribute = next(own for own in attributes.ATTRIBUTES if own.key == "entity_length")
    assert make_split(attribute, system.corpus, make_facts(), edges=splits) is length
    counts = bucket_counts(system, length, make_facts())
    assert sum(own.counts.tp + own.counts.fn for own in counts) == len(system.corpus.gold)


@pytest.mark.parametrize(
    "text",
    [
        *("length", "length=", "nonsense=1-", "length=1-4,6-", "length=1-4,4-", "length=2-4,5-"),
        *("length=1-4,5-9", "density=.1-.3,.3-", "nesting_depth=1-", "length=1-4,x-"),
    ],
)
def test_own_buckets_that_cannot_be_are_refused(text):
    with pytest.raises(UserError, match="S162"):
        read_edges([text])


def test_flat_and_nested(system):
    nested = next(own for own in attributes.ATTRIBUTES if own.key == "nested")
    gold = system.corpus.gold
    values = nested.values(system.corpus, gold, make_facts())
    for (doc, start, end, _), value in zip(gold.spans.tolist(), values):
        others = [
            (s, e) for d, s, e, _ in gold.spans.tolist() if d == doc and (s, e) != (start, end)
        ]
        assert value == any(s < end and e > start for s, e in others)
