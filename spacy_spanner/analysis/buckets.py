"""Scores by bucket of an attribute (Ji et al. 2022, section 4.3.1) and by length of document.

A model that is trained on sentences may fail on long documents; the second breakdown shows it.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..errors import Errors, UserError
from .attributes import ATTRIBUTES, FOUR_SIZES, THREE_SIZES, VOCABULARY, Attribute, TrainingFacts
from .scores import Counts, by_document, counts_by
from .systems import GoldCorpus, System

QUARTILES = (0.25, 0.5, 0.75)
SIZE_NAMES = {1: ("all",), 2: ("S", "L"), 3: THREE_SIZES, 4: FOUR_SIZES}
# Upper bounds, inclusive, of all but the last bucket.
DOCUMENT_BOUNDS = {"tokens": (32, 64, 128, 256, 512, 1024), "sentences": (1, 2, 5, 10, 20)}
UNKNOWN = -1  # sentences of a document without sentence boundaries


class BucketCounts(NamedTuple):
    """The spans of a system in one bucket of an attribute."""

    name: str
    interval: str
    counts: Counts


class Split(NamedTuple):
    """How the values of an attribute are cut; the same for every system."""

    attribute: Attribute
    bounds: Tuple[float, ...]
    names: Tuple[str, ...]

    def numbers(self, values: numpy.ndarray) -> numpy.ndarray:
        """The bucket of each value.  (N,)"""
        return bucket_numbers(self.bounds, values)

    def interval(self, number: int) -> str:
        """The values of a bucket, readable; empty for categories."""
        if self.attribute.categorical:
            return ""
        return interval_text(self.bounds, number, integer=self.attribute.integer)


class LengthBucket(NamedTuple):
    """Documents of similar length, and the counts of one system in them."""

    interval: str
    documents: int
    counts: Counts


Edges = Mapping[str, Split]  # custom buckets by key of the attribute


def read_edges(texts: Iterable[str]) -> Dict[str, Split]:
    """Custom buckets, from texts such as "length=1-4,5-9,10-": all values, each in one bucket."""
    found: Dict[str, Split] = {}
    named = {name: a for a in ATTRIBUTES for name in (a.key, a.key.removeprefix("entity_"))}
    named = {name: a for name, a in named.items() if not a.categorical}
    for text in texts:
        name, _, intervals = text.partition("=")
        parts = intervals.split(",")
        bounds = [re.fullmatch(r"(\d*\.?\d*)-(\d*\.?\d*)|(\d+)", part) for part in parts]
        split = custom_split(named[name], bounds) if name in named and all(bounds) else None
        if split is None:
            known = ", ".join(sorted(named, key=len)[: len(named) // 2 + 1])
            raise UserError(Errors.S162.format(text=text, names=known))
        found[split.attribute.key] = Split(split.attribute, split.bounds, tuple(parts))
    return found


def custom_split(attribute: Attribute, found: Sequence[Optional[re.Match[str]]]) -> Optional[Split]:
    """Buckets by their lowest and highest values; None where values are left out or in two of them."""
    lows = [float(m[1] or m[3] or 0) for m in found if m]
    highs = [float(m[2] or m[3] or numpy.inf) for m in found if m]
    step = 1 if attribute.integer else 0
    follows = all(low == high + step for low, high in zip(lows[1:], highs[:-1], strict=True))
    if not follows or lows[0] > step or highs[-1] < numpy.inf or highs != sorted(set(highs)):
        return None
    # As a category: the text of a bucket is its name.
    return Split(attribute._replace(categorical=True), tuple(highs[:-1]), ())


def make_split(
    attribute: Attribute,
    corpus: GoldCorpus,
    train: TrainingFacts,
    *,
    quartiles: bool = False,
    edges: Optional[Edges] = None,
) -> Split:
    """The intervals of the paper, or the quartiles of the gold values where there are none or where
    `quartiles` is set, or custom ones."""
    if edges and attribute.key in edges:
        return edges[attribute.key]
    if attribute.key == VOCABULARY and corpus.embedded is None:  # no vectors to be out of
        return Split(attribute, attribute.bounds[:1], attribute.names[:2])
    if attribute.bounds and (attribute.categorical or not quartiles):
        return Split(attribute, attribute.bounds, attribute.names)
    bounds = quartile_bounds(attribute.values(corpus, corpus.gold, train))
    return Split(attribute, bounds, SIZE_NAMES[len(bounds) + 1])


def quartile_bounds(values: numpy.ndarray) -> Tuple[float, ...]:
    """Equal quartiles fall together, so that there may be fewer than four buckets."""
    if not len(values):
        return ()
    found = numpy.unique(numpy.quantile(values, QUARTILES, method="inverted_cdf"))
    return tuple(found[found < values.max()].tolist())


def bucket_numbers(bounds: Sequence[float], values: numpy.ndarray) -> numpy.ndarray:
    """The first bucket whose upper bound is not below the value.  (N,)"""
    return numpy.searchsorted(numpy.array(bounds, dtype="float64"), values, side="left")


def bucket_counts(system: System, split: Split, train: TrainingFacts) -> List[BucketCounts]:
    """Counts of each bucket; over all buckets they sum to those of the system."""
    corpus, values = system.corpus, split.attribute.values
    gold = split.numbers(values(corpus, corpus.gold, train))
    pred = split.numbers(values(corpus, system.pred, train))
    counts = counts_by(gold, pred, system, len(split.names))
    return [BucketCounts(name, split.interval(i), counts[i]) for i, name in enumerate(split.names)]


def document_sizes(corpus: GoldCorpus) -> Dict[str, numpy.ndarray]:
    """Tokens of each document, and sentences where any document has boundaries.  (D,) each"""
    sizes = {"tokens": corpus.n_tokens}
    # spaCy takes a document of one token as a marked sentence.
    marked = [doc.has_annotation("SENT_START") for doc in corpus.docs]
    if any(known and len(doc) > 1 for known, doc in zip(marked, corpus.docs, strict=True)):
        sizes["sentences"] = numpy.array(
            [
                sum(1 for _ in doc.sents) if known else UNKNOWN
                for known, doc in zip(marked, corpus.docs, strict=True)
            ]
        )
    return sizes


def length_buckets(
    system: System, *, quartiles: bool = False
) -> Dict[str, Dict[str, List[LengthBucket]]]:
    """Scores by length of document: "tokens" and, where marked, "sentences"; for "spans" and, where
    annotated, "relations". Buckets without documents are left out.

    quartiles: Cut at the quartiles of the lengths instead of at `DOCUMENT_BOUNDS`.
    """
    kinds = {"spans": (by_document(system), numpy.ones(len(system.corpus.docs), dtype=bool))}
    if system.corpus.has_relations.any():
        kinds["relations"] = (system.relation_counts, system.corpus.has_relations)
    result: Dict[str, Dict[str, List[LengthBucket]]] = {}
    for unit, sizes in document_sizes(system.corpus).items():
        known = sizes != UNKNOWN
        bounds = quartile_bounds(sizes[known]) if quartiles else DOCUMENT_BOUNDS[unit]
        numbers = bucket_numbers(bounds, sizes)
        result[unit] = {}
        for kind, (counts, annotated) in kinds.items():
            chosen = [(i, known & annotated & (numbers == i)) for i in range(len(bounds) + 1)]
            result[unit][kind] = [
                LengthBucket(
                    interval_text(bounds, i, integer=True),
                    int(inside.sum()),
                    Counts(*counts[inside].sum(axis=0).tolist()),
                )
                for i, inside in chosen
                if inside.any()
            ]
    return result


def interval_text(bounds: Sequence[float], number: int, *, integer: bool) -> str:
    """The values of a bucket, readable: "3-4", "5 +", ".1-.5"."""
    if not bounds:
        return "all"
    if number == len(bounds):
        return f"{bounds[-1] + 1:g} +" if integer else f"> {two_digits(bounds[-1])}"
    high = f"{bounds[number]:g}" if integer else two_digits(bounds[number])
    if number == 0:
        return high if integer and bounds[0] in (0, 1) else f"≤ {high}"
    low = bounds[number - 1]
    if not integer:
        return f"{two_digits(low)}-{high}"
    return high if bounds[number] == low + 1 else f"{low + 1:g}-{high}"


def two_digits(value: float) -> str:
    """At most two significant digits, without a leading zero."""
    text = f"{value:.2g}"
    return text[1:] if text.startswith("0.") else text
