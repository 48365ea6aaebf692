"""The rows of a batch, and their gold, as tensors for a head.

All token vectors of a batch are one flat tensor (T, D), from which rows are gathered by index.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy
import torch
from torch import Tensor

from .batch import END, START, RowGold, Rows, SpanBatch, renumber
from .contract import KEYS, MARKED, Gold, Sentences, Tokens


def gather(
    flat: Tensor,
    batch: SpanBatch,
    groups: List[numpy.ndarray],
    keys: Optional[numpy.ndarray] = None,
) -> List[Tokens]:
    """The rows with these numbers, group by group.

    keys: Of the words of all tokens (T,), for heads that read them."""
    if not groups:
        return []
    positions: List[numpy.ndarray] = []
    made: List[Dict[str, Any]] = []
    for rows in groups:
        at = batch.rows.table[rows]
        lengths = at[:, END] - at[:, START]
        steps = numpy.arange(int(lengths.max()))  # (L,)
        mask = steps < lengths[:, None]  # (B, L)
        index = numpy.where(mask, at[:, [START]] + steps, 0)  # (B, L)
        positions.append(index[mask])
        made.append({"mask": torch.from_numpy(mask).to(flat.device), "lengths": lengths.tolist()})
        extras = made[-1]["extras"] = {}
        if keys is not None:
            extras[KEYS] = numpy.where(mask, keys[index], 0)  # (B, L)
        if batch.rows.marked is not None:
            extras[MARKED] = batch.rows.marked[index] & mask  # (B, L)
        made[-1]["sentences"] = row_sentences(batch.rows, index, lengths, flat.device)
    # All groups at once: for each separate gather autograd would allocate a tensor of the full size.
    order = torch.from_numpy(numpy.concatenate(positions)).to(flat.device)
    parts = flat.index_select(0, order).split([len(part) for part in positions])
    return [
        Tokens(None, unpadded=vectors, max_width=batch.max_width, **values)
        for vectors, values in zip(parts, made, strict=True)
    ]


def row_sentences(
    rows: Rows, index: numpy.ndarray, lengths: numpy.ndarray, device: torch.device
) -> Optional[Sentences]:
    """The sentences of rows whose tokens have these positions (B, L); None where each row is one."""
    if rows.sentence_starts is None:
        return None
    starts = rows.sentence_starts[index]  # (B, L)
    starts[numpy.arange(index.shape[1]) >= lengths[:, None]] = False
    starts[:, 0] = True
    return Sentences(starts, lengths.tolist(), device) if starts[:, 1:].any() else None


def gather_gold(gold: RowGold, batch: SpanBatch, rows: numpy.ndarray, device: torch.device) -> Gold:
    """The annotation of the rows with these numbers, renumbered from 0."""
    n_rows = len(batch.rows)
    number = renumber(gold.spans, rows, n_rows)  # (N,)
    here = (number >= 0).nonzero()[0]
    here = here[numpy.argsort(gold.level[here], kind="stable")]
    table = numpy.column_stack([number, gold.spans[:, 1:]])[here]
    per_level = tuple(numpy.bincount(gold.level[here]).tolist())
    known = padded_masks(gold.known, rows, device)
    spans = torch.from_numpy(table).to(device)
    if gold.relations is None or gold.ends is None:
        return Gold(spans, per_level, known)
    links, ends = (take_rows(table, rows, n_rows) for table in (gold.relations, gold.ends))
    relations = torch.from_numpy(links).to(device)
    linked = known if gold.linked is None else padded_masks(gold.linked, rows, device)
    return Gold(spans, per_level, known, relations, numpy.unique(ends, axis=0), linked)


def padded_masks(
    masks: Optional[List[numpy.ndarray]], rows: numpy.ndarray, device: torch.device
) -> Optional[Tensor]:
    """The masks of the tokens of these rows, True where padded; None where there are none.  (B, L)"""
    if masks is None:
        return None
    padded = numpy.ones((len(rows), max(len(masks[row]) for row in rows)), dtype=bool)
    for i, row in enumerate(rows):
        padded[i, : len(masks[row])] = masks[row]
    return torch.from_numpy(padded).to(device)


def take_rows(table: numpy.ndarray, rows: numpy.ndarray, n_rows: int) -> numpy.ndarray:
    """Those lines of a table, whose first column is a row, that belong to the chosen rows, with the
    number of their row among these."""
    number = renumber(table, rows, n_rows)
    return numpy.column_stack([number, table[:, 1:]])[number >= 0]
