"""The two HTML pages: documents with their spans, and the report of an analysis.

The templates escape everything they are given but the SVG of `plots` and the markup of `marks`.
Pages have no scripts and load nothing; their Content-Security-Policy forbids both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, List, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from .marks import GLYPHS, MarkedDoc, SpanMark, count_marks, draw_text
from .plots import report_plots
from .report import Report, as_dict

MIN_FULL = 0.05  # the smallest difference that gets the full colour
FEW = 20  # differences over fewer gold spans are drawn pale
MINUS = "\u2212"


def documents_page(
    docs: Sequence[MarkedDoc],
    *,
    title: str,
    note: str,
    template: str = "documents.html",
    **more: Any,
) -> str:
    """A self-contained page of documents: counts, legend, then the texts with their spans.

    more: For a template that extends that of documents.
    """
    marks = [mark for doc in docs for mark in doc.marks]
    labels = sorted({mark.label for mark in marks})
    classes = {label: f"label-{i}" for i, label in enumerate(labels)}
    counts = [[count_marks(own) for own in (doc.marks, doc.relations)] for doc in docs]
    return (
        environment()
        .get_template(template)
        .render(
            **more,
            title=title,
            note=note,
            glyphs=GLYPHS,
            compared=any(doc.annotated for doc in docs),
            overall=as_dict(count_marks(marks)),
            n_spans=len(marks),
            # steps of the golden angle keep the hues of neighbours apart
            hues=[round(210 + i * 137.508) % 360 for i in range(len(labels))],
            classes=classes,
            rows=label_rows(marks),
            docs=[
                {
                    **doc._asdict(),
                    "counts": spans,
                    "clean": not (spans.fn or spans.fp or relations.fn or relations.fp),
                    "markup": draw_text(doc.text, doc.marks, classes),
                }
                for doc, (spans, relations) in zip(docs, counts, strict=True)
            ],
        )
    )


def label_rows(marks: Sequence[SpanMark]) -> List[Dict[str, Any]]:
    """Counts and scores of each label, the most frequent first."""
    by_label: Dict[str, List[SpanMark]] = {}
    for mark in marks:
        by_label.setdefault(mark.label, []).append(mark)
    order = sorted(by_label.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"label": label, "n_spans": len(own), **as_dict(count_marks(own))} for label, own in order
    ]


def report_page(report: Report, *, gold: str) -> str:
    """A self-contained page of a report. A second system is the baseline of the first."""
    parts = report["systems"]
    return (
        environment()
        .get_template("report.html")
        .render(
            title=" against ".join(part["name"] for part in parts),
            note=f"{gold} · strict matching of offsets and labels",
            corpus=report["corpus"],
            comparison=report["comparison"],
            parts=list(zip(("one", "two"), parts)),  # with the style classes of the two systems
            plots=report_plots(parts),
            full=full_colour(report),
            few=FEW,
        )
    )


def full_colour(report: Report) -> float:
    """The difference that gets the full colour. The largest tenth does not count, or a few extreme
    differences would make the others pale."""
    if report["comparison"] is None:
        return MIN_FULL
    buckets = report["comparison"]["buckets"].values()
    known = [value for values in buckets for value in values if value]
    sizes = sorted(map(abs, [*known, *report["comparison"]["labels"].values()]))
    return max([MIN_FULL, *sizes[: len(sizes) * 9 // 10]])


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
    env.filters.update(percent=percent, signed=signed, thousands="{:,}".format)
    return env


def percent(value: float) -> str:
    """A share or score in percent, without the sign."""
    return f"{100 * value:.1f}"


def signed(value: float) -> str:
    """A difference of scores in percentage points."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)
