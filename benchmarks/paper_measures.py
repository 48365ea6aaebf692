"""What the tables of the papers measure, from the record of a run."""

from __future__ import annotations

from statistics import mean
from typing import Any, Callable, Dict, List, Optional

from spacy_spanner.analysis.buckets import read_edges

Record = Dict[str, Any]
Values = Dict[str, Optional[float]]  # by column of the table

SPEEDS = {"training words/s": "train_words_per_second", "words/s": "predict_words_per_second"}
STEPS = ("0", "1", "2", "3", "4 +")


def errors(record: Record, measure: str) -> Values:
    """The share of a kind of errors in all errors."""
    found = record.get("analysis", {}).get("errors", {})
    return {f"{measure}, %": found.get(measure.removesuffix(" errors"))}


def sides(values: Dict[str, List[float]]) -> List[float]:
    """The mean of left and right boundaries, in %."""
    return [100 * mean(pair) for pair in zip(values["left"], values["right"], strict=True)]


# Of `analysis.proposals`; see `spacy_spanner.analysis.proposals`.
PROPOSALS: Dict[str, Callable[[Dict[str, Any]], Values]] = {
    "proposals": lambda own: {"proposals for each entity": own["per_gold"]},
    "covered": lambda own: {
        "gold among proposals, %": 100 * own["covered"]["chosen"],
        "after regression, %": 100 * own["covered"]["labelled"],
    },
    "moves": lambda own: {
        f"moved by {step}, %": share for step, share in zip(STEPS, sides(own["moves"]), strict=True)
    },
    "distance": lambda own: {
        "boundaries right before, %": sides(own["distance"]["chosen"])[0],
        "after, %": sides(own["distance"]["labelled"])[0],
    },
}


def values_of(measure: str, record: Record, lengths: str = "", base: float = 0.0) -> Values:
    """What was measured in one run; nothing where the run is older than the measure.

    lengths: Groups by length of entity, instead of those of `analyze`.
    base: F of the run that errors are reduced from; 0 for none.
    """
    analysis = record.get("analysis", {})
    if measure == "F":
        found: Values = {"F": record["f"]}
    elif measure == "error reduction":  # of the distance to 100
        found = {measure: 100 * (record["f"] - base) / (100 - base) if base else None}
    elif measure == "relations F":
        found = {measure: record.get("relations", {}).get("f")}
    elif measure in SPEEDS:
        found = {measure: record.get(SPEEDS[measure])}
    elif measure in PROPOSALS:
        own = analysis.get("proposals")
        found = PROPOSALS[measure](own) if own else {}
    elif measure.endswith(" errors"):
        found = errors(record, measure)
    elif measure == "entity_length" and lengths:
        found = length_groups(lengths, analysis.get("lengths", {}))
    else:
        groups = analysis.get("groups", {}).get(measure, [])
        found = {f"F, {measure.replace('_', ' ')} {name}": f for name, f in groups}
    return {column: value for column, value in found.items() if value is not None}


def length_groups(text: str, lengths: Dict[str, List[int]]) -> Values:
    """F of groups of lengths, from the counts of each length."""
    (split,) = read_edges([text]).values()
    sums = [[0, 0, 0] for _ in split.names]
    for length, counts in lengths.items():
        number = int(split.numbers(float(length)))  # type: ignore[arg-type]
        sums[number] = [a + b for a, b in zip(sums[number], counts, strict=True)]
    return {
        f"F, length {name}": 200 * tp / (2 * tp + fn + fp) if tp + fn + fp else None
        for name, (tp, fn, fp) in zip(split.names, sums, strict=True)
    }


def is_measured(measures: List[str], record: Optional[Record], lengths: str = "") -> bool:
    """Whether a run has all of this already. Relations are missing where none was found."""
    wanted = [measure for measure in measures if measure not in ("error reduction", "relations F")]
    return record is not None and all(values_of(own, record, lengths) for own in wanted)
