"""Strict scores: the same offsets and label as gold; over all, by label, without labels, by length."""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy

from .marks import Rates
from .tables import DOC, LABEL, System, contained


def overall(system: System) -> Rates:
    """Micro averages come from these counts."""
    return Rates(int(system.found.sum()), int((~system.found).sum()), int((~system.correct).sum()))


def unlabelled(system: System) -> Rates:
    """Only offsets count; two labels at the same offsets are one span."""
    gold = numpy.unique(system.corpus.gold.spans[:, :LABEL], axis=0)
    pred = numpy.unique(system.pred.spans[:, :LABEL], axis=0)
    hits = int(contained(gold, pred).sum())
    return Rates(hits, len(gold) - hits, len(pred) - hits)


def by_label(system: System) -> Dict[str, Rates]:
    """The most frequent gold label first."""
    gold, pred = system.corpus.gold.spans[:, LABEL], system.pred.spans[:, LABEL]
    counts = counts_by(gold, pred, system, len(system.corpus.labels))
    names = system.corpus.labels
    order = sorted(range(len(names)), key=lambda i: (-counts[i].hits - counts[i].misses, names[i]))
    return {names[i]: counts[i] for i in order}


def macro_f(rates: Dict[str, Rates]) -> float:
    """The mean F of the labels that gold has."""
    values = [own.f_score for own in rates.values() if own.hits + own.misses]
    return sum(values) / max(len(values), 1)


def by_length(system: System) -> List[Tuple[int, Rates]]:
    """For each length in tokens that occurs (Shen et al. 2021, Table 2)."""
    gold, pred = (
        part.tokens[:, 1] - part.tokens[:, 0] for part in (system.corpus.gold, system.pred)
    )
    longest = max(gold.max(initial=0), pred.max(initial=0))
    counts = counts_by(gold, pred, system, int(longest) + 1)
    return [(length, own) for length, own in enumerate(counts) if any(own)]


def by_document(system: System) -> numpy.ndarray:
    """Hits, misses and false alarms of each document.  (D, 3)"""
    gold, pred = system.corpus.gold.spans[:, DOC], system.pred.spans[:, DOC]
    return numpy.array(counts_by(gold, pred, system, len(system.corpus.docs))).reshape(-1, 3)


def counts_by(
    gold: numpy.ndarray, pred: numpy.ndarray, system: System, n_groups: int
) -> List[Rates]:
    """Counts of groups, given the group of each gold (G,) and predicted span (P,)."""
    hits = numpy.bincount(gold[system.found], minlength=n_groups)
    misses = numpy.bincount(gold[~system.found], minlength=n_groups)
    alarms = numpy.bincount(pred[~system.correct], minlength=n_groups)
    return [Rates(*row) for row in numpy.stack([hits, misses, alarms], axis=1).tolist()]
