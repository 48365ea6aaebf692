"""Scores by bucket of an attribute (Ji et al. 2022, section 4.3.1)."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy

from .attributes import FOUR, VOCABULARY, Attribute, TrainingFacts
from .marks import Rates
from .rates import counts_by
from .tables import Corpus, System

QUARTILES = (0.25, 0.5, 0.75)
NAMES = {1: ("all",), 2: ("S", "L"), 3: ("S", "M", "L"), 4: FOUR}


class Bucket(NamedTuple):
    """A part of the spans of a system."""

    name: str
    interval: str
    rates: Rates


class Split(NamedTuple):
    """How the values of an attribute are cut; the same for every system."""

    attribute: Attribute
    edges: Tuple[float, ...]
    names: Tuple[str, ...]

    def numbers(self, values: numpy.ndarray) -> numpy.ndarray:
        """The bucket of each value: the first whose upper bound is not below it.  (N,)"""
        return numpy.searchsorted(numpy.array(self.edges, dtype="float64"), values, side="left")


def make_split(
    attribute: Attribute, corpus: Corpus, train: Optional[TrainingFacts], *, quartiles: bool = False
) -> Split:
    """The intervals of the paper, or the quartiles of the gold values where there are none or where
    they are asked for. Equal quartiles fall together, so that there may be fewer than four buckets."""
    if attribute.key == VOCABULARY and corpus.embedded is None:  # no vectors to be out of
        return Split(attribute, attribute.edges[:1], attribute.names[:2])
    if attribute.edges and (attribute.fixed or not quartiles):
        return Split(attribute, attribute.edges, attribute.names)
    values = attribute.values(corpus, corpus.gold, train)
    edges: Sequence[float] = []
    if len(values):
        found = numpy.unique(numpy.quantile(values, QUARTILES, method="inverted_cdf"))
        edges = found[found < values.max()].tolist()
    return Split(attribute, tuple(edges), NAMES[len(edges) + 1])


def bucket_rates(
    system: System, split: Split, train: Optional[TrainingFacts] = None
) -> List[Bucket]:
    """Hits, misses and false alarms of each bucket; over all buckets they sum to the whole."""
    corpus, values = system.corpus, split.attribute.values
    gold = split.numbers(values(corpus, corpus.gold, train))
    pred = split.numbers(values(corpus, system.pred, train))
    counts = counts_by(gold, pred, system, len(split.names))
    return [Bucket(name, interval(split, i), counts[i]) for i, name in enumerate(split.names)]


def interval(split: Split, number: int) -> str:
    """The values of a bucket, readable: "3-4", "5 +", ".1-.5"; nothing for categories."""
    edges, whole = split.edges, split.attribute.whole
    if split.attribute.fixed:
        return ""
    if not edges:
        return "all"
    if number == len(edges):
        return f"{edges[-1] + 1:g} +" if whole else f"> {short(edges[-1])}"
    if number == 0:
        return f"{edges[0]:g}" if whole and edges[0] == 1 else f"≤ {short(edges[0])}"
    low, high = edges[number - 1], edges[number]
    if not whole:
        return f"{short(low)}-{short(high)}"
    return f"{high:g}" if high == low + 1 else f"{low + 1:g}-{high:g}"


def short(value: float) -> str:
    """At most two digits that count, without a leading zero."""
    text = f"{value:.2g}"
    return text[1:] if text.startswith("0.") else text
