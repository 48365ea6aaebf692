"""Sizes seen in training, and the limits they set for prediction.

A model that never saw two tokens further apart than a sentence is long knows nothing about such
pairs, and may find thousands of entities among them."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy

from ..batch import END, START, RowGold, Rows
from .loading import is_count

# Largest values in the training data, in tokens.
ROW, SPAN, REACH = "longest_row", "widest_span", "longest_relation"
# How many relations there were, and how many of them had their ends in two sentences.
RELATIONS, ACROSS = "relations", "relations_across"
NOTHING: Dict[str, int] = {ROW: 0, SPAN: 0, REACH: 0, RELATIONS: 0, ACROSS: 0}

# Taken for a model that was trained before this was measured.
UNKNOWN: Dict[str, int] = {**NOTHING, ROW: 64, SPAN: 15, REACH: 64}

# Relations are looked for inside sentences unless more than this share of the gold goes across.
FEW = 0.02


def is_record(seen: Any) -> bool:
    """Whether it is a record of what was seen, or None for none."""
    if seen is None:
        return True
    return (
        isinstance(seen, dict)
        and seen.keys() <= NOTHING.keys()  # earlier versions stored fewer
        and all(is_count(value) for value in seen.values())
        and seen.get(ACROSS, 0) <= seen.get(RELATIONS, 0)
    )


def learn_from(seen: Dict[str, int], rows: Rows, gold: RowGold) -> None:
    """Add what is in a batch to what was seen."""
    values = {
        ROW: rows.table[:, END] - rows.table[:, START],
        SPAN: gold.spans[:, 2] - gold.spans[:, 1],
        REACH: numpy.zeros(0, "int64"),
    }
    if gold.relations is not None and len(gold.relations):
        row, ends = gold.relations[:, 0], gold.relations[:, 1:5]
        first, last = ends.min(1), ends.max(1)
        values[REACH] = last - first
        seen[RELATIONS] += len(ends)
        if rows.sentence_starts is not None:
            sentence = rows.sentence_starts.cumsum()  # (T,)
            begin = rows.table[row, START]
            seen[ACROSS] += int((sentence[begin + first] != sentence[begin + last - 1]).sum())
    for name, sizes in values.items():
        seen[name] = max(seen[name], int(sizes.max(initial=0)))


def limit(seen: Optional[Dict[str, int]], name: str, factor: Optional[float]) -> Optional[int]:
    """The largest span or relation to look for: `factor` times the largest in training. None
    where there is no factor, and so no limit."""
    if factor is None:
        return None
    return max(1, int(factor * (UNKNOWN if seen is None else seen)[name]))


def row_sizes(cfg: Dict[str, Any], max_width: Optional[int]) -> Dict[str, int]:
    """`window` and `overlap` of prediction: no row is longer than in training, unless the widest
    spans need it; and windows share enough tokens to hold any span of that width."""
    window, overlap = cfg["window"], cfg["overlap"]
    if max_width is None:
        return {"window": window, "overlap": overlap}
    seen = UNKNOWN if cfg["seen"] is None else cfg["seen"]
    held = -(-4 * max_width // 3)  # three quarters of the overlap must hold a span
    window = min(window, max(seen[ROW], 2 * held))
    return {"window": window, "overlap": min(max(overlap, held), window // 2)}


def within_sentences(seen: Optional[Dict[str, int]]) -> bool:
    """Whether relations are to be looked for inside sentences alone."""
    known = UNKNOWN if seen is None else seen
    return known[ACROSS] <= FEW * known[RELATIONS]
