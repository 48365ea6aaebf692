"""The speed tables of docs/benchmarks.md: each ratio beside the bar it has to reach."""

from __future__ import annotations

from typing import Dict, List, Set

from .tables import Record, table
from .timed import ALONE, ROUNDS, bar

TITLES = {
    "predict": "prediction",
    "train": "training",
    "long": "long document",
    "memory": "memory of it, MB",
}


def latest(speeds: List[Record]) -> Dict[str, Record]:
    """The last measurement of each encoder; those with fewer rounds than usual are but a look."""
    found: Dict[str, Record] = {}
    for record in speeds:
        encoder = record["encoder"]
        if "memory" in record and record["rounds"] >= ROUNDS[encoder]:
            before = found.get(encoder, record)
            found[encoder] = record if names(before) <= names(record) else renewed(before, record)
    return dict(sorted(found.items()))


def renewed(before: Record, record: Record) -> Record:
    """A measurement with some rows of a later one, which has no others."""
    new = names(record) - {ALONE}
    values = {
        kind: {**own, **{name: record[kind][name] for name in own if name in new}}
        for kind, own in before.items()
        if kind in (*TITLES, "spans_per_gold") and kind in record
    }
    own = f"{', '.join(f'`{name}`' for name in sorted(new))} of commit {record['commit']}"
    return {**before, **values, "later": [*before.get("later", []), own]}


def speed_section(speeds: List[Record]) -> str:
    lines: List[str] = []
    for encoder, record in latest(speeds).items():
        kinds = [kind for kind in TITLES if kind in record]
        head = ["system", *(TITLES[kind] for kind in kinds), "spans for each gold span"]
        lines += [f"## Speed over the encoder alone, `{encoder}`", "", *about(record), ""]
        lines += [*table(head, [row(record, name, kinds) for name in record["predict"]]), ""]
    return "\n".join(lines)


def names(record: Record) -> Set[str]:
    """The rows of a measurement."""
    return set(record["predict"])


def row(record: Record, name: str, kinds: List[str]) -> List[str]:
    cells = [name if name == ALONE else f"`{name}`"]
    cells += [cell(record, kind, name) for kind in kinds]
    return [*cells, "" if name == ALONE else f"{record['spans_per_gold'][name]:.1f}"]


def cell(record: Record, kind: str, name: str) -> str:
    """A value with its bar; bold where it misses it.

    >>> cell({"encoder": "hash", "train": {"span_ner": 0.62}}, "train", "span_ner")
    '0.62 (0.50)'
    """
    value, wanted = record[kind][name], bar(record["encoder"], kind, name)
    if kind == "memory":
        text, missed = f"{round(value):,}", wanted is not None and value > wanted
        least = f" ({wanted:.0f})" if wanted is not None else ""
    else:
        text, missed = f"{value:.2f}", wanted is not None and value < wanted
        least = f" ({wanted:.2f})" if wanted is not None else ""
    return (f"**{text}**" if missed else text) + least


def about(record: Record) -> List[str]:
    """What was measured and how, in words."""
    long_document = (
        "`long document` is one of 20,000 tokens without sentences, over the same words in "
        "documents of 500. "
    )
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return [
        "Words per second over those of the encoder with the cheapest listener, "
        f"{record['words_per_second']:,} words/s in prediction: {record['sentences']} sentences of "
        f"{record['dataset']} dev, {record['threads']} thread(s), medians over {record['rounds']} "
        "round(s) in one process, in each of which both are timed one after the other, in both "
        "orders. In brackets the bar that a row has to reach; what misses it is bold. "
        "Spancat looks at spans of up to 3 or 10 tokens, SpanNER and bundles at up to 10. "
        + (long_document if "long" in record else "")
        + "Memory is the peak of a process that annotates a document of 20,000 tokens, beyond that "
        "of the encoder alone, which is shown whole. The heads are trained for a few steps only, "
        "hence the last column. "
        f"{record['machine']}, commit {record['commit']}, {versions}."
        + "".join(
            f" Measured later, over the encoder at that time: {own}."
            for own in record.get("later", [])
        )
    ]


def speed_summary(speeds: List[Record]) -> List[str]:
    """One table of all encoders: a system each row, a figure of an encoder each column."""
    records = latest(speeds)
    columns = [(record, kind) for record in records.values() for kind in TITLES if kind in record]
    head = ["system", *(f"`{record['encoder']}`, {TITLES[kind]}" for record, kind in columns)]
    rows = []
    for name in dict.fromkeys(name for record in records.values() for name in record["predict"]):
        if name != ALONE:
            cells = [cell(*at, name) if name in at[0][at[1]] else "" for at in columns]
            rows.append([f"`{name}`", *cells])
    return table(head, rows) if rows else []
