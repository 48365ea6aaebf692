"""Gold annotation of examples as row tables; what cannot be learned is counted, never lost in silence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy
from spacy.attrs import ENT_IOB, ORTH
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..batch import DOC, END, OWN_END, OWN_START, START, RowGold
from ..overlaps import outermost

# Why a gold span cannot be learned, in the words of the warning.
MISALIGNED = "misaligned with the tokens"
UNKNOWN_LABEL = "with a label the component does not have"
TOO_WIDE = "wider than max_width"
CROSSING = "longer than the rows that documents are cut into (see `window` and `overlap`)"
NESTED = (
    "inside or across another one, which this architecture cannot learn (it keeps the outermost)"
)


EMPTY = numpy.zeros((0, 3), dtype="int64")


@dataclass
class DocGold:
    """The annotation of one document in the tokens of its prediction."""

    spans: numpy.ndarray  # (n, 3) int64: start, end, label; no duplicates
    known: Optional[numpy.ndarray]  # (tokens,) bool; None where everything is annotated


def read_gold(
    example: Example, *, spans_key: Optional[str], label_ids: Dict[int, int], counts: Counter
) -> Optional[DocGold]:
    """The gold of one example, from a span group or (without a key) from the entities.

    label_ids: From a label's hash to its number.
    counts: Gets `total` and the reasons of what is lost.
    RETURNS: None if nothing in the example is annotated.
    """
    if spans_key is None:
        spans, known, n_gold = entities(example)
    elif spans_key in example.reference.spans:
        spans, known, n_gold = group_spans(example, spans_key)
    else:
        return None
    if known is not None and not known.any() and not spans:
        return None
    counts["total"] += n_gold
    counts[MISALIGNED] += n_gold - len(spans)
    table = [(s.start, s.end, label_ids[s.label]) for s in spans if s.label in label_ids]
    counts[UNKNOWN_LABEL] += len(spans) - len(table)
    unique = sorted(set(table))
    return DocGold(numpy.array(unique, dtype="int64").reshape(-1, 3), known)


GoldSpans = Tuple[List[Span], Optional[numpy.ndarray], int]


def group_spans(example: Example, spans_key: str) -> GoldSpans:
    """Aligned spans, which tokens are known, and how many spans there were before aligning."""
    gold = list(example.reference.spans[spans_key])
    if same_tokens(example):
        return gold, None, len(gold)
    aligned = example.get_aligned_spans_y2x(gold, allow_overlap=True)
    if len(aligned) == len(gold):
        return aligned, None, len(gold)
    # The tokens under a span that no tokens of ours can express are neither positive nor negative.
    predicted = example.predicted
    known = numpy.ones(len(predicted), dtype=bool)
    found = {(s.start_char, s.end_char) for s in aligned}
    for span in gold:
        if (span.start_char, span.end_char) not in found:
            cover = predicted.char_span(span.start_char, span.end_char, alignment_mode="expand")
            if cover is not None:
                known[cover.start : cover.end] = False
    return aligned, known, len(gold)


def entities(example: Example) -> GoldSpans:
    """As `group_spans`, from `reference.ents`; tokens whose entity is missing are not known."""
    n_gold = len(example.reference.ents)
    if same_tokens(example):
        missing = example.reference.to_array(ENT_IOB) == 0
        return list(example.reference.ents), None if not missing.any() else ~missing, n_gold
    aligned, tags = example.get_aligned_ents_and_ner()
    known = numpy.array([tag not in (None, "-") for tag in tags], dtype=bool)
    return aligned, None if known.all() else known, n_gold


def same_tokens(example: Example) -> bool:
    """Both sides have the same words, so that token numbers can be taken over as they are."""
    predicted, reference = example.predicted, example.reference
    if len(predicted) != len(reference):
        return False
    return numpy.array_equal(predicted.to_array(ORTH), reference.to_array(ORTH))


def row_gold(
    golds: Sequence[Optional[DocGold]],
    rows: numpy.ndarray,
    *,
    flat: bool,
    max_width: Optional[int],
    counts: Counter,
) -> RowGold:
    """The gold of documents in the coordinates of their rows (R, 5). Rows must be annotated."""
    tables = [EMPTY if gold is None else gold.spans for gold in golds]
    sizes = numpy.array([len(table) for table in tables], dtype="int64")[rows[:, DOC]]  # (R,)
    number = numpy.repeat(numpy.arange(len(rows)), sizes)  # (N,): every row with each of its doc's
    row = rows[number]  # (N, 5)
    pairs = numpy.concatenate([EMPTY, *(tables[doc] for doc in rows[:, DOC])])  # (N, 3)
    start, end = pairs[:, 0], pairs[:, 1]
    inside = (start >= row[:, START]) & (end <= row[:, END])
    owned = (start >= row[:, OWN_START]) & (start < row[:, OWN_END])
    first = row[:, START]
    held = numpy.column_stack([number, start - first, end - first, pairs[:, 2]])[inside]
    # Rows one after the other on one line: their spans never meet.
    offset = held[:, 0] * (int(rows[:, END].max(initial=0)) + 1)
    is_outer = outermost(held[:, 1] + offset, held[:, 2] + offset)
    counts[CROSSING] += int((owned & ~inside).sum())
    if max_width is not None:
        counts[TOO_WIDE] += int((inside & owned & (end - start > max_width)).sum())
    if flat:
        counts[NESTED] += int((~is_outer & owned[inside]).sum())
    cut = ~inside & (start < row[:, END]) & (end > first)
    return RowGold(held, is_outer, rows_known(golds, rows, number[cut], pairs[cut]))


def rows_known(
    golds: Sequence[Optional[DocGold]],
    rows: numpy.ndarray,
    number: numpy.ndarray,
    cut: numpy.ndarray,
) -> Optional[List[numpy.ndarray]]:
    """The annotated tokens of each row, or None where all are. What a row's edge cuts through is
    not known to it: taught as a negative, the visible half of an entity would contradict the row
    that holds the whole.

    number, cut: Which row is cut, by which span of its document (n, 3).
    """
    masks = [None if gold is None else gold.known for gold in golds]
    if not len(cut) and all(mask is None for mask in masks):
        return None
    known = []
    for doc, start, end, _, _ in rows:
        mask = masks[doc]
        whole = numpy.ones(end - start, dtype=bool)
        known.append(whole if mask is None else mask[start:end].copy())
    for row, (start, end, _) in zip(number, cut):
        first = rows[row, START]
        known[row][max(start - first, 0) : end - first] = False
    return known


def span_keys(docs: Iterable[Doc]) -> List[str]:
    """The span groups that occur in these documents."""
    return sorted({key for doc in docs for key in doc.spans})
