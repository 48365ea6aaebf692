"""What a component hands to its model: documents, the rows to score and, in training, their gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

import numpy
from spacy.tokens import Doc

# Columns of a row table.
DOC, START, END, OWN_START, OWN_END = range(5)


@dataclass
class RowGold:
    """Annotation in the coordinates of the rows."""

    spans: numpy.ndarray  # (N, 4) int64: row, start, end (exclusive), label; sorted by row
    outer: numpy.ndarray  # (N,) bool: outermost spans, no two of which share a token
    known: Optional[List[numpy.ndarray]] = (
        None  # per row (length,) bool; None where all is annotated
    )
    # (M, 6) int64: row, head start, head end, tail start, tail end, label; only for relations
    relations: Optional[numpy.ndarray] = None


@dataclass
class SpanBatch:
    """Documents cut into rows. A row owns the spans that start in [OWN_START, OWN_END)."""

    docs: List[Doc]
    rows: numpy.ndarray  # (R, 5) int64: document, start, end, own start, own end
    thresholds: numpy.ndarray  # (C,) float32
    max_cells: int  # bound on the numbers one forward step may hold
    gold: Optional[RowGold] = None
    keys: Optional[List[numpy.ndarray]] = None  # per document (n,) int64 word keys
    # (N, 3) int64: row, start, end of the spans to link, where the head does not find them itself
    given: Optional[numpy.ndarray] = None


@dataclass
class SpanPrediction:
    """Found spans in the coordinates of the documents, sorted by document, start, end and label."""

    spans: numpy.ndarray  # (N, 4) int64: document, start, end (exclusive), label
    scores: numpy.ndarray  # (N,) float32 in 0..1

    def per_doc(self, n_docs: int) -> List[slice]:
        """Where each document's spans stand in the table."""
        bounds = numpy.searchsorted(self.spans[:, 0], numpy.arange(n_docs + 1))
        return [slice(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:])]


@dataclass
class RelationPrediction:
    """Found relations in the coordinates of the documents, sorted by all columns, and the spans
    that were found with them (none where spans were given)."""

    entities: SpanPrediction
    # (M, 6) int64: document, head start, head end, tail start, tail end, label
    relations: numpy.ndarray
    scores: numpy.ndarray  # (M,) float32 in 0..1
