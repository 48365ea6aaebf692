"""`spacy spanner analyze`: errors of one system, and differences between two."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional

import typer
from wasabi import msg

if TYPE_CHECKING:
    from ..analysis.report import Report

COUNTS = ("Hits", "Missed", "False", "P", "R", "F")


class Where(str, Enum):
    auto = "auto"
    spans = "spans"
    ents = "ents"


class Intervals(str, Enum):
    paper = "paper"
    quartiles = "quartiles"


def analyze_cli(
    source: str = typer.Argument(..., help="A pipeline, or a .spacy file of predictions"),
    gold: Path = typer.Argument(..., help="Gold (.spacy)", exists=True, dir_okay=False),
    train: Optional[Path] = typer.Option(
        None, "--train", "-t", help="Training data, for consistency and vocabulary", exists=True
    ),
    compare: Optional[str] = typer.Option(
        None, "--compare", "-c", help="Another pipeline or file, taken as the standard"
    ),
    output: Where = typer.Option(
        Where.auto, "--output", help="Compare spans or ents; auto: ents if gold has no such spans"
    ),
    spans_key: str = typer.Option("sc", "--spans-key", "-sk", help="Span group to compare"),
    buckets: Intervals = typer.Option(
        Intervals.paper, "--buckets", help="Intervals of the papers, or quartiles of the gold"
    ),
    resamples: int = typer.Option(1000, "--resamples", min=1, help="Draws of the bootstrap test"),
    n_errors: int = typer.Option(20, "--errors", min=0, help="Confident errors to list"),
    json_path: Optional[Path] = typer.Option(None, "--json", "-j", help="Write all as JSON here"),
    page: Optional[Path] = typer.Option(None, "--page", "-o", help="Write an HTML page here"),
) -> None:
    """Show what a system gets right and wrong.

    Strict scores by label, by length and in buckets of attributes; kinds of errors, confused labels,
    calibration and the most confident errors. With --compare also whether two systems differ by more
    than chance, and where.
    """
    import srsly

    from ..analysis.attributes import training_facts
    from ..analysis.plots import require_plots
    from ..analysis.report import make_report
    from ..analysis.report_page import report_page
    from ..analysis.sources import load_systems
    from ..corpus.docs import read_docs
    from ..errors import Errors, UserError

    if page:
        require_plots()  # before the work, not after it
    sources = [source, compare] if compare else [source]
    systems, where = load_systems(sources, str(gold), output=output.value, spans_key=spans_key)
    vocab = systems[0].corpus.docs[0].vocab
    facts = None
    if train:
        docs = list(read_docs(train, vocab))
        if not docs:
            raise UserError(Errors.S028.format(path=train))
        facts = training_facts(docs, output=where, spans_key=spans_key)
    report = make_report(
        systems,
        train=facts,
        quartiles=buckets == Intervals.quartiles,
        resamples=resamples,
        n_errors=n_errors,
    )
    print_report(report)
    for path in filter(None, (json_path, page)):
        path.parent.mkdir(parents=True, exist_ok=True)
    if json_path:
        srsly.write_json(json_path, report)
        msg.good(f"{json_path}: everything as JSON")
    if page:
        page.write_text(report_page(report, gold=str(gold)), encoding="utf-8")
        msg.good(f"{page}: the page")


def print_report(report: Report) -> None:
    comparison = report["comparison"]
    for part in report["systems"]:
        print_system(part)
    if comparison is None:
        return
    first, second = (part["name"] for part in report["systems"])
    msg.divider(f"{first} minus {second}")
    change = comparison["f_score"]
    low, high = (f"{100 * change[end]:+.2f}" for end in ("low", "high"))
    msg.text(
        f"F {100 * change['value']:+.2f} (95 % interval {low} to {high}), p = {change['p_value']:.3f} "
        f"by {change['resamples']} paired draws of documents"
    )
    titles = report["systems"][0]["buckets"]
    rows = []
    for key, values in comparison["buckets"].items():
        names = [own["name"] for own in titles[key]["buckets"]]
        cells = ["-" if value is None else f"{100 * value:+.1f}" for value in values]
        told = [f"{name} {cell}" for name, cell in zip(names, cells, strict=True)]
        rows.append((titles[key]["title"], *told, *[""] * (4 - len(told))))
    msg.table(rows, header=("F by bucket", "", "", "", ""), divider=True, aligns=("l", *"rrrr"))


def print_system(part: Dict[str, Any]) -> None:
    msg.divider(part["name"])
    print_rates(
        "Labels",
        [
            ("all", part["overall"]),
            ("all, without labels", part["unlabelled"]),
            *part["labels"].items(),
        ],
    )
    rows = []
    for split in part["buckets"].values():
        for i, own in enumerate(split["buckets"]):
            name = f"{own['name']:<5} {own['interval']}".strip()
            rows.append((split["title"] if i == 0 else "", name, *rate_cells(own)))
    header = ("Attribute", "Bucket", *COUNTS)
    msg.table(rows, header=header, divider=True, aligns=("l", "l", *"rrrrrr"))
    print_rates("Length", [(str(own["length"]), own) for own in part["lengths"]])
    print_errors(part)


def print_errors(part: Dict[str, Any]) -> None:
    errors, curve = part["errors"], part["calibration"]
    msg.text(
        f"Of {errors['total']:,} errors (false alarms and misses), {errors['boundary']:,} are boundary "
        f"errors ({100 * errors['boundary_rate']:.1f} %) and {errors['type']:,} type errors "
        f"({100 * errors['type_rate']:.1f} %); {errors['spurious']:,} false alarms touch no gold and "
        f"{errors['untouched']:,} misses no prediction"
    )
    if curve is not None:
        msg.text(
            f"Confidence {100 * curve['confidence']:.1f} on average, {100 * curve['accuracy']:.1f} % "
            f"right; expected calibration error {100 * curve['error']:.1f}"
        )
    for own in part["confident_errors"][:5]:
        score = "" if own["score"] is None else f" {own['score']:.2f}"
        gold = ", ".join(f"{g['text']} ({g['label']})" for g in own["gold"]) or "nothing"
        print(
            f"  {own['before']}[{own['text']}]{own['after']}\n"
            f"      {own['label']}{score}, {own['kind']} error; gold: {gold}"
        )


def print_rates(title: str, rows: List[Any]) -> None:
    cells = [(name, *rate_cells(own)) for name, own in rows]
    msg.table(cells, header=(title, *COUNTS), divider=True, aligns=("l", *"rrrrrr"))


def rate_cells(own: Dict[str, Any]) -> List[str]:
    counts = [f"{own[name]:,}" for name in ("hits", "misses", "alarms")]
    return counts + [f"{100 * own[name]:.1f}" for name in ("precision", "recall", "f")]
