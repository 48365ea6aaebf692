"""Scores, kinds of errors, attributes and buckets equal what is counted by hand in `cases`."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_spanner.analysis import attributes, buckets, mistakes, rates
from spacy_spanner.analysis.marks import Rates
from spacy_spanner.analysis.tables import read_systems

from .cases import GOLD, PRED, TEXTS, VOCAB, make_doc, make_facts, make_systems

SPANS = st.sets(
    st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from("AB")).map(
        lambda s: (s[0], min(s[0] + s[1], 6), s[2])
    ),
    max_size=6,
)
CORPORA = st.lists(st.tuples(SPANS, SPANS), min_size=1, max_size=4)


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


def random_systems(corpora):
    golds, preds = [], []
    for gold, pred in corpora:
        for docs, spans in ((golds, gold), (preds, pred)):
            docs.append(make_doc("u v w x y z", sorted(spans)))
    return read_systems(["a"], [preds], golds, output="spans", spans_key="sc")


def test_scores(system):
    assert rates.overall(system) == Rates(3, 2, 3)
    assert rates.unlabelled(system) == Rates(4, 1, 2)  # the type error has the right offsets
    by_label = rates.by_label(system)
    assert by_label == {"LOC": Rates(1, 2, 1), "ORG": Rates(1, 0, 0), "PER": Rates(1, 0, 2)}
    assert list(by_label) == ["LOC", "ORG", "PER"]
    assert rates.macro_f(by_label) == pytest.approx((2 / 5 + 1 + 2 / 4) / 3)
    assert rates.by_length(system) == [
        (1, Rates(2, 2, 2)),
        (2, Rates(0, 0, 1)),
        (3, Rates(1, 0, 0)),
    ]
    assert rates.by_document(system).tolist() == [[3, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert len(system.corpus.docs) == 3  # the document without annotation is left out


def test_errors(system):
    errors = mistakes.error_counts(system)
    assert errors == mistakes.ErrorCounts(type=1, boundary=1, spurious=1, misses=2, untouched=0)
    assert errors.total == 5
    assert errors.boundary_rate == 1 / 5 and errors.type_rate == 1 / 5


def test_running_example_of_the_paper():
    """`it rain` is a boundary error, and so are all that share a token; `rain` as Date is a type
    error; `will it` touches nothing."""
    text, gold = "will it rain this night", [(2, 3, "Weather"), (3, 5, "Date")]
    kinds = {(1, 3): 2, (0, 3): 2, (2, 4): 2, (2, 3): 1, (0, 2): 3}
    for (start, end), kind in kinds.items():
        label = "Date" if kind == 1 else "Weather"
        pred = make_doc(text, [(start, end, label)])
        [system] = read_systems(
            ["x"], [[pred]], [make_doc(text, gold)], output="spans", spans_key="sc"
        )
        assert mistakes.prediction_kinds(system).tolist() == [kind]


def test_confusion(system):
    labels = [*system.corpus.labels, None]
    counts = mistakes.confusion(system)
    told = {
        (labels[i], labels[j]): int(counts[i, j])
        for i in range(len(labels))
        for j in range(len(labels))
        if counts[i, j]
    }
    assert told == {
        ("PER", "PER"): 1,
        ("ORG", "ORG"): 1,
        ("LOC", "LOC"): 1,
        ("LOC", "PER"): 1,
        ("LOC", None): 1,
        (None, "LOC"): 1,
        (None, "PER"): 1,
    }


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
    split = buckets.make_split(attributes.ATTRIBUTES[-1], system.corpus, facts)
    counts = [bucket.rates.hits for bucket in buckets.bucket_rates(system, split, facts)]
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
    split = buckets.make_split(own, system.corpus, make_facts())
    numbers = split.numbers(numpy.array(list(expected)))
    assert [split.names[i] for i in numbers] == list(expected.values())


def test_bucket_rates_by_hand(system):
    split = buckets.make_split(attributes.ATTRIBUTES[0], system.corpus, None)
    assert [tuple(bucket) for bucket in buckets.bucket_rates(system, split)] == [
        ("XS", "1", Rates(2, 2, 2)),
        ("S", "2", Rates(0, 0, 1)),
        ("L", "3-4", Rates(1, 0, 0)),
        ("XL", "5 +", Rates(0, 0, 0)),
    ]


def test_quartiles(system):
    length = attributes.ATTRIBUTES[1]
    split = buckets.make_split(length, system.corpus, None, quartiles=True)
    # gold text lengths 2 9 9 9 9: all quartiles are 9, the largest, so nothing is cut
    assert split.edges == () and split.names == ("all",)
    density = attributes.ATTRIBUTES[2]
    split = buckets.make_split(density, system.corpus, None, quartiles=True)
    assert split.edges == (4 / 9,) and split.names == ("S", "L")
    assert [bucket.interval for bucket in buckets.bucket_rates(system, split)] == ["≤ .44", "> .44"]


@settings(max_examples=40, deadline=None)
@given(CORPORA, st.booleans())
def test_parts_sum_to_the_whole(corpora, quartiles):
    """Buckets, labels, lengths, documents, kinds of errors and the confusion table all hold every
    hit, miss and false alarm once; a hit is in the same bucket on both sides."""
    [system] = random_systems(corpora)
    whole, facts = rates.overall(system), make_facts()
    for attribute in attributes.ATTRIBUTES:
        split = buckets.make_split(attribute, system.corpus, facts, quartiles=quartiles)
        parts = [bucket.rates for bucket in buckets.bucket_rates(system, split, facts)]
        assert Rates(*map(sum, zip(*parts, strict=True))) == whole
        gold = attribute.values(system.corpus, system.corpus.gold, facts)
        pred = attribute.values(system.corpus, system.pred, facts)
        assert numpy.array_equal(gold[system.found], pred[system.correct])
    for parts in (rates.by_label(system).values(), dict(rates.by_length(system)).values()):
        assert Rates(*map(sum, zip(*parts, strict=True))) == whole if parts else not any(whole)
    assert tuple(rates.by_document(system).sum(axis=0)) == whole
    errors = mistakes.error_counts(system)
    assert errors.type + errors.boundary + errors.spurious == whole.alarms
    assert errors.total == whole.misses + whole.alarms
    counts, n_labels = mistakes.confusion(system), len(system.corpus.labels)
    gold, pred = system.corpus.gold.spans[:, 3], system.pred.spans[:, 3]
    assert (counts[:-1].sum(axis=1) == numpy.bincount(gold, minlength=n_labels)).all()
    assert (counts[:, :-1].sum(axis=0) == numpy.bincount(pred, minlength=n_labels)).all()
    assert counts.trace() == whole.hits


@settings(max_examples=25, deadline=None)
@given(CORPORA)
def test_scores_are_those_of_spacy(corpora):
    [system] = random_systems(corpora)
    examples = []
    for gold, pred in corpora:
        docs = [make_doc("u v w x y z", sorted(spans)) for spans in (pred, gold)]
        examples.append(Example(*docs))
    theirs = Scorer.score_spans(
        examples, "spans_sc", getter=lambda doc, _: doc.spans["sc"], allow_overlap=True
    )
    ours = rates.overall(system)
    if ours.hits:
        assert ours.f_score == pytest.approx(theirs["spans_sc_f"])
        assert ours.precision == pytest.approx(theirs["spans_sc_p"])


def test_other_tokens_do_not_matter():
    """Predictions are compared by characters; lengths are counted in gold tokens."""
    gold = make_doc("New York-based firm", [(0, 3, "ORG")])
    pred = Doc(VOCAB, words=["New", "York", "-", "based", "firm"])
    pred = Doc(VOCAB, words=[t.text for t in pred], spaces=[True, False, False, True, True])
    pred.spans["sc"] = [Span(pred, 0, 5, label="ORG"), Span(pred, 0, 2, label="LOC")]
    [system] = read_systems(["x"], [[pred]], [gold], output="spans", spans_key="sc")
    assert rates.overall(system) == Rates(1, 0, 1)
    assert system.pred.tokens.tolist() == [[0, 2], [0, 3]]


def test_cases_are_as_described():
    assert [len(text.split()) for text in TEXTS[:3]] == [9, 2, 2] and len(GOLD) == len(PRED)
