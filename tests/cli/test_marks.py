"""Hits, misses and false alarms equal set operations; a drawing keeps the text as it is."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.analysis import render
from spacy_spanner.analysis.marks import ALARM, HIT, MISS, PLAIN, Mark, Rates, compare, tally

VOCAB = Vocab()
SPANS = st.sets(
    st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from("AB")).map(
        lambda s: (s[0], min(s[0] + s[1], 6), s[2])
    ),
    max_size=6,
)


def make_doc(spans, *, scores=False, key="sc"):
    doc = Doc(VOCAB, words=list("uvwxyz"))
    attrs = {"scores": [i / 10 for i, _ in enumerate(spans)]} if scores else {}
    spans = [Span(doc, *span) for span in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs=attrs)
    return doc


@given(SPANS, SPANS)
def test_marks_are_set_operations(pred_spans, gold_spans):
    marks = compare(make_doc(pred_spans), make_doc(gold_spans), output="spans", spans_key="sc")
    sizes = (pred_spans & gold_spans, gold_spans - pred_spans, pred_spans - gold_spans)
    assert tally(marks) == tuple(map(len, sizes))
    assert [m[:2] for m in marks] == sorted((m[:2] for m in marks), key=lambda o: (o[0], -o[1]))


def outer_first(span):
    return span[0], -span[1]


def test_scores_go_with_their_spans():
    pred = make_doc([(0, 1, "A"), (2, 3, "B")], scores=True)
    gold = make_doc([(2, 3, "B"), (4, 5, "A")])
    marks = compare(pred, gold, output="spans", spans_key="sc")
    assert [(m.status, m.score) for m in marks] == [(ALARM, 0.0), (HIT, 0.1), (MISS, None)]


def test_scores_of_ents_come_from_any_group_with_the_same_span():
    pred = make_doc([(0, 1, "A"), (2, 3, "B")], scores=True, key="ents")
    pred.set_ents([Span(pred, 2, 3, "B"), Span(pred, 4, 5, "A")], default="outside")
    marks = compare(pred, None, output="ents", spans_key="sc")
    assert [(m.status, m.score) for m in marks] == [(PLAIN, 0.1), (PLAIN, None)]


def test_unannotated_gold_makes_no_errors():
    pred, gold = make_doc([(0, 1, "A")]), Doc(VOCAB, words=list("uvwxyz"))
    for output in ("spans", "ents"):
        marks = compare(pred, gold, output=output, spans_key="sc")
        assert tally(marks) == Rates(0, 0, 0)


def test_rates():
    rates = Rates(hits=3, misses=1, alarms=2)
    assert (rates.precision, rates.recall, rates.f_score) == (3 / 5, 3 / 4, 6 / 9)
    assert Rates(0, 0, 0).f_score == 0


@pytest.mark.parametrize("block", [1, 50])
@given(text=st.text("ab <&\n", max_size=80), data=st.data())
@settings(max_examples=60)
def test_drawing_keeps_the_text_and_every_mark(block, text, data):
    offsets = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = {(min(o), max(o)) for o in data.draw(st.lists(offsets, max_size=6)) if o[0] != o[1]}
    marks = [Mark(start, end, "L", HIT, 0.5) for start, end in sorted(spans, key=outer_first)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "BLOCK", block)
        drawn = render.draw(text, marks, render.label_hues(marks))
    assert drawn.count('class="start') == len(marks)
    drawn = re.sub(r'<span class="(room|start)[^>]*>.*?</span>', "", drawn)
    shown = html.unescape(re.sub(r"<[^>]*>", "", drawn))
    assert "".join(shown.replace(render.BLANK, "").split()) == "".join(text.split())
