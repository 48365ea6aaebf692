"""Predicted spans beside gold ones: hits, misses and false alarms of each document."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Optional, Protocol, Tuple

from spacy.tokens import Doc

HIT, MISS, ALARM, PLAIN = "hit", "miss", "alarm", "plain"  # PLAIN: nothing to compare with
Key = Tuple[int, int, str]  # character offsets, end exclusive, and label


class Mark(NamedTuple):
    """One span to be shown."""

    start: int
    end: int
    label: str
    status: str
    score: Optional[float] = None


class Rates(NamedTuple):
    """Counts over some spans, and what follows from them (0-1, 0 where undefined)."""

    hits: int
    misses: int
    alarms: int

    @property
    def precision(self) -> float:
        return self.hits / max(self.hits + self.alarms, 1)

    @property
    def recall(self) -> float:
        return self.hits / max(self.hits + self.misses, 1)

    @property
    def f_score(self) -> float:
        return 2 * self.hits / max(2 * self.hits + self.misses + self.alarms, 1)


def doc_spans(doc: Doc, *, output: str, spans_key: str) -> Optional[Dict[Key, Optional[float]]]:
    """Spans and their confidences (None where there are none); None for an unannotated document."""
    if output == "ents":
        if not doc.has_annotation("ENT_IOB"):
            return None
        known: Dict[Key, float] = {}
        for name in doc.spans:
            known.update(group_scores(doc, name))
        keys = [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]
        return {key: known.get(key) for key in keys}
    if spans_key not in doc.spans:
        return None
    scores = group_scores(doc, spans_key)
    keys = [(span.start_char, span.end_char, span.label_) for span in doc.spans[spans_key]]
    return {key: scores.get(key) for key in keys}


def group_scores(doc: Doc, key: str) -> Dict[Key, float]:
    """The confidences stored with a span group, if any."""
    group = doc.spans[key]
    scores = group.attrs.get("scores")
    if scores is None or len(scores) != len(group):
        return {}
    return {
        (span.start_char, span.end_char, span.label_): float(score)
        for span, score in zip(group, scores, strict=True)
    }


def compare(pred: Doc, gold: Optional[Doc], *, output: str, spans_key: str) -> List[Mark]:
    """The marks of one document, in reading order, outer spans first."""
    pred_spans = doc_spans(pred, output=output, spans_key=spans_key) or {}
    gold_spans = None if gold is None else doc_spans(gold, output=output, spans_key=spans_key)
    if gold_spans is None:
        marks = [Mark(*key, PLAIN, score) for key, score in pred_spans.items()]
    else:
        marks = [
            Mark(*key, HIT if key in gold_spans else ALARM, score)
            for key, score in pred_spans.items()
        ]
        marks += [Mark(*key, MISS) for key in gold_spans if key not in pred_spans]
    return sorted(marks, key=lambda mark: (mark.start, -mark.end, mark.label, mark.status))


class HasStatus(Protocol):
    @property
    def status(self) -> str: ...


def tally(marks: Iterable[HasStatus]) -> Rates:
    counts = Counter(mark.status for mark in marks)
    return Rates(counts[HIT], counts[MISS], counts[ALARM])
