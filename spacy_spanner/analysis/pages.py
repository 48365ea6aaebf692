"""HTML pages: documents with their spans, and the report of an analysis.

The templates escape everything they are given but the SVG of `plots` and the markup of `drawing`.
Pages have no scripts and load nothing; their Content-Security-Policy forbids both.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple
from urllib.parse import quote

import numpy
from jinja2 import Environment, PackageLoader, StrictUndefined

from .articles import make_articles, pack_pages
from .drawing import direction
from .marks import GLYPHS, MarkedDoc, SpanMark, count_marks
from .plots import SYSTEM_VARIABLES as VARIABLES
from .plots import report_plots
from .report import Report, as_dict

MIN_FULL = 0.05  # the smallest difference that gets the full colour
FEW = 20  # differences over fewer gold spans are drawn pale
MOST_LABELS = 30  # in the table of confusions, which grows with their square
MINUS = "\u2212"


def documents_pages(
    docs: Sequence[MarkedDoc],
    *,
    title: str,
    note: str,
    notice: str = "",
    name: str = "page.html",
    only_errors: bool = False,
    template: str = "documents.html",
    **more: Any,
) -> Iterator[Tuple[str, str]]:
    """Self-contained pages of bounded size, each with its file name: counts over all documents,
    legend, links to the other pages, then texts with their spans.

    notice: What the page does not show.
    name: File name of the first page.
    only_errors: Show only documents with errors.
    more: For a template that extends that of documents.
    """
    marks = [mark for doc in docs for mark in doc.marks]
    labels = sorted({mark.label for mark in marks})
    classes = {label: f"label-{i}" for i, label in enumerate(labels)}
    shown = [doc for doc in docs if doc.has_errors or not only_errors]
    pages = pack_pages(make_articles(shown, classes))
    names = [page_name(name, number) for number in range(1, len(pages) + 1)]
    page = environment().get_template(template)
    context = {
        **more,
        "title": title,
        "note": note,
        "notice": notice,
        "glyphs": GLYPHS,
        "compared": any(doc.annotated for doc in docs),
        "overall": as_dict(count_marks(marks)),
        "n_docs": len(docs),
        "n_shown": len(shown),
        "n_spans": len(marks),
        "n_relations": sum(len(doc.relations) for doc in docs),
        # steps of the golden angle keep the hues of neighbours apart
        "hues": [round(210 + i * 137.508) % 360 for i in range(len(labels))],
        "classes": classes,
        "rows": label_rows(marks),
        "links": [f"./{quote(link)}" for link in names],
    }
    for number, (file_name, articles) in enumerate(zip(names, pages, strict=True)):
        yield file_name, page.render(context, number=number, articles=articles)


def page_name(name: str, number: int) -> str:
    """page.html, page-2.html, ..."""
    path = Path(name)
    return name if number == 1 else f"{path.stem}-{number}{path.suffix}"


def label_rows(marks: Sequence[SpanMark]) -> List[Dict[str, Any]]:
    """Counts and scores of each label, the most frequent first."""
    by_label: Dict[str, List[SpanMark]] = {}
    for mark in marks:
        by_label.setdefault(mark.label, []).append(mark)
    order = sorted(by_label.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"label": label, "n_spans": len(found), **as_dict(count_marks(found))}
        for label, found in order
    ]


def report_page(report: Report, *, gold: str, notice: str = "") -> str:
    """A self-contained page of a report. The other systems are baselines of the first."""
    parts = report["systems"]
    page = environment().get_template("report.html")
    return page.render(
        title=" against ".join(part["name"] for part in parts),
        note=f"{gold} · strict matching of offsets and labels",
        notice=notice,
        corpus=report["corpus"],
        comparisons=report["comparisons"],
        parts=list(zip(VARIABLES, parts)),  # with the style classes of the systems
        n_columns=max(4, *(len(split["buckets"]) for split in parts[0]["buckets"].values())),
        plots=report_plots(parts),
        full=full_colour(report),
        few=FEW,
    )


def full_colour(report: Report) -> float:
    """The difference that gets the full colour. The largest tenth does not count, or a few extreme
    differences would make the others pale."""
    known: List[float] = []
    for comparison in report["comparisons"]:
        known += [value for values in comparison["buckets"].values() for value in values if value]
        known += comparison["labels"].values()
    sizes = sorted(map(abs, known))
    return max([MIN_FULL, *sizes[: len(sizes) * 9 // 10]])


def most_confused(confusion: Dict[str, Any]) -> Dict[str, Any]:
    """The rows and columns of the MOST_LABELS labels with the most errors, in their order, and "none"."""
    counts = numpy.array(confusion["counts"])  # (C + 1, C + 1)
    errors = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    kept = numpy.sort(numpy.argsort(-errors[:-1], kind="stable")[:MOST_LABELS])
    kept = numpy.append(kept, len(counts) - 1)
    labels = [confusion["labels"][i] for i in kept]
    return {"labels": labels, "counts": counts[kept][:, kept].tolist()}


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Jinja2 with the templates of this package."""
    env = Environment(
        loader=PackageLoader("spacy_spanner.analysis"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        percent=percent,
        signed=signed,
        thousands="{:,}".format,
        direction=direction,
        counts=count_marks,
        most_confused=most_confused,
    )
    return env


def percent(value: float) -> str:
    """A share or score in percent, without the sign."""
    return f"{100 * value:.1f}"


def signed(value: float) -> str:
    """A difference of scores in percentage points."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)
