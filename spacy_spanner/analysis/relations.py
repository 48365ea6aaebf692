"""Predicted relations beside gold ones, as a list of arrows under the text of a document."""

from __future__ import annotations

from html import escape
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc, Span

from ..relations import Relation, doc_relations, get_relations
from .marks import ALARM, HIT, MISS, PLAIN

GLYPHS = {HIT: "✓", MISS: "○", ALARM: "✗", PLAIN: "·"}
End = Tuple[int, int, str]  # character offsets, end exclusive, and label
Key = Tuple[End, End, str]


class RelationMark(NamedTuple):
    """One relation to be shown."""

    head: str
    tail: str
    label: str
    status: str
    score: Optional[float] = None


def compare_relations(pred: Doc, gold: Optional[Doc]) -> List[RelationMark]:
    """The relations of one document in reading order; right are those with the right label between
    spans of the right offsets and labels."""
    found = by_key(pred)
    if gold is None or get_relations(gold) is None:
        return [mark(found[key], PLAIN) for key in sorted(found)]
    expected = by_key(gold)
    marks = []
    for key in sorted({*found, *expected}):
        if key in found:
            marks.append(mark(found[key], HIT if key in expected else ALARM))
        else:
            marks.append(mark(expected[key], MISS))
    return marks


def by_key(doc: Doc) -> Dict[Key, Relation]:
    def end(span: Span) -> End:
        return span.start_char, span.end_char, span.label_

    return {(end(r.head), end(r.tail), r.label): r for r in doc_relations(doc)}


def mark(relation: Relation, status: str) -> RelationMark:
    texts = (relation.head.text, relation.tail.text)
    return RelationMark(*texts, relation.label, status, relation.score)


def relation_list(marks: Sequence[RelationMark]) -> str:
    """HTML: one line for each relation; nothing where there are none."""
    lines = []
    for head, tail, label, status, score in marks:
        told = "" if score is None else f" <small>{score:.2f}</small>"
        lines.append(
            f'<li class="count {status}">{GLYPHS[status]} {escape(head)} <em>— {escape(label)} →</em> '
            f"{escape(tail)}{told}</li>"
        )
    return f'<ul class="relations">{"".join(lines)}</ul>' if lines else ""
