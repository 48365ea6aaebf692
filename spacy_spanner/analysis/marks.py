"""Predicted spans and relations of a document beside gold ones, drawn by displaCy's span style."""

from __future__ import annotations

from collections import Counter
from html import escape
from itertools import pairwise
from typing import (
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from spacy import displacy
from spacy.tokens import Doc

from ..corpus.docs import DOC_ID, scored_spans
from ..corpus.pairs import DocPair, choose_output
from ..relations import keyed_relations
from .scores import Counts

TP, FN, FP, PLAIN = "tp", "fn", "fp", "plain"  # PLAIN: no gold to compare with
GLYPHS = {TP: "✓", FN: "○", FP: "✗", PLAIN: ""}
BLANK = "␣"
NO_BLANK = "\ue000"  # ends a piece after which displaCy must not add a blank
BLOCK = 50  # marks
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
Key = TypeVar("Key")


class SpanMark(NamedTuple):
    """One span to be shown."""

    start: int
    end: int
    label: str
    status: str
    score: Optional[float] = None


class RelationMark(NamedTuple):
    """One relation to be shown."""

    head: str
    tail: str
    label: str
    status: str
    score: Optional[float] = None


class MarkedDoc(NamedTuple):
    """One document to be shown."""

    text: str
    marks: List[SpanMark]
    title: str
    annotated: bool  # there is gold to compare with
    relations: Sequence[RelationMark] = ()


def mark_docs(pairs: Sequence[DocPair], *, output: str, spans_key: str) -> List[MarkedDoc]:
    """Compare each pair. Output "auto": the span group if any prediction has it, else ents."""
    output = choose_output(output, (pred for pred, _ in pairs), spans_key=spans_key)
    marked = []
    for pred, gold in pairs:
        expected = None
        if gold is not None:
            expected = scored_spans(gold, output=output, spans_key=spans_key)
        found = scored_spans(pred, output=output, spans_key=spans_key) or {}
        title = str((pred if gold is None else gold).user_data.get(DOC_ID, ""))
        relations = mark_relations(pred, gold)
        marked.append(
            MarkedDoc(
                pred.text, mark_spans(found, expected), title, expected is not None, relations
            )
        )
    return marked


def mark_spans(
    pred: Mapping[Tuple[int, int, str], Optional[float]],
    gold: Optional[Mapping[Tuple[int, int, str], Optional[float]]],
) -> List[SpanMark]:
    """The spans of one document, in reading order, outer spans first."""
    marks = [SpanMark(*key, status, pred.get(key)) for key, status in statuses(pred, gold).items()]
    return sorted(marks, key=lambda mark: (mark.start, -mark.end, mark.label, mark.status))


def mark_relations(pred: Doc, gold: Optional[Doc]) -> List[RelationMark]:
    """The relations of one document, in reading order. Correct are those with the right label
    between spans of the right offsets and labels."""
    found = keyed_relations(pred) or {}
    expected = None if gold is None else keyed_relations(gold)
    marks = []
    for key, status in sorted(statuses(found, expected).items()):
        relation = found[key] if key in found else (expected or {})[key]
        texts = (relation.head.text, relation.tail.text)
        marks.append(RelationMark(*texts, relation.label, status, relation.score))
    return marks


def statuses(pred: Iterable[Key], gold: Optional[Iterable[Key]]) -> Dict[Key, str]:
    """TP, FP or FN for everything predicted or in gold; PLAIN where there is no gold."""
    if gold is None:
        return dict.fromkeys(pred, PLAIN)
    result = dict.fromkeys(gold, FN)
    result.update({key: TP if key in result else FP for key in pred})
    return result


def count_marks(marks: Iterable[Union[SpanMark, RelationMark]]) -> Counts:
    """The counts of the marks of some documents."""
    counts = Counter(mark.status for mark in marks)
    return Counts(counts[TP], counts[FN], counts[FP])


def draw_text(text: str, marks: Sequence[SpanMark], classes: Mapping[str, str]) -> str:
    """The text of one document as HTML, with its spans underlined. displaCy draws it in blocks that
    follow one another in the same line.

    classes: The style class of each label.
    """
    blocks = [
        draw_block(
            text[start:end],
            [mark._replace(start=mark.start - start, end=mark.end - start) for mark in own],
            classes,
        )
        for start, end, own in cut_blocks(text, marks)
    ]
    return "".join(blocks)


def cut_blocks(text: str, marks: Sequence[SpanMark]) -> Iterator[Tuple[int, int, List[SpanMark]]]:
    """Stretches of about BLOCK marks that no mark crosses: displaCy compares every piece of its
    input with every span, which takes too long for a long document."""
    start, reach = 0, 0
    own: List[SpanMark] = []
    for mark in marks:
        if len(own) >= BLOCK and reach <= mark.start:
            yield start, mark.start, own
            start, own = mark.start, []
        own.append(mark)
        reach = max(reach, mark.end)
    yield start, len(text), own


def draw_block(text: str, marks: Sequence[SpanMark], classes: Mapping[str, str]) -> str:
    """A stretch of text by displaCy, which gets style classes in place of colours."""
    cuts, ends = cut_points(text, marks)
    at = {cut: i for i, cut in enumerate(cuts)}
    tokens = [text[start:end] + NO_BLANK for start, end in pairwise(cuts)]
    for mark, end in zip(marks, ends, strict=True):
        for i in range(at[mark.start], at[end]):
            piece = text[cuts[i] : cuts[i + 1]]
            # displaCy marks no white space, and a mark that begins with it would lose its label
            tokens[i] = BLANK if piece.isspace() else " ".join(piece.splitlines())
    spans, colours = [], {}
    for mark, end in zip(marks, ends, strict=True):
        label = caption(mark)
        colours[label] = f"{mark.status} {classes[mark.label]}"
        spans.append({"start_token": at[mark.start], "end_token": at[end], "label": label})
    markup = displacy.render(
        {"text": text, "tokens": tokens, "spans": spans},
        style="span",
        manual=True,
        jupyter=False,
        options={
            "colors": colours,
            "template": SPAN_TEMPLATES,
            "top_offset": 30,
            "top_offset_step": 20,
        },
    )
    return markup.replace(NO_BLANK + " ", "").strip()


def caption(mark: SpanMark) -> str:
    """The label under a span. displaCy does not escape labels, so it is done here."""
    score = "" if mark.score is None else f" {mark.score:.2f}".replace(" 0.", " .")
    return f"{GLYPHS[mark.status]} {escape(mark.label)}{score}".strip()


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
