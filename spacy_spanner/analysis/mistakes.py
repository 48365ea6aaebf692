"""Kinds of errors (Ji et al. 2022, section 4.3.2, eq 24), confusion of labels, confident errors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy

from .systems import DOC, END, LABEL, START, System, doc_bounds

CORRECT, TYPE, BOUNDARY, SPURIOUS = range(4)
KINDS = ("correct", "type", "boundary", "spurious")
CONTEXT = 60  # characters on either side of an error that is shown
LONGEST = 300  # characters of an error or a gold span that are shown
MOST_GOLD = 10  # gold spans that are shown with an error


class ErrorCounts(NamedTuple):
    """False positives by kind, false negatives, and the rates of eq 24."""

    type: int  # same offsets as a gold entity, other label
    boundary: int  # overlaps a gold entity, has the offsets of none
    spurious: int  # overlaps no gold entity
    misses: int  # false negatives
    untouched: int  # false negatives that no prediction overlaps

    @property
    def total(self) -> int:
        """FP + FN"""
        return self.type + self.boundary + self.spurious + self.misses

    @property
    def boundary_rate(self) -> float:
        """Boundary errors by all errors."""
        return self.boundary / max(self.total, 1)

    @property
    def type_rate(self) -> float:
        """Type errors by all errors."""
        return self.type / max(self.total, 1)


def error_counts(system: System) -> ErrorCounts:
    """Count the errors of a system by kind."""
    kinds = numpy.bincount(prediction_kinds(system), minlength=4)
    missed = system.corpus.gold.spans[~system.found]
    untouched = ~overlaps_any(missed, system.pred.spans, len(system.corpus.docs))
    return ErrorCounts(
        int(kinds[TYPE]),
        int(kinds[BOUNDARY]),
        int(kinds[SPURIOUS]),
        len(missed),
        int(untouched.sum()),
    )


def prediction_kinds(system: System) -> numpy.ndarray:
    """CORRECT, TYPE, BOUNDARY or SPURIOUS for each predicted span.  (P,)"""
    gold, pred = system.corpus.gold.spans, system.pred.spans
    offsets = set(map(tuple, gold[:, :LABEL].tolist()))
    same = numpy.array([tuple(row) in offsets for row in pred[:, :LABEL].tolist()], dtype=bool)
    touching = overlaps_any(pred, gold, len(system.corpus.docs))
    kinds = numpy.where(same, TYPE, numpy.where(touching, BOUNDARY, SPURIOUS))
    return numpy.where(system.correct, CORRECT, kinds)


def overlaps_any(rows: numpy.ndarray, others: numpy.ndarray, n_docs: int) -> numpy.ndarray:
    """Which spans share characters with any of the others; both sorted by document.  (N,) bool"""
    row_bounds, bounds = doc_bounds(rows, n_docs), doc_bounds(others, n_docs)
    result = numpy.zeros(len(rows), dtype=bool)
    for doc in range(n_docs):
        part, rest = (
            rows[row_bounds[doc] : row_bounds[doc + 1]],
            others[bounds[doc] : bounds[doc + 1]],
        )
        meets = part[:, START, None] < rest[:, END]  # (n, m)
        meets &= rest[:, START] < part[:, END, None]
        result[row_bounds[doc] : row_bounds[doc + 1]] = meets.any(axis=1)
    return result


def confusion(system: System) -> numpy.ndarray:
    """How often a gold label (row) was predicted as a label (column) at the same offsets; the last
    row and column are "none". Rows sum to the gold, columns to the predictions.  (C + 1, C + 1)

    Where several labels are wrong at the same offsets they are paired in the order of the labels.
    """
    n_labels = len(system.corpus.labels)
    counts = numpy.zeros((n_labels + 1, n_labels + 1), dtype="int64")
    gold, pred = system.corpus.gold.spans, system.pred.spans
    found = gold[system.found][:, LABEL]
    numpy.add.at(counts, (found, found), 1)
    wrong: Dict[Tuple[int, ...], Tuple[List[int], List[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((gold[~system.found], pred[~system.correct])):
        for *place, label in rows.tolist():
            wrong[tuple(place)][side].append(label)
    for missed, spurious in wrong.values():
        n_pairs = max(len(missed), len(spurious))
        none = [n_labels] * n_pairs
        pairs = ((missed + none)[:n_pairs], (spurious + none)[:n_pairs])
        numpy.add.at(counts, pairs, 1)
    return counts


def confident_errors(system: System, *, limit: int = 20) -> List[Dict[str, Any]]:
    """False positives, the most confident first (those without a confidence last, in reading
    order), each with the gold spans it overlaps."""
    kinds = prediction_kinds(system)
    wrong = numpy.flatnonzero(kinds != CORRECT)
    scores = system.pred.scores[wrong]
    order = numpy.argsort(-numpy.nan_to_num(scores, nan=-1.0), kind="stable")
    return [describe_error(system, int(i), KINDS[kinds[i]]) for i in wrong[order][:limit]]


def describe_error(system: System, number: int, kind: str) -> Dict[str, Any]:
    """A predicted span with its context; of the gold, spans with the same offsets if there are any."""
    corpus = system.corpus
    doc, start, end, label = system.pred.spans[number].tolist()
    text, score = corpus.texts[doc], system.pred.scores[number]
    gold = corpus.gold.spans
    first, last = numpy.searchsorted(gold[:, DOC], [doc, doc + 1])
    near = [row for row in gold[first:last].tolist() if row[START] < end and start < row[END]]
    same = [row for row in near if row[START] == start and row[END] == end]
    return {
        "document": doc,
        "kind": kind,
        "label": corpus.labels[label],
        "score": None if numpy.isnan(score) else float(score),
        "before": shorten(text[:start].lstrip(), keep="end"),
        "text": middle_left_out(one_line(text[start:end])),
        "after": shorten(text[end:].rstrip(), keep="start"),
        "gold": [
            {
                "text": middle_left_out(one_line(text[row[START] : row[END]])),
                "label": corpus.labels[row[LABEL]],
            }
            for row in (same or near)[:MOST_GOLD]
        ],
        "more_gold": max(len(same or near) - MOST_GOLD, 0),
    }


def shorten(text: str, *, keep: str) -> str:
    """At most CONTEXT characters of one side of the text, cut between words."""
    line = one_line(text)
    if len(line) <= CONTEXT:
        return line
    cut = line[-CONTEXT:] if keep == "end" else line[:CONTEXT]  # whole in languages without blanks
    if keep == "end":
        return "… " + (cut.partition(" ")[2] or cut)
    return (cut.rpartition(" ")[0] or cut) + " …"


def middle_left_out(text: str) -> str:
    """The beginning and the end of a text of more than LONGEST characters."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def one_line(text: str) -> str:
    """The text with blanks for line breaks; those at its edges stay."""
    return "".join(" " if char.isspace() else char for char in text)
