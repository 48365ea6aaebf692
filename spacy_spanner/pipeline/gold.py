"""Gold annotation of examples as row tables; what cannot be learned is counted, never lost in silence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy
from spacy.attrs import ENT_IOB, ORTH
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..batch import END, START, RowGold, Rows
from ..errors import Errors
from ..overlaps import nesting_levels

# Why a gold span cannot be learned, in the words of the warning.
MISALIGNED = "misaligned with the tokens"
EMPTY = "without any token (remove them)"
UNKNOWN_LABEL = "with a label the component does not have"
TOO_WIDE = "wider than max_width"
CROSSING = (
    "across the edges of the rows that documents are cut into (see `window` and `overlap`; with "
    "`pack_sentences = false`, rows are sentences)"
)
BLANK = "with white space at an edge, which predictions never have (trim them)"
NESTED = (
    "inside or across others, more deeply than this architecture learns (it keeps the outermost; SeqNER "
    "and bundles have the option `levels`)"
)


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
        group = example.reference.spans[spans_key]
        gold = [span for span in group if len(span)]
        counts[EMPTY] += len(group) - len(gold)
        counts["total"] += len(group) - len(gold)
        spans, known, n_gold = group_spans(example, gold)
    else:
        return None
    if known is not None and not known.any() and not spans:
        return None
    for span in spans:
        if not span.label:
            raise ValueError(Errors.S126.format(place=f"of the gold span {span.text!r}"))
        counts[BLANK] += span[0].is_space or span[-1].is_space
    counts["total"] += n_gold
    counts[MISALIGNED] += n_gold - len(spans)
    table = [(s.start, s.end, label_ids[s.label]) for s in spans if s.label in label_ids]
    counts[UNKNOWN_LABEL] += len(spans) - len(table)
    unique = sorted(set(table))
    return DocGold(numpy.array(unique, dtype="int64").reshape(-1, 3), known)


GoldSpans = Tuple[List[Span], Optional[numpy.ndarray], int]


def group_spans(example: Example, gold: List[Span]) -> GoldSpans:
    """Aligned spans, which tokens are known, and how many spans there were before aligning."""
    if same_tokens(example):
        return gold, None, len(gold)
    known = numpy.ones(len(example.predicted), dtype=bool)
    aligned = [found for span in gold if (found := align(example, span, known)) is not None]
    return aligned, None if known.all() else known, len(gold)


def align(example: Example, span: Span, known: numpy.ndarray) -> Optional[Span]:
    """A span of the reference in the tokens of the prediction. Where these cannot express it, they
    are marked as not known: they are neither positive nor negative."""
    aligned = example.get_aligned_spans_y2x([span], allow_overlap=True)
    if aligned:
        return aligned[0]
    under = example.alignment.y2x[span.start : span.end]  # white space may differ, and so offsets
    if len(under):
        known[under[0] : under[-1] + 1] = False
    return None


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
    return bool(predicted.to_array(ORTH).tobytes() == reference.to_array(ORTH).tobytes())


def row_gold(
    golds: Sequence[Optional[DocGold]],
    rows: Rows,
    *,
    levels: Optional[int],
    max_width: Optional[int],
    counts: Counter,
) -> RowGold:
    """The gold of documents in the coordinates of their rows. Rows must be annotated.

    levels, max_width: What the head can learn; None: no bound."""
    spans, inside = spans_in_rows([None if gold is None else gold.spans for gold in golds], rows)
    number, start, end, _ = spans.T
    owned = rows.owns(number, start + rows.table[number, START])
    held = spans[inside]
    # Rows one after the other, far enough apart that their spans never meet.
    offset = held[:, 0] * (int(rows.lengths.sum()) + 1)
    level = nesting_levels(held[:, 1] + offset, held[:, 2] + offset)  # (N,)
    counts[CROSSING] += int((owned & ~inside).sum())
    if max_width is not None:
        counts[TOO_WIDE] += int((inside & owned & (end - start > max_width)).sum())
    if levels is not None:
        counts[NESTED] += int(((level >= levels) & owned[inside]).sum())
    return RowGold(held, level, rows_known(golds, rows, spans[~inside, :3]))


def spans_in_rows(
    tables: Sequence[Optional[numpy.ndarray]], rows: Rows
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The spans of documents (n, 3) in every row that has a token of them: row, start, end, label
    (N, 4), and whether the row holds them whole (N,)."""
    spans = on_line(tables, rows, n_ends=2)
    number, which = touching(spans[:, 0], spans[:, 1], rows.table)  # (N,): rows, and their spans
    start, end, label = spans[which].T
    first, last = rows.table[number, START], rows.table[number, END]
    inside = (start >= first) & (end <= last)
    return numpy.column_stack([number, start - first, end - first, label]), inside


def on_line(tables: Sequence[Optional[numpy.ndarray]], rows: Rows, *, n_ends: int) -> numpy.ndarray:
    """Tables of documents (n, K) as one: their first `n_ends` columns are tokens, which become
    positions on the line of the rows. Sorted by the first column."""
    empty = numpy.zeros((0, n_ends + 1), dtype="int64")
    moved = [empty]
    for table, first in zip(tables, rows.doc_starts.tolist(), strict=True):
        if table is not None and len(table):
            moved.append(table + numpy.array([first] * n_ends + [0]))
    joined = numpy.concatenate(moved)
    return joined[numpy.argsort(joined[:, 0], kind="stable")]


def touching(
    start: numpy.ndarray, end: numpy.ndarray, table: numpy.ndarray
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """All pairs of a row of the table and a span that have a token in common, sorted by row.

    start, end: Of the spans, sorted by start.  (N,)
    RETURNS: The rows and the spans of the pairs.
    """
    widest = int((end - start).max(initial=0))
    begin = numpy.searchsorted(start, table[:, START] - widest)  # (R,)
    sizes = numpy.searchsorted(start, table[:, END]) - begin  # (R,)
    row = numpy.repeat(numpy.arange(len(table)), sizes)
    span = numpy.arange(len(row)) + (begin - (sizes.cumsum() - sizes))[row]
    meets = end[span] > table[row, START]
    return row[meets], span[meets]


def rows_known(
    golds: Sequence[Optional[DocGold]], rows: Rows, cut: numpy.ndarray
) -> Optional[List[numpy.ndarray]]:
    """The annotated tokens of each row, or None where all are. What a row's edge cuts through is
    not known to it: taught as a negative, the visible half of an entity would contradict the row
    that holds the whole.

    cut: Row, start and end of the spans that a row's edge cuts through.  (n, 3)
    """
    masks = [None if gold is None else gold.known for gold in golds]
    if not len(cut) and all(mask is None for mask in masks):
        return None
    known = row_masks(masks, rows)
    for row, start, end in cut:
        known[row][max(start, 0) : end] = False
    return known


def row_masks(masks: Sequence[Optional[numpy.ndarray]], rows: Rows) -> List[numpy.ndarray]:
    """Masks of the tokens of documents (None: all True) as masks of the tokens of rows."""
    line = numpy.ones(int(rows.lengths.sum()), dtype=bool)
    for mask, first in zip(masks, rows.doc_starts.tolist(), strict=True):
        if mask is not None:
            line[first : first + len(mask)] = mask
    return [line[row[START] : row[END]].copy() for row in rows.table]


def span_keys(docs: Iterable[Doc]) -> List[str]:
    """The span groups that occur in these documents."""
    return sorted({key for doc in docs for key in doc.spans})
