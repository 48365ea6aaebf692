"""docs/papers.md: the tables of the papers, published figures and ours, from the file of results."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any, Dict, List, Optional

from spacy_spanner.analysis.buckets import read_edges

from .data import DATASETS
from .papers import ENCODER, PAPERS, PaperTable, steps_of
from .results import read_lines
from .systems import System, name_of
from .tables import spread, table

Record = Dict[str, Any]
HEAD = Path(__file__).with_name("papers_head.md")


def write_page(results: Path, target: Path) -> None:
    """Write the page from all finished runs."""
    runs = read_lines(results)
    lines = [HEAD.read_text(encoding="utf8").strip(), ""]
    for paper in dict.fromkeys(own.paper for own in PAPERS.values()):
        lines += [f"## {paper}", ""]
        for name, own in PAPERS.items():
            if own.paper == paper:
                lines += paper_table(name, own, runs)
    target.write_text("\n".join(lines).rstrip() + "\n", encoding="utf8")


def paper_table(name: str, own: PaperTable, runs: List[Record]) -> List[str]:
    """One table of a paper, with what was measured on each of its corpora."""
    lines = [
        f"### {own.title}",
        "",
        "```bash",
        f'make bench BENCH="paper {name} --data DATA"',
        "```",
    ]
    lines += ["", f"Published: {own.published_on}.", ""]
    for corpus in own.corpora:
        budget = DATASETS[corpus].budgets[ENCODER]
        part = f", {budget.train_limit:,} training sentences" if budget.train_limit else ""
        rows = [row_cells(own, row, corpus, runs) for row in own.rows]
        columns = [column for measure in own.measures for column in columns_of(own, measure, runs)]
        sign = ["sign"] if own.full else []
        head = [f"{corpus}, {budget.steps} steps{part}", "seeds", "published", *columns, *sign]
        lines += [*table(head, rows), ""]
    return lines


def row_cells(own: PaperTable, row: str, corpus: str, runs: List[Record]) -> List[str]:
    """The cells of a row; empty where nothing was measured."""
    system, published = own.rows[row]
    found = records_of(system, corpus, runs)
    cells = []
    for measure in own.measures:
        for number, _ in enumerate(columns_of(own, measure, runs)):
            values = [values_of(own, measure, record, corpus, runs) for record in found]
            known = [v[number] for v in values if number < len(v) and v[number] is not None]
            cells.append(spread([value for value in known if value is not None]) if known else "")
    if own.full:
        cells.append(sign_of(own, row, corpus, runs))
    return [row, str(len(found) or ""), published, *cells]


def records_of(system: System, corpus: str, runs: List[Record]) -> List[Record]:
    """The runs of a system within the budget of a corpus; of a run measured again the last counts."""
    wanted = (corpus, name_of(system), steps_of(corpus, system))
    own = [run for run in runs if (run["dataset"], run["system"], run["steps"]) == wanted]
    return list({run["seed"]: run for run in own}.values())


def columns_of(own: PaperTable, measure: str, runs: List[Record]) -> List[str]:
    """The heads of the columns of a measure."""
    if measure == "entity_length":
        return [f"F, length {part}" for part in own.lengths.partition("=")[2].split(",") if part]
    for run in runs:
        groups = run.get("analysis", {}).get("groups", {})
        if measure in groups:
            return [f"F, {measure.replace('_', ' ')} {name}" for name, _ in groups[measure]]
    return [measure]


def values_of(
    own: PaperTable, measure: str, record: Record, corpus: str, runs: List[Record]
) -> List[Optional[float]]:
    """What was measured in one run, in the order of the columns."""
    plain = {
        "F": "f",
        "training words/s": "train_words_per_second",
        "words/s": "predict_words_per_second",
        "proposals": "proposals_per_gold",
    }
    analysis = record.get("analysis", {"groups": {}, "errors": {}, "lengths": {}})
    if measure in plain:
        return [record.get(plain[measure])]
    if measure == "relations F":
        return [record.get("relations", {}).get("f")]
    if measure in ("boundary", "type"):
        return [analysis["errors"].get(measure)]
    if measure == "error reduction":  # of the distance to 100, against the row "base" and its seed
        base = records_of(own.rows["base"][0], corpus, runs)
        first = [run["f"] for run in base if run["seed"] == record["seed"]]
        return [100 * (record["f"] - first[0]) / (100 - first[0]) if first else None]
    if measure == "entity_length" and own.lengths:
        return length_groups(own.lengths, analysis["lengths"])
    return [f for _, f in analysis["groups"].get(measure, [])]


def length_groups(text: str, lengths: Dict[str, List[int]]) -> List[Optional[float]]:
    """F of groups of lengths, from the counts of each length."""
    (split,) = read_edges([text]).values()
    sums = [[0, 0, 0] for _ in split.names]
    for length, counts in lengths.items():
        number = int(split.numbers(float(length)))  # type: ignore[arg-type]
        sums[number] = [a + b for a, b in zip(sums[number], counts, strict=True)]
    return [100 * 2 * tp / (2 * tp + fn + fp) if tp + fn + fp else None for tp, fn, fp in sums]


def sign_of(own: PaperTable, row: str, corpus: str, runs: List[Record]) -> str:
    """Whether leaving something out lowers F, as published; "unclear" where seeds do not agree."""
    system = own.rows[row][0]
    full = {run["seed"]: run["f"] for run in records_of(own.rows[own.full][0], corpus, runs)}
    changes = [
        run["f"] - full[run["seed"]]
        for run in records_of(system, corpus, runs)
        if run["seed"] in full
    ]
    if row == own.full or not changes:
        return ""
    agree = all(change < 0 for change in changes) or all(change > 0 for change in changes)
    reproduced = "unclear" if not agree else "as published" if mean(changes) < 0 else "opposite"
    return f"{mean(changes):+.1f}, {reproduced}"
