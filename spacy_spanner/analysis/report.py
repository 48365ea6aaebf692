"""Everything there is to say about one system or two, as plain data that JSON can hold."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from .attributes import ATTRIBUTES, TrainingFacts, corpus_oov_density
from .buckets import Split, bucket_rates, make_split
from .calibration import calibration
from .confident import confident_errors
from .marks import Rates
from .mistakes import confusion, error_counts
from .rates import by_label, by_length, macro_f, overall, unlabelled
from .significance import paired_bootstrap
from .tables import Corpus, System

Report = Dict[str, Any]


def make_report(
    systems: Sequence[System],
    *,
    train: Optional[TrainingFacts] = None,
    quartiles: bool = False,
    resamples: int = 1000,
    n_errors: int = 20,
) -> Report:
    """
    systems: The system, and the one to compare it with, if any.
    train: Needed for label consistency and everything about vocabulary.
    quartiles: Cut attributes at the quartiles of the gold instead of at the papers' intervals.
    resamples: Draws of the paired bootstrap.
    n_errors: How many of the most confident errors to list.
    """
    corpus = systems[0].corpus
    splits = [
        make_split(attribute, corpus, train, quartiles=quartiles)
        for attribute in ATTRIBUTES
        if train is not None or not attribute.needs_train
    ]
    parts = [describe_system(system, splits, train, n_errors=n_errors) for system in systems]
    report: Report = {
        "corpus": describe_corpus(corpus, train),
        "systems": parts,
        "comparison": None,
    }
    if len(systems) == 2:
        report["comparison"] = compare_parts(parts)
        difference = paired_bootstrap(systems[0], systems[1], resamples=resamples)
        report["comparison"]["f_score"] = difference._asdict()
    return report


def describe_corpus(corpus: Corpus, train: Optional[TrainingFacts]) -> Dict[str, Any]:
    return {
        "documents": len(corpus.docs),
        "tokens": int(corpus.n_tokens.sum()),
        "entities": len(corpus.gold),
        "oov_density": None if train is None else corpus_oov_density(corpus, train),
    }


def describe_system(
    system: System, splits: Sequence[Split], train: Optional[TrainingFacts], *, n_errors: int
) -> Dict[str, Any]:
    labels = by_label(system)
    curve = calibration(system)
    return {
        "name": system.name,
        "overall": as_dict(overall(system)),
        "unlabelled": as_dict(unlabelled(system)),
        "macro_f": macro_f(labels),
        "labels": {name: as_dict(rates) for name, rates in labels.items()},
        "buckets": {
            split.attribute.key: describe_buckets(system, split, train) for split in splits
        },
        "lengths": [{"length": n, **as_dict(rates)} for n, rates in by_length(system)],
        "errors": describe_errors(system),
        "confusion": describe_confusion(system, list(labels)),
        "calibration": None
        if curve is None
        else {**curve._asdict(), "bins": [own._asdict() for own in curve.bins]},
        "confident_errors": confident_errors(system, limit=n_errors),
    }


def describe_buckets(
    system: System, split: Split, train: Optional[TrainingFacts]
) -> Dict[str, Any]:
    buckets = bucket_rates(system, split, train)
    return {
        "title": split.attribute.title,
        "buckets": [
            {"name": own.name, "interval": own.interval, **as_dict(own.rates)} for own in buckets
        ],
    }


def describe_errors(system: System) -> Dict[str, Any]:
    errors = error_counts(system)
    rates = {"boundary_rate": errors.boundary_rate, "type_rate": errors.type_rate}
    return {**errors._asdict(), "total": errors.total, **rates}


def describe_confusion(system: System, names: List[str]) -> Dict[str, Any]:
    """Rows and columns in the order of `names`, then "nothing" (None)."""
    order = [system.corpus.labels.index(name) for name in names] + [len(names)]
    counts = confusion(system)[order][:, order]
    return {"labels": [*names, None], "counts": counts.tolist()}


def compare_parts(parts: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """Differences, first minus second. None where neither has anything in a bucket."""
    first, second = parts
    buckets = {
        key: [
            a["f"] - b["f"] if any(own[n] for own in (a, b) for n in Rates._fields) else None
            for a, b in zip(split["buckets"], second["buckets"][key]["buckets"], strict=True)
        ]
        for key, split in first["buckets"].items()
    }
    rates = {
        key: first["errors"][key] - second["errors"][key] for key in ("boundary_rate", "type_rate")
    }
    labels = {name: own["f"] - second["labels"][name]["f"] for name, own in first["labels"].items()}
    return {"buckets": buckets, "errors": rates, "labels": labels}


def as_dict(rates: Rates) -> Dict[str, Any]:
    values = {"precision": rates.precision, "recall": rates.recall, "f": rates.f_score}
    return {**rates._asdict(), **values}
