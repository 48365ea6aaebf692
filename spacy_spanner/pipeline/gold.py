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
    spans, outer, known = [], [], []
    for number, row in enumerate(rows):
        gold = golds[row[DOC]]
        assert gold is not None
        start, end = gold.spans[:, 0], gold.spans[:, 1]
        inside = (start >= row[START]) & (end <= row[END])
        owned = (start >= row[OWN_START]) & (start < row[OWN_END])
        held = gold.spans[inside] - [row[START], row[START], 0]
        is_outer = outermost(held[:, 0], held[:, 1])
        spans.append(numpy.column_stack([numpy.full(len(held), number), held]))
        outer.append(is_outer)
        known.append(row_known(gold, row, inside))
        wide = numpy.zeros(0, dtype=bool)
        if max_width is not None:
            wide = end[inside & owned] - start[inside & owned] > max_width
        counts[CROSSING] += int((owned & ~inside).sum())
        counts[TOO_WIDE] += int(wide.sum())
        counts[NESTED] += int((~is_outer & owned[inside]).sum()) if flat else 0
    everything = all(mask is None for mask in known)
    lengths = rows[:, END] - rows[:, START]
    return RowGold(
        numpy.concatenate([numpy.zeros((0, 4), dtype="int64"), *spans]),
        numpy.concatenate([numpy.zeros(0, dtype=bool), *outer]),
        None
        if everything
        else [
            numpy.ones(n, dtype=bool) if mask is None else mask for n, mask in zip(lengths, known)
        ],
    )


def row_known(gold: DocGold, row: numpy.ndarray, inside: numpy.ndarray) -> Optional[numpy.ndarray]:
    """The annotated tokens of a row. What the row's edge cuts through is not known to it: taught as
    a negative, the visible half of an entity would contradict the row that holds the whole."""
    cut = gold.spans[~inside & (gold.spans[:, 0] < row[END]) & (gold.spans[:, 1] > row[START])]
    if gold.known is None and not len(cut):
        return None
    if gold.known is None:
        known = numpy.ones(row[END] - row[START], dtype=bool)
    else:
        known = gold.known[row[START] : row[END]].copy()
    for start, end, _ in cut:
        known[max(start - row[START], 0) : end - row[START]] = False
    return known


def span_keys(docs: Iterable[Doc]) -> List[str]:
    """The span groups that occur in these documents."""
    return sorted({key for doc in docs for key in doc.spans})
