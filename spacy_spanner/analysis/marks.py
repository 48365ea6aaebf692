"""Predicted spans and relations of a document beside gold ones."""

from __future__ import annotations

from collections import Counter
from typing import (
    Collection,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from spacy.tokens import Doc

from ..corpus.docs import DOC_ID, judged_spans, scored_spans
from ..corpus.pairs import DocPair, choose_output
from ..relations import keyed_relations
from ..span_scores import SpanKey
from .scores import Counts

TP, FN, FP, PLAIN = "tp", "fn", "fp", "plain"  # PLAIN: no gold to compare with
GLYPHS = {TP: "✓", FN: "○", FP: "✗", PLAIN: ""}
Key = TypeVar("Key")


class SpanMark(NamedTuple):
    """One span to be shown."""

    start: int
    end: int
    label: str
    status: str
    score: Optional[float] = None


class RelationMark(NamedTuple):
    """One relation to be shown, with the offsets and labels of its ends."""

    head: SpanKey
    tail: SpanKey
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
    number: int = 1  # in the corpus

    @property
    def has_errors(self) -> bool:
        """Something was missed, or found where gold has nothing."""
        counts = [count_marks(marks) for marks in (self.marks, self.relations)]
        return any(count.fn or count.fp for count in counts)


def mark_docs(
    pairs: Sequence[DocPair], *, output: str, spans_key: str, symmetric: Collection[str] = ()
) -> List[MarkedDoc]:
    """Compare each pair. Output "auto": what gold has; without gold, and if it has both, the span group
    if any prediction has it, else ents."""
    golds = [gold for _, gold in pairs if gold is not None]
    output = choose_output(output, golds, [[pred for pred, _ in pairs]], spans_key=spans_key)
    marked = []
    for number, (pred, gold) in enumerate(pairs, start=1):
        found = scored_spans(pred, output=output, spans_key=spans_key) or {}
        expected, judged = None, found
        if gold is not None:
            expected = scored_spans(gold, output=output, spans_key=spans_key)
            judged = judged_spans(found, gold, output=output)
        title = str((pred if gold is None else gold).user_data.get(DOC_ID, ""))
        plain = {key: score for key, score in found.items() if key not in judged}
        marks = sorted([*mark_spans(judged, expected), *mark_spans(plain, None)], key=reading_order)
        relations, annotated = mark_relations(pred, gold, symmetric), expected is not None
        marked.append(MarkedDoc(pred.text, marks, title, annotated, relations, number))
    return marked


def mark_spans(
    pred: Mapping[Tuple[int, int, str], Optional[float]],
    gold: Optional[Mapping[Tuple[int, int, str], Optional[float]]],
) -> List[SpanMark]:
    """The spans of one document, in reading order, outer spans first."""
    marks = [SpanMark(*key, status, pred.get(key)) for key, status in statuses(pred, gold).items()]
    return sorted(marks, key=reading_order)


def reading_order(mark: SpanMark) -> Tuple[int, int, str, str]:
    return mark.start, -mark.end, mark.label, mark.status


def mark_relations(
    pred: Doc, gold: Optional[Doc], symmetric: Collection[str] = ()
) -> List[RelationMark]:
    """The relations of one document, in reading order. Correct are those with the right label
    between spans of the right offsets and labels; the direction of `symmetric` ones does not count."""
    found = keyed_relations(pred, symmetric=symmetric) or {}
    expected = None if gold is None else keyed_relations(gold, symmetric=symmetric)
    marks = []
    for key, status in sorted(statuses(found, expected).items()):
        relation = found[key] if key in found else (expected or {})[key]
        marks.append(RelationMark(*key, status, relation.score))
    return marks


def statuses(pred: Iterable[Key], gold: Optional[Iterable[Key]]) -> Dict[Key, str]:
    """TP, FP or FN for everything predicted or in gold; PLAIN where there is no gold."""
    if gold is None:
        return dict.fromkeys(pred, PLAIN)
    result = dict.fromkeys(gold, FN)
    result.update({key: TP if key in result else FP for key in pred})
    return result


def caption(mark: Union[SpanMark, RelationMark]) -> str:
    """Sign, label and score. Not escaped."""
    score = "" if mark.score is None else f" {mark.score:.2f}".replace(" 0.", " .")
    return f"{GLYPHS[mark.status]} {mark.label}{score}".strip()


def count_marks(marks: Iterable[Union[SpanMark, RelationMark]]) -> Counts:
    """The counts of the marks of some documents."""
    counts = Counter(mark.status for mark in marks)
    return Counts(counts[TP], counts[FN], counts[FP])
