"""`spacy spanner analyze`: break the score of a system down, and compare it with others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

import typer
from wasabi import msg

from .options import LIMIT_HELP, SpanOutput, first_only, print_table

if TYPE_CHECKING:
    from ..analysis.attributes import TrainingFacts
    from ..analysis.report import Report
    from ..analysis.systems import System

SCORES = ("TP", "FN", "FP", "P", "R", "F")


def analyze_cli(
    source: str = typer.Argument(..., help="A pipeline, or a .spacy file of predictions"),
    gold: Path = typer.Argument(..., help="Gold (.spacy)", exists=True, dir_okay=False),
    train: Optional[Path] = typer.Option(
        None, "--train", "-t", help="Training data, for consistency and vocabulary", exists=True
    ),
    compare: List[str] = typer.Option(
        [], "--compare", "-c", help="A baseline: another pipeline or file; up to five of them"
    ),
    output: SpanOutput = typer.Option(
        SpanOutput.auto,
        help="Compare spans or ents; auto: what gold has; if it has both, what all pipelines write",
    ),
    spans_key: Optional[str] = typer.Option(
        None, "--spans-key", "-sk", help="Span group to compare  [sc]"
    ),
    buckets: List[str] = typer.Option(
        ["paper"],
        help="Intervals of the papers (paper), quartiles, or custom ones of an attribute, such as "
        "length=1-4,5-9,10-; several times for several attributes",
    ),
    resamples: int = typer.Option(1000, min=1, help="Draws of the bootstrap test"),
    n_errors: int = typer.Option(20, "--errors", min=0, help="Number of confident errors to list"),
    limit: int = typer.Option(0, "--limit", "-n", min=0, help=LIMIT_HELP),
    json_path: Optional[Path] = typer.Option(None, "--json", "-j", help="Write the report as JSON"),
    page: Optional[Path] = typer.Option(None, "--page", "-o", help="Write an HTML page"),
) -> None:
    """Analyze the errors of a system.

    Strict scores by label, by length of entity and of document, and in buckets of attributes; kinds of
    errors, confusion of labels, calibration and the most confident errors. With --compare also where
    systems differ, and whether the difference is significant.
    """
    from spacy.vocab import Vocab

    from ..analysis.buckets import read_edges
    from ..analysis.plots import SYSTEM_VARIABLES
    from ..analysis.report import make_report
    from ..corpus.docs import read_docs
    from ..corpus.pairs import require_group
    from ..errors import Errors, UserError

    sources = [source, *compare]
    if len(sources) > len(SYSTEM_VARIABLES):
        raise UserError(Errors.S163.format(n=len(compare), most=len(SYSTEM_VARIABLES) - 1))
    edges = read_edges(text for text in buckets if text not in ("paper", "quartiles"))
    if spans_key is not None and output is SpanOutput.auto:
        require_group(read_docs(gold, Vocab()), gold, spans_key=spans_key)
    systems, facts = load_inputs(
        sources,
        gold,
        train,
        output=output.value,
        spans_key=spans_key or "sc",
        limit=limit,
        plots=page is not None,
    )
    report = make_report(
        systems,
        train=facts,
        quartiles="quartiles" in buckets,
        edges=edges,
        resamples=resamples,
        n_errors=n_errors,
    )
    print_report(report)
    notice = first_only(limit) if systems[0].corpus.more else ""
    if notice:
        msg.warn(notice)
    write_report(report, gold=gold, notice=notice, json_path=json_path, page=page)


def load_inputs(
    sources: List[str],
    gold: Path,
    train: Optional[Path],
    *,
    output: str,
    spans_key: str,
    limit: int,
    plots: bool,
) -> Tuple[List[System], Optional[TrainingFacts]]:
    """The systems and what is known of the training data, if it is given."""
    from ..analysis.attributes import training_facts
    from ..analysis.plots import require_plots
    from ..analysis.systems import load_systems
    from ..corpus.docs import doc_spans, read_docs, source_name
    from ..errors import Errors, UserError

    if plots:
        require_plots()  # before the work, not after it
    systems, output = load_systems(
        sources, str(gold), output=output, spans_key=spans_key, limit=limit
    )
    source = source_name(output, spans_key)
    msg.info(f"Compared: {source}")
    if train is None:
        return systems, None
    docs = list(read_docs(train, systems[0].corpus.docs[0].vocab))
    if not docs:
        raise UserError(Errors.S028.format(path=train))
    if all(doc_spans(doc, output=output, spans_key=spans_key) is None for doc in docs):
        raise UserError(Errors.S252.format(path=train, source=source))
    return systems, training_facts(docs, output=output, spans_key=spans_key)


def write_report(
    report: Report, *, gold: Path, notice: str, json_path: Optional[Path], page: Optional[Path]
) -> None:
    """Write the report as JSON and as a page, where a path is given."""
    import srsly

    from ..analysis.pages import report_page

    for path in filter(None, (json_path, page)):
        path.parent.mkdir(parents=True, exist_ok=True)
    if json_path:
        srsly.write_json(json_path, report)
        msg.good(f"Wrote the report to {json_path}")
    if page:
        page.write_text(report_page(report, gold=str(gold), notice=notice), encoding="utf-8")
        msg.good(f"Wrote the page to {page}")


def print_report(report: Report) -> None:
    """Print the scores of each system, then their differences."""
    for part in report["systems"]:
        print_system(part)
    for number, comparison in enumerate(report["comparisons"], start=1):
        print_comparison(report, comparison, report["systems"][number])


def print_comparison(report: Report, comparison: Dict[str, Any], other: Dict[str, Any]) -> None:
    """Print where the first system of a report differs from another one."""
    msg.divider(f"{report['systems'][0]['name']} minus {comparison['name']}")
    for name, change in (("F", comparison["f_score"]), ("Relations F", comparison["relations"])):
        if change is not None:
            low, high = (f"{100 * change[end]:+.2f}" for end in ("low", "high"))
            msg.text(
                f"{name} {100 * change['value']:+.2f} (95 % interval {low} to {high}), "
                f"p = {change['p_value']:.3f} by a paired bootstrap with {change['resamples']} draws"
            )
    titles = report["systems"][0]["buckets"]
    rows = []
    for key, values in comparison["buckets"].items():
        names = [bucket["name"] for bucket in titles[key]["buckets"]]
        cells = ["-" if value is None else f"{100 * value:+.1f}" for value in values]
        shown = [f"{name} {cell}" for name, cell in zip(names, cells, strict=True)]
        rows.append((titles[key]["title"], *shown))
    most = max(map(len, rows))
    padded = [(*row, *[""] * (most - len(row))) for row in rows]
    print_table(padded, ("F by bucket", *[""] * (most - 1)))
    print_length_differences((report["systems"][0], other), comparison)


def print_system(part: Dict[str, Any]) -> None:
    """Print the tables and errors of one system."""
    msg.divider(part["name"])
    print_scores(
        "Labels",
        [
            ("all", part["overall"]),
            ("all, without labels", part["unlabelled"]),
            *part["labels"].items(),
        ],
    )
    rows = []
    for split in part["buckets"].values():
        for i, bucket in enumerate(split["buckets"]):
            name = f"{bucket['name']:<5} {bucket['interval']}".strip()
            rows.append((split["title"] if i == 0 else "", name, *score_cells(bucket)))
    print_table(rows, ("Attribute", "Bucket", *SCORES), n_texts=2)
    print_scores("Length", [(str(row["length"]), row) for row in part["lengths"]])
    by_length = [
        (title, bucket["interval"], f"{bucket['documents']:,}", *score_cells(bucket))
        for title, bucket in length_rows(part["document_length"])
    ]
    print_table(by_length, ("Length of document", "Bucket", "Docs", *SCORES), n_texts=2)
    print_relations(part["relations"])
    print_proposals(part["proposals"])
    print_errors(part)


def print_relations(relations: Optional[Dict[str, Any]]) -> None:
    """Print the scores of relations, where gold has any; groups without any are left out."""
    if relations is None:
        return
    groups = {"labels": "", "distance": "distance ", "entities": "entities "}
    rows = [
        (f"{prefix}{name}", counts)
        for key, prefix in groups.items()
        for name, counts in relations[key].items()
        if counts["hits"] + counts["misses"] + counts["alarms"]
    ]
    print_scores("Relations", [("all", relations["overall"]), *rows])


def print_proposals(proposals: Optional[Dict[str, Any]]) -> None:
    """Print how many spans were proposed, how much of the gold they cover and how far they moved."""
    if proposals is None:
        return
    chosen, labelled = (100 * proposals["covered"][name] for name in ("chosen", "labelled"))
    msg.text(
        f"{proposals['count']:,} spans were proposed, {proposals['per_gold']:.1f} for each gold entity; "
        f"{chosen:.1f} % of the gold entities are among them as chosen, {labelled:.1f} % as labelled"
    )
    if proposals["distance"]["chosen"] == proposals["distance"]["labelled"]:
        return  # nothing moves
    values = {
        "moved": proposals["moves"],
        "from gold, as chosen": proposals["distance"]["chosen"],
        "from gold, as labelled": proposals["distance"]["labelled"],
    }
    rows = [
        (f"{name}, {side}", *(f"{100 * share:.1f}" for share in shares))
        for name, sides in values.items()
        for side, shares in sides.items()
    ]
    print_table(rows, ("% of boundaries, by tokens", "0", "1", "2", "3", "4 +"))


def length_rows(lengths: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """All buckets of documents; only the first of each table has a title."""
    for unit, kinds in lengths.items():
        for kind, buckets in kinds.items():
            for i, bucket in enumerate(buckets):
                yield f"{kind.capitalize()}, by {unit}" if i == 0 else "", bucket


def print_length_differences(
    systems: Tuple[Dict[str, Any], Dict[str, Any]], comparison: Dict[str, Any]
) -> None:
    """Print F of both systems and the difference by length of document."""
    parts = [length_rows(part["document_length"]) for part in systems]
    values = length_rows(comparison["document_length"])
    rows = []
    for (title, first), (_, second), (_, value) in zip(*parts, values, strict=True):
        scores = [score_cells(bucket)[-1] for bucket in (first, second)]
        difference = "-" if value is None else f"{100 * value:+.1f}"
        rows.append((title, first["interval"], f"{first['documents']:,}", *scores, difference))
    names = [part["name"] for part in systems]
    header = ("F by length of document", "Bucket", "Docs", *names, "Difference")
    print_table(rows, header, n_texts=2)


def print_errors(part: Dict[str, Any]) -> None:
    """Print kinds of errors, calibration and the five most confident errors."""
    errors, curve = part["errors"], part["calibration"]
    msg.text(
        f"Of {errors['total']:,} errors (false positives and false negatives), {errors['boundary']:,} are "
        f"boundary errors ({100 * errors['boundary_rate']:.1f} %) and {errors['type']:,} type errors "
        f"({100 * errors['type_rate']:.1f} %); {errors['spurious']:,} false positives overlap no "
        f"gold and {errors['untouched']:,} false negatives no prediction"
    )
    if curve is not None:
        msg.text(
            f"Mean confidence {100 * curve['confidence']:.1f} %, accuracy {100 * curve['accuracy']:.1f} %; "
            f"expected calibration error {100 * curve['error']:.1f} "
            f"(about {100 * curve['chance']:.1f} by chance, were the confidences perfect)"
        )
    for error in part["confident_errors"][:5]:
        score = "" if error["score"] is None else f" {error['score']:.2f}"
        gold = ", ".join(f"{g['text']} ({g['label']})" for g in error["gold"]) or "none"
        gold += f" and {error['more_gold']:,} more" if error["more_gold"] else ""
        print(
            f"  {error['before']}[{error['text']}]{error['after']}\n"
            f"      {error['label']}{score}, {error['kind']} error; gold: {gold}"
        )


def print_scores(title: str, rows: List[Any]) -> None:
    """Print a table of counts and scores."""
    print_table([(name, *score_cells(counts)) for name, counts in rows], (title, *SCORES))


def score_cells(row: Dict[str, Any]) -> List[str]:
    """The cells under `SCORES`; scores of an empty group are undefined."""
    counts = [row[name] for name in ("hits", "misses", "alarms")]
    scores = [f"{100 * row[name]:.1f}" for name in ("precision", "recall", "f")]
    return [f"{count:,}" for count in counts] + (scores if any(counts) else ["-"] * 3)
