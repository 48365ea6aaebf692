"""Strict scores of relations: by label, by distance, and by whether their entities were right."""

from __future__ import annotations

from typing import Dict, List, Sequence

import numpy

from .buckets import bucket_numbers, interval_text
from .scores import Counts
from .systems import FP, System

DISTANCE_BOUNDS = (0, 2, 5, 10, 20)  # upper bounds, inclusive, of all but the last bucket
RIGHT, WRONG = "both right", "not both right"


def relation_labels(systems: Sequence[System]) -> List[str]:
    """The labels of relations in gold and in any system, the most frequent gold label first."""
    sizes: Dict[str, int] = {case.label: 0 for system in systems for case in system.relations}
    for case in systems[0].relations:
        sizes[case.label] += case.outcome != FP
    return sorted(sizes, key=lambda label: (-sizes[label], label))


def relation_tables(system: System, labels: Sequence[str]) -> Dict[str, Dict[str, Counts]]:
    """Counts of groups of relations. The groups of each table sum to all relations."""
    cases = system.relations
    intervals = [
        interval_text(DISTANCE_BOUNDS, i, integer=True) for i in range(len(DISTANCE_BOUNDS) + 1)
    ]
    numbers = bucket_numbers(DISTANCE_BOUNDS, numpy.array([case.distance for case in cases]))
    groups = {
        "labels": (labels, [case.label for case in cases]),
        "distance": (intervals, [intervals[i] for i in numbers]),
        "entities": ([RIGHT, WRONG], [RIGHT if case.ends_right else WRONG for case in cases]),
    }
    tables = {}
    for key, (names, group_names) in groups.items():
        counts = {name: [0, 0, 0] for name in names}
        for name, case in zip(group_names, cases, strict=True):
            counts[name][case.outcome] += 1
        tables[key] = {name: Counts(*row) for name, row in counts.items()}
    return tables
