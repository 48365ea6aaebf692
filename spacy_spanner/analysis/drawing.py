"""The text of a document as HTML by displaCy's span style, in blocks of bounded size."""

from __future__ import annotations

import unicodedata
from html import escape
from itertools import pairwise
from typing import Iterator, List, Mapping, Sequence, Tuple

from spacy import displacy

from .marks import PLAIN, SpanMark, caption

BLANK = "␣"
NO_BLANK = "\ue000"  # ends a piece after which displaCy must not add a blank
BLOCK = 50  # marks
MOST = 500  # marks of a block that lie in another mark
STRETCH = 20_000  # characters of a block: a text may be long and have no marks
PIECE = 24  # characters of a marked stretch before a line may break within it
# displaCy fills these in. `bg` holds classes; `.strut` makes the line high enough for the lowest
# label, `.room` the token wide enough for its own.
SPAN_TEMPLATES = {
    "span": '<span class="token">{text}{span_slices}{span_starts}</span>',
    "slice": '<i class="strut" style="height:{top_offset}px"></i>'
    '<i class="slice {bg}" style="top:{top_offset}px"></i>',
    "start": '<span class="room">{label}</span>'
    '<span class="start {bg}" style="top:{top_offset}px">{label}{kb_link}</span>',
}
# In text that is written from right to left, browsers order the boxes of tokens by what surrounds them.
# A box between two marks of its own direction stays where the text has it.
TURNED_TEMPLATES = {**SPAN_TEMPLATES, "span": f"<span>{SPAN_TEMPLATES['span']}</span>"}
TURNED = {"ltr": "\ue001", "rtl": "\ue002"}  # begins a token that gets such marks
BIDI = {"L": "ltr", "R": "rtl", "AL": "rtl"}
SAMPLE = 2000  # characters that decide on the direction of a text


def draw_blocks(text: str, marks: Sequence[SpanMark], classes: Mapping[str, str]) -> Iterator[str]:
    """The text of one document as HTML, with its spans underlined: blocks that follow one another in
    the same line.

    marks: In reading order.
    classes: The style class of each label.
    """
    turned = any(BIDI.get(unicodedata.bidirectional(char)) == "rtl" for char in set(text))
    for start, end, open_marks in cut_blocks(text, marks):
        moved = [
            mark._replace(start=mark.start - start, end=mark.end - start) for mark in open_marks
        ]
        yield draw_block(text[start:end], moved, classes, turned=turned)


def direction(text: str) -> str:
    """ "ltr" or "rtl": the direction of most letters; "" if there are none."""
    found = [BIDI.get(unicodedata.bidirectional(char)) for char in text[:SAMPLE]]
    n_left, n_right = found.count("ltr"), found.count("rtl")
    return "" if n_left == n_right == 0 else "rtl" if n_right > n_left else "ltr"


def cut_blocks(text: str, marks: Sequence[SpanMark]) -> Iterator[Tuple[int, int, List[SpanMark]]]:
    """Stretches of the text with their marks. displaCy compares every piece of its input with every
    span, which takes too long for a long document. A mark that continues after a stretch is marked in
    both."""
    open_marks: List[SpanMark] = []
    n_seen = 0
    for start, end in pairwise(cut_places(text, marks)):
        while n_seen < len(marks) and marks[n_seen].start < end:
            open_marks.append(marks[n_seen])
            n_seen += 1
        yield (
            start,
            end,
            [m._replace(start=max(m.start, start), end=min(m.end, end)) for m in open_marks],
        )
        open_marks = [mark for mark in open_marks if mark.end > end]


def cut_places(text: str, marks: Sequence[SpanMark]) -> List[int]:
    """The ends of blocks: after BLOCK marks where no mark is cut, and after STRETCH characters or MOST
    marks in any case."""
    inside = bytearray(len(text) + 1)  # 1 where a mark would be cut
    for mark in marks:
        inside[mark.start + 1 : mark.end] = b"\1" * (mark.end - mark.start - 1)
    places, n_marks = [0], 0
    for start in [*(mark.start for mark in marks), len(text)]:
        while start - places[-1] > STRETCH:
            latest = places[-1] + STRETCH
            blanks = [i for i in range(latest, latest - STRETCH // 2, -1) if text[i - 1].isspace()]
            places.append(next((i for i in blanks if not inside[i]), (blanks or [latest])[0]))
            n_marks = 0
        if places[-1] < start < len(text) and n_marks >= (MOST if inside[start] else BLOCK):
            places.append(start)
            n_marks = 0
        n_marks += 1
    return [*places, len(text)]


def draw_block(
    text: str, marks: Sequence[SpanMark], classes: Mapping[str, str], *, turned: bool = False
) -> str:
    """A stretch of text by displaCy, which gets style classes in place of colours.

    turned: Some of the document is written from right to left.
    """
    cuts, ends = cut_points(text, marks)
    at = {cut: i for i, cut in enumerate(cuts)}
    tokens = [text[start:end] + NO_BLANK for start, end in pairwise(cuts)]
    for mark, end in zip(marks, ends, strict=True):
        for i in range(at[mark.start], at[end]):
            piece = text[cuts[i] : cuts[i + 1]]
            # displaCy marks no white space, and a mark that begins with it would lose its label
            shown = BLANK if piece.isspace() else " ".join(piece.splitlines())
            tokens[i] = TURNED.get(direction(piece), "") + shown if turned else shown
    spans, colours = [], {}
    for mark, end in zip(marks, ends, strict=True):
        label = escape(caption(mark))  # displaCy does not escape labels
        colour = f" {classes[mark.label]}" if mark.status == PLAIN else ""
        colours[label] = mark.status + colour
        spans.append({"start_token": at[mark.start], "end_token": at[end], "label": label})
    markup = displacy.render(
        {"text": text, "tokens": tokens, "spans": spans},
        style="span",
        manual=True,
        jupyter=False,
        options={
            "colors": colours,
            "template": TURNED_TEMPLATES if turned else SPAN_TEMPLATES,
            "top_offset": 30,
            "top_offset_step": 20,
        },
    )
    for name, sign in TURNED.items():
        markup = markup.replace(
            f'<span><span class="token">{sign}', f'<span class="{name}"><span class="token">'
        )
    return markup.replace(NO_BLANK + " ", "").strip()


def cut_points(text: str, marks: Sequence[SpanMark]) -> Tuple[List[int], List[int]]:
    """Where to cut the text into pieces, and the end of each mark moved onto a cut.

    A blank between two pieces of one span belongs to the first of them: displaCy draws no line
    under a piece of white space alone."""
    ends = []
    for mark in marks:
        end = mark.end
        reach = max((m.end for m in marks if m.start < mark.end < m.end), default=end)
        while end < reach and text[end].isspace():
            end += 1
        ends.append(end)
    cuts = {0, len(text), *ends, *(mark.start for mark in marks)}
    for mark, end in zip(marks, ends, strict=True):
        last = mark.start
        for i in range(mark.start, end):
            if i in cuts:
                last = i
            elif i - last >= PIECE and text[i - 1].isspace() and not text[i].isspace():
                cuts.add(i)
                last = i
    return sorted(cuts), ends
