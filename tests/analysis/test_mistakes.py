"""Kinds of errors, confusion of labels and confident errors, by hand."""

import pytest

from spacy_spanner.analysis import mistakes
from spacy_spanner.analysis.systems import read_systems

from .cases import PRED, make_doc, make_systems


@pytest.fixture
def system():
    return make_systems(PRED)[0]


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
    found = {
        (labels[i], labels[j]): int(counts[i, j])
        for i in range(len(labels))
        for j in range(len(labels))
        if counts[i, j]
    }
    assert found == {
        ("PER", "PER"): 1,
        ("ORG", "ORG"): 1,
        ("LOC", "LOC"): 1,
        ("LOC", "PER"): 1,
        ("LOC", None): 1,
        (None, "LOC"): 1,
        (None, "PER"): 1,
    }


def test_confident_errors():
    [system] = make_systems(PRED)
    errors = mistakes.confident_errors(system)
    found = [(own["kind"], own["label"], own["text"], own["score"]) for own in errors]
    assert found == [
        ("boundary", "LOC", "Rome fell", 0.95),
        ("type", "PER", "Rome", 0.7),
        ("spurious", "PER", "here", 0.55),
    ]
    assert errors[0]["gold"] == [{"text": "Rome", "label": "LOC"}]
    assert errors[1]["before"] == "Ann met the Bank of Rome in " and errors[1]["after"] == " today"
    assert errors[2]["gold"] == [] and errors[2]["document"] == 2
    assert [own["label"] for own in mistakes.confident_errors(system, limit=1)] == ["LOC"]
    without = [[span[:3] for span in own] for own in PRED]
    assert mistakes.confident_errors(make_systems(without)[0])[0]["score"] is None


def test_context_is_cut_between_words():
    text = "word\n" * 40
    assert mistakes.shorten(text, keep="end").startswith("… word ") and len(
        mistakes.shorten(text, keep="end")
    ) <= (mistakes.CONTEXT + 2)
    assert mistakes.shorten(text, keep="start").endswith("word …")
    assert mistakes.shorten("short ", keep="end") == "short "
