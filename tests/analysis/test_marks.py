"""Marks equal set operations."""

from hypothesis import given
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.analysis.marks import (
    FN,
    FP,
    PLAIN,
    TP,
    count_marks,
    mark_docs,
    mark_relations,
)
from spacy_spanner.analysis.scores import Counts
from spacy_spanner.relations import StoredRelation, set_relations

from .cases import SPANS

VOCAB = Vocab()
ANN, UNI, TRENT = (0, 1, "PER"), (2, 4, "ORG"), (2, 3, "LOC")
LEFT, IN = (*ANN, *UNI, "left", 0.75), (*UNI, *TRENT, "in", None)


def make_doc(spans, *, scores=False, key="sc"):
    doc = Doc(VOCAB, words=list("uvwxyz"))
    attrs = {"scores": [i / 10 for i, _ in enumerate(spans)]} if scores else {}
    spans = [Span(doc, *span) for span in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs=attrs)
    return doc


def compare(pred, gold, *, output="spans"):
    [marked] = mark_docs([(pred, gold)], output=output, spans_key="sc")
    return marked.marks


@given(SPANS, SPANS)
def test_marks_are_set_operations(pred_spans, gold_spans):
    marks = compare(make_doc(pred_spans), make_doc(gold_spans))
    sizes = (pred_spans & gold_spans, gold_spans - pred_spans, pred_spans - gold_spans)
    assert count_marks(marks) == tuple(map(len, sizes))
    assert [m[:2] for m in marks] == sorted((m[:2] for m in marks), key=lambda o: (o[0], -o[1]))


def test_scores_go_with_their_spans():
    pred = make_doc([(0, 1, "A"), (2, 3, "B")], scores=True)
    gold = make_doc([(2, 3, "B"), (4, 5, "A")])
    marks = compare(pred, gold)
    assert [(m.status, m.score) for m in marks] == [(FP, 0.0), (TP, 0.1), (FN, None)]


def test_scores_of_ents_come_from_any_group_with_the_same_span():
    pred = make_doc([(0, 1, "A"), (2, 3, "B")], scores=True, key="ents")
    pred.set_ents([Span(pred, 2, 3, "B"), Span(pred, 4, 5, "A")], default="outside")
    marks = compare(pred, None, output="ents")
    assert [(m.status, m.score) for m in marks] == [(PLAIN, 0.1), (PLAIN, None)]


def test_unannotated_gold_makes_no_errors():
    pred, gold = make_doc([(0, 1, "A")]), Doc(VOCAB, words=list("uvwxyz"))
    for output in ("spans", "ents"):
        marks = compare(pred, gold, output=output)
        assert count_marks(marks) == Counts(0, 0, 0)


def test_counts():
    counts = Counts(tp=3, fn=1, fp=2)
    assert (counts.precision, counts.recall, counts.f_score) == (3 / 5, 3 / 4, 6 / 9)
    assert Counts(0, 0, 0).f_score == 0


def related(*relations):
    doc = Doc(VOCAB, words=["Ann", "left", "Trent", "University", "."])
    set_relations(doc, [StoredRelation(*relation) for relation in relations])
    return doc


def test_relations_are_marked():
    marks = mark_relations(related(LEFT, (*ANN, *TRENT, "met", None)), related(LEFT, IN))
    assert [(m.label, m.status, m.score) for m in marks] == [
        ("met", FP, None),
        ("left", TP, 0.75),
        ("in", FN, None),
    ]
    assert (marks[1].head, marks[1].tail) == ((0, 3, "PER"), (9, 25, "ORG"))
    unannotated = Doc(VOCAB, words=["Ann"])
    for gold in (None, unannotated):
        assert [m.status for m in mark_relations(related(LEFT), gold)] == [PLAIN]
    assert mark_relations(unannotated, related()) == []


def test_entities_that_gold_cannot_judge_are_shown_without_a_verdict():
    pred, gold = make_doc([]), make_doc([])
    pred.set_ents([Span(pred, 0, 1, "A"), Span(pred, 4, 5, "A")], default="outside")
    gold.set_ents([Span(gold, 2, 3, "A")], missing=[gold[4:]], default="outside")
    marks = compare(pred, gold, output="ents")
    assert [(m.start, m.status) for m in marks] == [(0, FP), (4, FN), (8, PLAIN)]


def test_what_gold_has_is_compared():
    """Predictions have both, gold has entities alone."""
    pred, gold = make_doc([(0, 1, "A")]), Doc(VOCAB, words=list("uvwxyz"))
    for doc in (pred, gold):
        doc.set_ents([Span(doc, 0, 1, "A")], default="outside")
    assert [m.status for m in compare(pred, gold, output="auto")] == [TP]
    assert [m.status for m in compare(pred, None, output="auto")] == [PLAIN]
