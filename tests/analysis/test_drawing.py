"""A drawing keeps the text as it is, in blocks of bounded size."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.analysis import drawing
from spacy_spanner.analysis.marks import PLAIN, TP, SpanMark

HEBREW, ARABIC = "\u05d3\u05d5\u05d3", "\u0639\u0644\u064a"


def outer_first(span):
    return span[0], -span[1]


def draw(text, spans, *, status=TP):
    marks = [SpanMark(*span, "L", status, 0.5) for span in sorted(spans, key=outer_first)]
    return list(drawing.draw_blocks(text, marks, {"L": "label-0"}))


def shown(drawn):
    """The text of a drawing, without labels and white space."""
    drawn = re.sub(r'<span class="(room|start)[^>]*>.*?</span>', "", drawn)
    text = html.unescape(re.sub(r"<[^>]*>", "", drawn))
    return "".join(text.replace(drawing.BLANK, "").split())


@st.composite
def cases(draw):
    text = draw(st.text("ab <&\n" + HEBREW, max_size=80))
    offsets = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    return text, {(min(o), max(o)) for o in draw(st.lists(offsets, max_size=6)) if o[0] != o[1]}


@pytest.mark.parametrize("block", [1, 50])
@given(cases())
@settings(max_examples=60)
def test_drawing_keeps_the_text_and_every_mark(block, case):
    text, spans = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "BLOCK", block)
        drawn = "".join(draw(text, spans))
    assert drawn.count('class="start') == len(spans)
    assert shown(drawn) == "".join(text.split())
    assert not set(drawn) & {drawing.NO_BLANK, *drawing.TURNED.values()}


@given(cases(), st.integers(2, 20), st.integers(1, 3))
@settings(max_examples=60)
def test_blocks_are_bounded_and_marks_go_on_in_the_next(case, stretch, most):
    text, spans = case
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("STRETCH", stretch), ("BLOCK", 1), ("MOST", most)):
            patch.setattr(drawing, name, value)
        marks = [SpanMark(*span, "L", TP) for span in sorted(spans, key=outer_first)]
        blocks = list(drawing.cut_blocks(text, marks))
        drawn = "".join(draw(text, spans))
    assert [start for start, *_ in blocks[1:]] == [end for _, end, _ in blocks[:-1]]
    assert (blocks[0][0], blocks[-1][1]) == (0, len(text))
    assert all(end - start <= stretch for start, end, _ in blocks)
    covered = [
        (i, own) for start, end in spans for i in range(start, end) for own in [(start, end)]
    ]
    kept = sum(mark.end - mark.start for *_, own in blocks for mark in own)
    assert kept == len(covered)
    for start, end, own in blocks:
        assert all(start <= mark.start < mark.end <= end for mark in own)
    assert shown(drawn) == "".join(text.split())


def test_long_texts_are_cut_between_words_and_outside_marks():
    text = "ab " * 20_000
    spans = [(start, start + 9) for start in range(0, len(text) - 9, 30)]
    cuts = drawing.cut_places(text, [SpanMark(*span, "L", TP) for span in spans])
    assert not any(start < cut < end for start, end in spans for cut in cuts)
    plain = drawing.cut_places(text, [])
    assert plain[:2] == [0, 19_998] and all(cut % 3 == 0 for cut in plain)


def test_tokens_keep_their_order_in_text_from_right_to_left():
    text = f"{HEBREW} {ARABIC} Ann 7"
    drawn = "".join(draw(text, [(0, 3), (4, 7), (8, 11), (12, 13)]))
    for name, words in (("rtl", (HEBREW, ARABIC)), ("ltr", ("Ann",))):
        for word in words:
            assert f'<span class="{name}"><span class="token">{word}' in drawn
    assert '<span><span class="token">7' in drawn  # takes the direction of what surrounds it
    assert 'class="ltr"' not in "".join(draw("Ann 7", [(0, 3)]))
    directions = [drawing.direction(own) for own in (text, "a " + HEBREW, "Ann", "7")]
    assert directions == ["rtl", "rtl", "ltr", ""]


def test_labels_have_colours_only_without_gold():
    assert "label-0" in draw("Ann", [(0, 3)], status=PLAIN)[0]
    assert "label-0" not in draw("Ann", [(0, 3)])[0]
