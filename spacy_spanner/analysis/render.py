"""Documents with nested spans as one HTML page, drawn by displaCy's span style."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from spacy import displacy

from .marks import ALARM, HIT, MISS, PLAIN, Mark, tally
from .page import PAGE, SLICE_TEMPLATES
from .relations import RelationMark, relation_list

GLYPHS = {HIT: "✓ ", MISS: "○ ", ALARM: "✗ ", PLAIN: ""}
BLANK = "␣"
NO_BLANK = "\ue000"  # ends a piece after which displaCy must not add a blank
BLOCK = 50  # marks
PIECE = 24  # characters of a marked stretch before a line may break within it


class Shown(NamedTuple):
    """One document of the page."""

    text: str
    marks: List[Mark]
    title: str
    annotated: bool  # there is gold to compare with
    relations: Sequence[RelationMark] = ()


def render_page(docs: Sequence[Shown], *, title: str, note: str) -> str:
    """A self-contained page: counts, legend, then the documents."""
    marks = [mark for doc in docs for mark in doc.marks]
    hues = label_hues(marks)
    compared = any(doc.annotated for doc in docs)
    return PAGE.format(
        title=escape(title),
        note=escape(note),
        hues="".join(f".label-{i}{{--h:{hue}}}" for i, hue in enumerate(hues.values())),
        cards=cards(docs, marks, compared),
        table=label_table(marks, compared),
        legend=legend(hues, compared),
        docs="\n".join(article(i, doc, hues) for i, doc in enumerate(docs, start=1)),
    )


def label_hues(marks: Sequence[Mark]) -> Dict[str, int]:
    """A hue for each label, far from its neighbours' (steps of the golden angle)."""
    labels = sorted({mark.label for mark in marks})
    return {label: round(210 + i * 137.508) % 360 for i, label in enumerate(labels)}


def article(number: int, doc: Shown, hues: Dict[str, int]) -> str:
    rates = tally(doc.marks)
    links = tally(doc.relations)
    state = "" if rates.misses or rates.alarms or links.misses or links.alarms else " clean"
    counts = [
        f'<span class="count {status}">{GLYPHS[status]}{count}</span>'
        for status, count in zip((HIT, MISS, ALARM), rates, strict=True)
        if doc.annotated and count
    ]
    if not doc.annotated and doc.marks:
        counts = [f'<span class="count">{len(doc.marks)} spans</span>']
    return (
        f'<article class="doc{state}"><header><span class="number">{number}</span>'
        f'<span class="name">{escape(doc.title)}</span>{"".join(counts)}</header>'
        f"{draw(doc.text, doc.marks, hues)}{relation_list(doc.relations)}</article>"
    )


def draw(text: str, marks: Sequence[Mark], hues: Dict[str, int]) -> str:
    """One document, in blocks that displaCy draws one after the other in the same line."""
    blocks = [
        draw_block(
            text[start:end],
            [mark._replace(start=mark.start - start, end=mark.end - start) for mark in own],
            hues,
        )
        for start, end, own in cut_blocks(text, marks)
    ]
    return f'<div class="text">{"".join(blocks)}</div>'


def cut_blocks(text: str, marks: Sequence[Mark]) -> Iterator[Tuple[int, int, List[Mark]]]:
    """Stretches of about BLOCK marks that no mark crosses: displaCy compares every piece of its
    input with every span, which a long document cannot afford."""
    start, reach = 0, 0
    own: List[Mark] = []
    for mark in marks:
        if len(own) >= BLOCK and reach <= mark.start:
            yield start, mark.start, own
            start, own = mark.start, []
        own.append(mark)
        reach = max(reach, mark.end)
    yield start, len(text), own


def draw_block(text: str, marks: Sequence[Mark], hues: Dict[str, int]) -> str:
    """A stretch of text by displaCy, whose colours stand for classes here."""
    cuts, ends = cut_points(text, marks)
    at = {cut: i for i, cut in enumerate(cuts)}
    tokens = [text[start:end] + NO_BLANK for start, end in pairwise(cuts)]
    for mark, end in zip(marks, ends, strict=True):
        for i in range(at[mark.start], at[end]):
            piece = text[cuts[i] : cuts[i + 1]]
            # displaCy marks no white space, and a mark that begins with it would lose its label
            tokens[i] = BLANK if piece.isspace() else " ".join(piece.splitlines())
    numbers = {label: i for i, label in enumerate(hues)}
    spans, classes = [], {}
    for mark, end in zip(marks, ends, strict=True):
        label = caption(mark)
        classes[label] = f"{mark.status} label-{numbers[mark.label]}"
        spans.append({"start_token": at[mark.start], "end_token": at[end], "label": label})
    markup = displacy.render(
        {"text": text, "tokens": tokens, "spans": spans},
        style="span",
        manual=True,
        jupyter=False,
        options={
            "colors": classes,
            "template": SLICE_TEMPLATES,
            "top_offset": 30,
            "top_offset_step": 20,
        },
    )
    return markup.replace(NO_BLANK + " ", "").strip()


def caption(mark: Mark) -> str:
    """What stands under a span. displaCy writes it as it is, so it is escaped here."""
    score = "" if mark.score is None else f" {mark.score:.2f}".replace(" 0.", " .")
    return f"{GLYPHS[mark.status]}{escape(mark.label)}{score}"


def cut_points(text: str, marks: Sequence[Mark]) -> Tuple[List[int], List[int]]:
    """Where to cut the text into pieces, and the end of each mark moved onto a cut.

    A blank between two pieces of one span belongs to the first of them: a piece of white space
    alone gets no line under it."""
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


def cards(docs: Sequence[Shown], marks: Sequence[Mark], compared: bool) -> str:
    """The figures at the top of the page."""
    figures: List[Tuple[str, str, str]] = [("", f"{len(docs):,}", "documents")]
    if compared:
        rates = tally(marks)
        figures += [
            (HIT, f"{rates.hits:,}", "hits"),
            (MISS, f"{rates.misses:,}", "missed"),
            (ALARM, f"{rates.alarms:,}", "false alarms"),
            ("", f"{100 * rates.precision:.1f}", "precision"),
            ("", f"{100 * rates.recall:.1f}", "recall"),
            ("", f"{100 * rates.f_score:.1f}", "F score"),
        ]
    else:
        figures.append(("", f"{len(marks):,}", "spans"))
    return "".join(
        f'<div class="card {kind}"><b>{value}</b><span>{name}</span></div>'
        for kind, value, name in figures
    )


def label_table(marks: Sequence[Mark], compared: bool) -> str:
    """Counts and rates of each label, the most frequent first."""
    by_label: Dict[str, List[Mark]] = {}
    for mark in marks:
        by_label.setdefault(mark.label, []).append(mark)
    names = [
        "label",
        *(["hits", "missed", "false alarms", "P", "R", "F"] if compared else ["spans"]),
    ]
    rows = []
    for label, own in sorted(by_label.items(), key=lambda item: (-len(item[1]), item[0])):
        rates = tally(own)
        values = [f"{len(own):,}"]
        if compared:
            values = [f"{count:,}" for count in rates]
            values += [f"{100 * r:.1f}" for r in (rates.precision, rates.recall, rates.f_score)]
        cells = "".join(f"<td>{value}</td>" for value in values)
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def legend(hues: Dict[str, int], compared: bool) -> str:
    if not compared:
        return "".join(
            f'<span class="key"><i class="plain label-{i}"></i>{escape(label)}</span>'
            for i, label in enumerate(hues)
        )
    meanings = {HIT: "hit: predicted and in gold", MISS: "missed: only in gold"}
    meanings[ALARM] = "false alarm: only predicted"
    keys = "".join(
        f'<span class="key"><i class="{status}"></i>{GLYPHS[status]}{meaning}</span>'
        for status, meaning in meanings.items()
    )
    return keys + '<label class="key"><input type="checkbox" id="errors">only errors</label>'
