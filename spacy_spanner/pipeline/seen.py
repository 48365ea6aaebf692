"""What a model saw in training, and what it may therefore be asked in prediction.

A model that never saw two tokens further apart than a sentence is long knows nothing about such
pairs, and may find thousands of entities among them."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy

from ..batch import END, START, RowGold, Rows

# Largest values in the training data, in tokens.
ROW, SPAN, REACH = "longest_row", "widest_span", "longest_relation"
NOTHING: Dict[str, int] = {ROW: 0, SPAN: 0, REACH: 0}

# Taken for a model that was trained before this was measured.
UNKNOWN: Dict[str, int] = {ROW: 64, SPAN: 15, REACH: 64}


def learn_from(seen: Dict[str, int], rows: Rows, gold: RowGold) -> None:
    """Raise what was seen to what is in a batch."""
    values = {
        ROW: rows.table[:, END] - rows.table[:, START],
        SPAN: gold.spans[:, 2] - gold.spans[:, 1],
        REACH: numpy.zeros(0, "int64"),
    }
    if gold.relations is not None and len(gold.relations):
        ends = gold.relations[:, 1:5]
        values[REACH] = ends.max(1) - ends.min(1)
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
