"""The input of a component's model: documents, the rows to score and, in training, their gold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Optional, Tuple

import numpy
from spacy.tokens import Doc

# Columns of a table of rows.
START, END, OWN_START, OWN_END = range(4)
# From the sizes that a head is made with to the dimensions of its thinc model.
SIZES = {"width": "nI", "n_labels": "nO", "n_relations": "nR", "n_given": "nG"}


@dataclass
class Rows:
    """Stretches of tokens that are scored at once.

    The documents of a batch are concatenated to a line, and all positions are positions on
    it: so a row may hold several short documents, as it does in training. A row owns the spans that
    start in [OWN_START, OWN_END); every token of the line is owned by one row at most."""

    lengths: numpy.ndarray  # (D,) tokens of each document
    order: numpy.ndarray  # (D,) the documents in the order of the line
    table: numpy.ndarray  # (R, 4) start, end, own start, own end
    # (T,) bool, where sentences begin; only for heads that read sentences
    sentence_starts: Optional[numpy.ndarray] = None
    # (T,) bool, with the former: tokens of documents whose sentence boundaries are annotated
    marked: Optional[numpy.ndarray] = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def doc_starts(self) -> numpy.ndarray:
        """Where each document begins on the line.  (D,)"""
        ends = self.lengths[self.order].cumsum()
        starts = numpy.empty_like(self.lengths)
        starts[self.order] = ends - self.lengths[self.order]
        return starts

    def locate(self, position: numpy.ndarray) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """The document of each position, and the token in it.  (N,) -> (N,), (N,)"""
        ends = self.lengths[self.order].cumsum()
        doc = self.order[numpy.searchsorted(ends, position, side="right")]
        return doc, position - self.doc_starts[doc]

    def owns(self, row: numpy.ndarray, position: numpy.ndarray) -> numpy.ndarray:
        """Whether each row answers for what begins at a position.  (N,), (N,) -> (N,) bool"""
        at = self.table[row]
        return (position >= at[:, OWN_START]) & (position < at[:, OWN_END])

    def keep(self, rows: numpy.ndarray) -> Rows:
        """The same line with these rows alone."""
        return replace(self, table=self.table[rows])


def renumber(table: numpy.ndarray, rows: numpy.ndarray, n_rows: int) -> numpy.ndarray:
    """Which lines of a table, whose first column is a row, belong to the chosen rows, and the
    number of their row among these; -1 for the others.  (N, K), (B,) -> (N,)"""
    new_number = numpy.full(n_rows, -1)
    new_number[rows] = numpy.arange(len(rows))
    return new_number[table[:, 0]]


@dataclass
class RowGold:
    """Annotation in the coordinates of the rows."""

    spans: numpy.ndarray  # (N, 4) int64: row, start, end (exclusive), label; sorted by row
    level: numpy.ndarray  # (N,) int64 of `nesting_levels`: no two spans of a level share a token
    # Per row (length,) bool; None where all is annotated
    known: Optional[List[numpy.ndarray]] = None
    # (M, 6) int64: row, head start, head end, tail start, tail end, label; only for relations
    relations: Optional[numpy.ndarray] = None
    # (K, 4) int64: row, start, end, label of the spans that may be linked; label -1 where unknown
    ends: Optional[numpy.ndarray] = None
    # As `known`, for relations; None where these are annotated wherever spans are
    linked: Optional[List[numpy.ndarray]] = None


@dataclass
class SpanBatch:
    """Documents cut into rows."""

    docs: List[Doc]
    rows: Rows
    thresholds: numpy.ndarray  # (C,) float32
    max_cells: int  # bound on the numbers one forward step may hold
    max_width: Optional[int] = None  # widest span to score; None: no bound
    max_reach: Optional[int] = None  # most tokens from one end of a relation to the other
    gold: Optional[RowGold] = None
    # (N, 4) int64: row, start, end, label of the spans to link, where the head does not find them itself
    given: Optional[numpy.ndarray] = None


@dataclass
class SpanPrediction:
    """Found spans in the coordinates of the documents, sorted by document, start, end and label."""

    spans: numpy.ndarray  # (N, 4) int64: document, start, end (exclusive), label
    scores: numpy.ndarray  # (N,) float32 in 0..1
    # (N,) float32: log of the probability over that of no entity, where the head computes it
    margins: Optional[numpy.ndarray] = None

    def take(self, which: numpy.ndarray) -> SpanPrediction:
        """Some of the spans; which: (N,) bool, or their numbers"""
        margins = None if self.margins is None else self.margins[which]
        return SpanPrediction(self.spans[which], self.scores[which], margins)

    def per_doc(self, n_docs: int) -> List[slice]:
        """Each document's rows of the table."""
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
