"""The errors a system was surest of, with the words around them."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy

from .mistakes import CORRECT, KINDS, prediction_kinds
from .tables import DOC, END, LABEL, START, System

CONTEXT = 60  # characters on either side


def confident_errors(system: System, *, limit: int = 20) -> List[Dict[str, Any]]:
    """False alarms, the most confident first (those without a confidence last, in reading order),
    each with the gold spans it touches."""
    kinds = prediction_kinds(system)
    wrong = numpy.flatnonzero(kinds != CORRECT)
    scores = system.pred.scores[wrong]
    order = numpy.argsort(-numpy.nan_to_num(scores, nan=-1.0), kind="stable")
    return [describe(system, int(i), KINDS[kinds[i]]) for i in wrong[order][:limit]]


def describe(system: System, number: int, kind: str) -> Dict[str, Any]:
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
        "text": one_line(text[start:end]),
        "after": shorten(text[end:].rstrip(), keep="start"),
        "gold": [
            {"text": one_line(text[row[START] : row[END]]), "label": corpus.labels[row[LABEL]]}
            for row in same or near
        ],
    }


def shorten(text: str, *, keep: str) -> str:
    """At most CONTEXT characters of one side of the text, cut between words."""
    line = one_line(text)
    if len(line) <= CONTEXT:
        return line
    if keep == "end":
        return "… " + line[-CONTEXT:].partition(" ")[2]
    return line[:CONTEXT].rpartition(" ")[0] + " …"


def one_line(text: str) -> str:
    """The text with blanks for line breaks; those at its edges stay."""
    return "".join(" " if char.isspace() else char for char in text)
