"""Marks equal set operations; a drawing keeps the text as it is."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.analysis import marks as drawing
from spacy_spanner.analysis.marks import (
    FN,
    FP,
    PLAIN,
    TP,
    SpanMark,
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


def outer_first(span):
    return span[0], -span[1]


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


@pytest.mark.parametrize("block", [1, 50])
@given(text=st.text("ab <&\n", max_size=80), data=st.data())
@settings(max_examples=60)
def test_drawing_keeps_the_text_and_every_mark(block, text, data):
    offsets = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = {(min(o), max(o)) for o in data.draw(st.lists(offsets, max_size=6)) if o[0] != o[1]}
    marks = [SpanMark(start, end, "L", TP, 0.5) for start, end in sorted(spans, key=outer_first)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "BLOCK", block)
        drawn = drawing.draw_text(text, marks, {"L": "label-0"})
    assert drawn.count('class="start') == len(marks)
    drawn = re.sub(r'<span class="(room|start)[^>]*>.*?</span>', "", drawn)
    shown = html.unescape(re.sub(r"<[^>]*>", "", drawn))
    assert "".join(shown.replace(drawing.BLANK, "").split()) == "".join(text.split())


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
    assert (marks[1].head, marks[1].tail) == ("Ann", "Trent University")
    unannotated = Doc(VOCAB, words=["Ann"])
    for gold in (None, unannotated):
        assert [m.status for m in mark_relations(related(LEFT), gold)] == [PLAIN]
    assert mark_relations(unannotated, related()) == []
