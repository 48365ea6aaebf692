"""docs/papers.md: the tables of the papers, published figures and ours, from the file of results."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any, Dict, List, Optional, Tuple

from spacy_spanner.analysis.buckets import read_edges

from .data import DATASETS
from .papers import ENCODER, PAPERS, PLAIN, PaperTable, steps_of
from .results import quality
from .systems import name_of
from .tables import by_corpus, spread, table

Record = Dict[str, Any]
HEAD = Path(__file__).with_name("papers_head.md")


Place = Tuple[str, str, int]  # corpus, encoder, steps


def write_page(runs: List[Record], target: Path) -> None:
    """Write the page from all finished runs."""
    lines = [HEAD.read_text(encoding="utf8").strip(), ""]
    for paper in dict.fromkeys(own.paper for own in PAPERS.values()):
        lines += [f"## {paper}", ""]
        for name, own in PAPERS.items():
            if own.paper == paper:
                lines += paper_table(name, own, runs)
    target.write_text("\n".join(lines).rstrip() + "\n", encoding="utf8")


def paper_table(name: str, own: PaperTable, runs: List[Record]) -> List[str]:
    """One table of a paper: what the command runs, and what else was measured of at least two rows."""
    lines = [
        f"### {own.title}",
        "",
        "```bash",
        f'make bench BENCH="paper {name} --data DATA"',
        "```",
    ]
    lines += ["", f"Published: {own.published_on}.", ""]
    names = {name_of(system) for system, _ in own.rows.values()}
    system = next(iter(own.rows.values()))[0]
    places = {(corpus, ENCODER, steps_of(corpus, system)): None for corpus in own.corpora}
    for corpus, encoder, steps, measured in by_corpus(runs):
        if corpus != "demo" and len(names & {run["system"] for run in measured}) > 1:
            places[corpus, encoder, steps] = None
    for place in places:
        chosen = runs_at(place, runs)
        columns = [
            column for measure in own.measures for column in columns_of(own, measure, chosen)
        ]
        rows = [row_cells(own, row, chosen) for row in own.rows]
        sign = ["change, and sign"] if own.full else []
        lines += [*table([budget_text(*place), "seeds", "published", *columns, *sign], rows), ""]
    return lines


def budget_text(corpus: str, encoder: str, steps: int) -> str:
    """Corpus, encoder and what a training may use."""
    limit = DATASETS[corpus].budgets[encoder].train_limit
    return f"{corpus}, `{encoder}`, {steps:,} steps" + (f", {limit:,} sentences" if limit else "")


def runs_at(place: Place, runs: List[Record]) -> Dict[str, List[Record]]:
    """The runs of each system at a place, with its best learning rate, one for each seed."""
    newest = {(corpus, encoder, steps): own for corpus, encoder, steps, own in by_corpus(runs)}
    chosen: Dict[str, List[Record]] = {}
    for name in {run["system"] for run in newest.get(place, [])}:
        own = [run for run in newest[place] if run["system"] == name]
        first = [run for run in own if run["seed"] == own[0]["seed"]]
        rate = max(first, key=quality)["learn_rate"]
        chosen[name] = list({run["seed"]: run for run in own if run["learn_rate"] == rate}.values())
    return chosen


def row_cells(own: PaperTable, row: str, runs: Dict[str, List[Record]]) -> List[str]:
    """The cells of a row; empty where nothing was measured."""
    system, published = own.rows[row]
    found = runs.get(name_of(system), [])
    cells = []
    for measure in own.measures:
        for number, _ in enumerate(columns_of(own, measure, runs)):
            values = [values_of(own, measure, record, runs) for record in found]
            known = [v[number] for v in values if number < len(v) and v[number] is not None]
            cells.append(spread([value for value in known if value is not None]) if known else "")
    if own.full:
        cells.append(sign_of(own, row, runs))
    return [row, str(len(found) or ""), published, *cells]


def columns_of(own: PaperTable, measure: str, runs: Dict[str, List[Record]]) -> List[str]:
    """The heads of the columns of a measure."""
    if measure == "entity_length":
        return [f"F, length {part}" for part in own.lengths.partition("=")[2].split(",") if part]
    for run in chain.from_iterable(runs.values()):
        groups = run.get("analysis", {}).get("groups", {})
        if measure in groups:
            return [f"F, {measure.replace('_', ' ')} {name}" for name, _ in groups[measure]]
    return [measure]


def values_of(
    own: PaperTable, measure: str, record: Record, runs: Dict[str, List[Record]]
) -> List[Optional[float]]:
    """What was measured in one run, in the order of the columns."""
    analysis = record.get("analysis", {"groups": {}, "errors": {}, "lengths": {}})
    if measure in PLAIN:
        return [record.get(PLAIN[measure])]
    if measure == "relations F":
        return [record.get("relations", {}).get("f")]
    if measure in ("boundary", "type"):
        return [analysis["errors"].get(measure)]
    if measure == "error reduction":  # of the distance to 100, against the row "base" and its seed
        base = runs.get(name_of(own.rows["base"][0]), [])
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


def sign_of(own: PaperTable, row: str, runs: Dict[str, List[Record]]) -> str:
    """Whether leaving something out lowers F, as published; "unclear" where seeds do not agree."""
    full = {run["seed"]: run["f"] for run in runs.get(name_of(own.rows[own.full][0]), [])}
    found = runs.get(name_of(own.rows[row][0]), [])
    changes = [run["f"] - full[run["seed"]] for run in found if run["seed"] in full]
    if row == own.full or not changes:
        return ""
    agree = all(change < 0 for change in changes) or all(change > 0 for change in changes)
    sign = "unclear" if not agree else "as published" if mean(changes) < 0 else "opposite"
    return f"{mean(changes):+.1f}, {'one seed' if len(changes) == 1 else sign}"
