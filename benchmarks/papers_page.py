"""docs/papers.md: the tables of the papers, published figures and ours, from the files of results."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean, stdev
from textwrap import wrap
from typing import Dict, List, Sequence

from .accuracy import STATIC
from .data import TRANSFORMERS
from .paper_measures import SPEEDS
from .paper_runs import OPPOSITE, UNCLEAR, Measured, Record, measured_at, published_changes
from .papers import ENCODER, LEARN_RATE, PAPERS, PaperTable, steps_of
from .tables import table

HEAD = Path(__file__).with_name("papers_head.md")
NOTHING = "-"
SUMMARY = (
    *("table", "command", "corpus, budget", "seeds", "published", "ours"),
    *("signs", "why, and what to know"),
)


def write_page(runs: List[Record], target: Path) -> None:
    """Write the page from all finished runs."""
    lines = [HEAD.read_text(encoding="utf8").strip(), ""]
    for paper in dict.fromkeys(own.paper for own in PAPERS.values()):
        tables = {name: own for name, own in PAPERS.items() if own.paper == paper}
        measured = {name: measured_at(own, runs) for name, own in tables.items()}
        rows = [row for name in tables for row in summary(name, tables[name], measured[name])]
        lines += [f"## {paper}", "", *table(list(SUMMARY), rows), ""]
        for name, own in tables.items():
            lines += details(name, own, measured[name])
    target.write_text("\n".join(lines).rstrip() + "\n", encoding="utf8")


def summary(name: str, own: PaperTable, measured: List[Measured]) -> List[List[str]]:
    """The lines of a table in that of its paper: what its command ran, or else the first of others."""
    title = f"[{own.title.partition(':')[0]}](#{anchor(own.title)})"
    published = f"{own.main_row}: {own.rows[own.main_row][1] or 'a figure'}"
    if not measured:
        return [
            [title, f"`paper {name}`", "not run here", NOTHING, published, NOTHING, "", own.note]
        ]
    shown = [at for at in measured if at.by_command] or measured[:1]
    rows = []
    for at in shown:
        seeds = " to ".join(map(str, sorted({at.seeds()[0], at.seeds()[-1]})))
        cells = [f"`{command(name, at)}`", at.place.text(), seeds, published, ours(at), signs(at)]
        rows.append([title, *cells, " ".join(filter(None, [reason(at), own.note]))])
    others = [f"{at.place.corpus} over `{at.place.encoder}`" for at in measured if at not in shown]
    if others:
        rows[-1][-1] = f"{rows[-1][-1]} Also below: {', '.join(others)}.".strip()
    return rows


def anchor(title: str) -> str:
    """Where a heading is, as MkDocs names it."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def command(name: str, at: Measured) -> str:
    """What `make bench` is given for these runs."""
    place, rates = at.place, at.rates()
    if place.encoder != ENCODER:
        systems = ",".join(at.own.systems.values())
        text = f"accuracy --full --datasets {place.corpus} --encoder {place.encoder}"
        text += f" --systems {systems}"
        text += " --vectors VECTORS" if place.encoder in STATIC else ""
        return text + (" --transformer FOLDER" if place.encoder in TRANSFORMERS else "")
    text = f"paper {name}"
    if place.corpus not in at.own.corpora:
        text += f" --corpora {place.corpus}"
    if place.steps != steps_of(place.corpus, next(iter(at.own.rows.values()))[0]):
        text += f" --steps {place.steps}"
    other_rate = len(rates) == 1 and rates != [LEARN_RATE]
    return text + (f" --learn-rate {rates[0]}" if other_rate else "")


def ours(at: Measured) -> str:
    """The first measure of the paper's own system."""
    row, measure = at.own.main_row, at.own.measures[0]
    texts = [compared_figure(at, row, column, measure) for column in at.values(row, measure)]
    return ("" if measure == "F" else f"{measure} ") + ("; ".join(texts) or NOTHING)


def signs(at: Measured) -> str:
    """Which rows change as in the paper."""
    groups: Dict[str, List[str]] = {}
    for row in at.own.rows:
        if at.sign(row):
            groups.setdefault(at.sign(row), []).append(row)
    return "; ".join(f"{sign}: {', '.join(rows)}" for sign, rows in groups.items())


def reason(at: Measured) -> str:
    """Why signs differ, as far as figures tell it: a published change that is smaller than the spread
    of our seeds cannot be seen here."""
    small, large = [], []
    for row in at.own.rows:
        full = [run["f"] for run in at.runs.get(at.own.reference(row), [])]
        known = at.own.rows[row][1] and len(full) > 1
        if at.sign(row) in (OPPOSITE, UNCLEAR) and known:
            change = max(map(abs, published_changes(at.own, row)))
            if change < stdev(full):
                small.append(f"{row} (published {change:.2f}, seeds ± {stdev(full):.2f})")
            elif at.sign(row) == OPPOSITE:
                large.append(row)
    parts = {"Smaller than the spread of our seeds": small, "More than seeds explain": large}
    return " ".join(f"{text}: {', '.join(rows)}." for text, rows in parts.items() if rows)


def details(name: str, own: PaperTable, measured: List[Measured]) -> List[str]:
    """A table of a paper with all of its rows."""
    lines = [f"### {own.title}", ""]
    for text in filter(None, (f"Published: {own.published}.", own.note)):
        lines += [*wrap(text, 120), ""]
    if not measured:
        lines += code(f"paper {name}")
        rows = [[row, published] for row, (_, published) in own.rows.items()]
        return [*lines, *table(["not run here", "published"], rows), ""]
    for at in measured:
        lines += [*code(command(name, at)), *place_table(at), ""]
    return lines


def code(given: str) -> List[str]:
    """A command as a block, in lines that are not too long."""
    text = f'make bench BENCH="{given} --data DATA"'
    if len(text) > 120:
        text = text.replace(" --systems", " \\\n    --systems")
    return ["```bash", text, "```", ""]


def place_table(at: Measured) -> List[str]:
    """The rows of a table at one place. Learning rates and commits stand in the head where all rows
    have the same."""
    own = at.own
    columns = {
        column: measure
        for measure in own.measures
        for row in own.rows
        for column in at.values(row, measure)
    }
    head, extra = [at.place.text(), "seeds", "published"], {}
    decays = all("recipe" in run for runs in at.runs.values() for run in runs)
    rate = "rate" if decays else "constant rate"
    for title, key in ((rate, "learn_rate"), ("commit", "commit")):
        marks = {row: marks_of(runs, key) for row, runs in at.runs.items()}
        if len(set(marks.values())) == 1:
            head[0] += f", {title} {next(iter(marks.values()))}"
        else:
            extra[title] = marks
    compared = any(own.reference(row) for row in own.rows)
    head += [*columns, *(["change, and sign"] if compared else []), *extra]
    rows = []
    for row, (_, published) in own.rows.items():
        cells = [compared_figure(at, row, column, measure) for column, measure in columns.items()]
        change, sign = at.changes(row), at.sign(row)
        cells += [f"{mean(change):+.1f}, {sign}" if change else ""] if compared else []
        cells += [marks.get(row, "") for marks in extra.values()]
        rows.append([row, seeds_text(at.runs.get(row, [])), published, *cells])
    return table(head, rows)


def seeds_text(runs: Sequence[Record]) -> str:
    """How many seeds there are, and how many trainings ran out of time."""
    cut = sum(run.get("steps_done", run["steps"]) < run["steps"] for run in runs)
    return (str(len(runs)) if runs else NOTHING) + (f", {cut} cut short" if cut else "")


def marks_of(runs: Sequence[Record], key: str) -> str:
    """The learning rates or the commits of runs; "+" for changes that were not committed."""
    values = dict.fromkeys(str(run.get(key, "unknown")) for run in runs)
    if key == "commit":
        return ", ".join(f"`{value[:7]}`" + "+" * value.endswith("-dirty") for value in values)
    return ", ".join(values)


def compared_figure(at: Measured, row: str, column: str, measure: str) -> str:
    """A figure and, where there is a standard, its difference from that, or times as fast."""
    values = at.values(row, measure).get(column)
    standard = at.values(at.own.standard, measure).get(column) if at.own.standard else None
    if not values:
        return NOTHING
    text = figure(values)
    if standard and row != at.own.standard:
        if measure in SPEEDS:
            text += f" ({mean(values) / mean(standard):.2f} times)"
        else:  # a group of entities may have an F of 0
            text += f" ({mean(values) - mean(standard):+.1f})"
    return text


def figure(values: Sequence[float]) -> str:
    """Mean and standard deviation."""
    digits = 0 if mean(values) >= 1000 else 1
    text = f"{mean(values):,.{digits}f}"
    return text + (f" ± {stdev(values):,.{digits}f}" if len(values) > 1 else "")
