"""The whole analysis of systems, as plain data that JSON can hold."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

import numpy

from .attributes import ATTRIBUTES, TrainingFacts, corpus_oov_density
from .buckets import (
    BucketCounts,
    Edges,
    LengthBucket,
    Split,
    bucket_counts,
    length_buckets,
    make_split,
)
from .mistakes import confident_errors, confusion, error_counts
from .proposals import describe_proposals
from .relation_scores import relation_labels, relation_tables
from .scores import (
    Counts,
    bootstrap_counts,
    by_label,
    by_length,
    macro_f,
    overall,
    paired_bootstrap,
    system_calibration,
    unlabelled,
)
from .systems import GoldCorpus, System

Report = Dict[str, Any]
COUNT_KEYS = ("hits", "misses", "alarms")  # of true positives, false negatives, false positives


def make_report(
    systems: Sequence[System],
    *,
    train: Optional[TrainingFacts] = None,
    quartiles: bool = False,
    edges: Optional[Edges] = None,
    resamples: int = 1000,
    n_errors: int = 20,
) -> Report:
    """
    systems: The system, and the baselines to compare it with, if any. `comparison` of the report is
        that with the first of them.
    train: Needed for label consistency and everything about vocabulary.
    quartiles: Cut attributes at quartiles instead of at the papers' intervals.
    edges: Custom buckets of some attributes (`read_edges`).
    resamples: Draws of the paired bootstrap.
    n_errors: How many of the most confident errors to list.
    """
    corpus, facts = systems[0].corpus, train or TrainingFacts()
    splits = [
        make_split(attribute, corpus, facts, quartiles=quartiles, edges=edges)
        for attribute in ATTRIBUTES
        if train is not None or not attribute.needs_train
    ]
    labels = relation_labels(systems)
    parts = [
        {
            **describe_system(system, splits, facts, n_errors=n_errors),
            "document_length": describe_lengths(system, quartiles=quartiles),
            "relations": describe_relations(system, labels),
        }
        for system in systems
    ]
    comparisons = []
    for system, part in zip(systems[1:], parts[1:], strict=True):
        difference = paired_bootstrap(systems[0], system, resamples=resamples)._asdict()
        comparison = {"name": system.name, **compare_parts(parts[0], part), "f_score": difference}
        comparison["relations"] = None
        if part["relations"] is not None:
            counts = numpy.stack([systems[0].relation_counts, system.relation_counts])
            comparison["relations"] = bootstrap_counts(counts, resamples=resamples)._asdict()
        comparisons.append(comparison)
    return {
        "corpus": describe_corpus(corpus, train),
        "systems": parts,
        "comparisons": comparisons,
        "comparison": next(iter(comparisons), None),
    }


def describe_corpus(corpus: GoldCorpus, train: Optional[TrainingFacts]) -> Dict[str, Any]:
    """The size of the gold, and its share of words that the training data does not have."""
    return {
        "documents": len(corpus.docs),
        "tokens": int(corpus.n_tokens.sum()),
        "entities": len(corpus.gold),
        "oov_density": None if train is None else corpus_oov_density(corpus, train),
    }


def describe_system(
    system: System, splits: Sequence[Split], train: TrainingFacts, *, n_errors: int
) -> Dict[str, Any]:
    """Everything about the spans of one system but the scores by length of document."""
    labels = by_label(system)
    curve = system_calibration(system)
    return {
        "name": system.name,
        "overall": as_dict(overall(system)),
        "unlabelled": as_dict(unlabelled(system)),
        "macro_f": macro_f(labels),
        "labels": {name: as_dict(counts) for name, counts in labels.items()},
        "buckets": {
            split.attribute.key: {
                "title": split.attribute.title,
                "buckets": [as_row(bucket) for bucket in bucket_counts(system, split, train)],
            }
            for split in splits
        },
        "lengths": [{"length": n, **as_dict(counts)} for n, counts in by_length(system)],
        "errors": describe_errors(system),
        "confusion": describe_confusion(system, list(labels)),
        "calibration": None
        if curve is None
        else {**curve._asdict(), "bins": [group._asdict() for group in curve.bins]},
        "confident_errors": confident_errors(system, limit=n_errors),
        "proposals": describe_proposals(
            system.proposals, system.corpus.gold.spans, system.pred.spans
        ),
    }


def describe_lengths(system: System, *, quartiles: bool) -> Dict[str, Any]:
    """Scores by length of document: unit ("tokens", "sentences"), then "spans" or "relations"."""
    return {
        unit: {kind: [as_row(bucket) for bucket in buckets] for kind, buckets in kinds.items()}
        for unit, kinds in length_buckets(system, quartiles=quartiles).items()
    }


def describe_relations(system: System, labels: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Scores of relations in total and in groups; None where gold has no annotation of relations."""
    if not system.corpus.has_relations.any():
        return None
    tables = {
        key: {name: as_dict(counts) for name, counts in table.items()}
        for key, table in relation_tables(system, labels).items()
    }
    return {"overall": as_dict(Counts(*system.relation_counts.sum(axis=0).tolist())), **tables}


def describe_errors(system: System) -> Dict[str, Any]:
    """Counts and rates of the kinds of errors."""
    errors = error_counts(system)
    rates = {"boundary_rate": errors.boundary_rate, "type_rate": errors.type_rate}
    return {**errors._asdict(), "total": errors.total, **rates}


def describe_confusion(system: System, names: List[str]) -> Dict[str, Any]:
    """Rows and columns in the order of `names`, then "none" (None)."""
    order = [system.corpus.labels.index(name) for name in names] + [len(names)]
    counts = confusion(system)[order][:, order]
    return {"labels": [*names, None], "counts": counts.tolist()}


def compare_parts(first: Dict[str, Any], second: Dict[str, Any]) -> Dict[str, Any]:
    """Differences of F and of error rates, first minus second."""
    return {
        "buckets": {
            key: bucket_differences(split["buckets"], second["buckets"][key]["buckets"])
            for key, split in first["buckets"].items()
        },
        "errors": {
            key: first["errors"][key] - second["errors"][key]
            for key in ("boundary_rate", "type_rate")
        },
        "labels": {
            name: scores["f"] - second["labels"][name]["f"]
            for name, scores in first["labels"].items()
        },
        "document_length": {
            unit: {
                kind: bucket_differences(buckets, second["document_length"][unit][kind])
                for kind, buckets in kinds.items()
            }
            for unit, kinds in first["document_length"].items()
        },
    }


def bucket_differences(
    first: Sequence[Dict[str, Any]], second: Sequence[Dict[str, Any]]
) -> List[Optional[float]]:
    """Differences of F in the same buckets; None where neither system has anything."""
    return [
        a["f"] - b["f"] if any(side[key] for side in (a, b) for key in COUNT_KEYS) else None
        for a, b in zip(first, second, strict=True)
    ]


def as_row(bucket: Union[BucketCounts, LengthBucket]) -> Dict[str, Any]:
    """A bucket, with its counts and scores among its values."""
    values = bucket._asdict()
    counts = as_dict(values.pop("counts"))
    return {**values, **counts}


def as_dict(counts: Counts) -> Dict[str, Any]:
    """Counts and scores under the names of the JSON report."""
    scores = {"precision": counts.precision, "recall": counts.recall, "f": counts.f_score}
    return {**dict(zip(COUNT_KEYS, counts, strict=True)), **scores}
