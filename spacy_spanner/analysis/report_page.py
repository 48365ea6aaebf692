"""The report as one HTML page: no scripts, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Optional, Sequence

from .plots import bucket_plot, length_plot, reliability_plot
from .report import Report
from .report_style import PAGE

FULL = 0.05  # the least difference that gets the full colour
FEW = 20  # differences over fewer gold entities are drawn pale
MINUS = "\u2212"


def report_page(report: Report, *, gold: str) -> str:
    """A self-contained page; a second system is taken as the standard of the first."""
    parts = report["systems"]
    names = [escape(part["name"]) for part in parts]
    sections = [
        heat_section(report) if report["comparison"] else "",
        section(
            "Score by attribute",
            plot(bucket_plot(parts), "large"),
            "F in each bucket; n: gold entities",
        ),
        label_section(parts),
        pair_section(parts),
        error_section(parts),
        *(confusion_section(part, folded=i > 0) for i, part in enumerate(parts)),
        *(confident_section(part, folded=i > 0) for i, part in enumerate(parts)),
    ]
    keys = ("one", "two")
    legend = "".join(
        f'<span class="key"><i class="{key}"></i>{name}</span>' for key, name in zip(keys, names)
    )
    return PAGE.format(
        title=" against ".join(names),
        note=f"{escape(gold)} · strict matching of offsets and labels",
        cards=cards(report),
        legend=legend,
        sections="\n".join(sections),
    )


def cards(report: Report) -> str:
    """The figures at the top."""
    corpus, comparison = report["corpus"], report["comparison"]
    figures = []
    for key, part in zip(("one", "two"), report["systems"]):
        own = part["overall"]
        told = f"F of {part['name']} (P {percent(own['precision'])}, R {percent(own['recall'])})"
        figures.append((key, percent(own["f"]), told))
    if comparison:
        change = comparison["f_score"]
        ends = f"{signed(change['low'])} to {signed(change['high'])}"
        told = f"difference (95 %: {ends}; p = {change['p_value']:.3f})"
        figures.append(("", signed(change["value"]), told))
    figures.append(("", f"{corpus['entities']:,}", f"entities in {corpus['documents']:,} texts"))
    if corpus["oov_density"] is not None:
        figures.append(("", f"{percent(corpus['oov_density'])} %", "words unseen in training"))
    return "".join(
        f'<div class="card {kind}"><b>{value}</b><span>{escape(name)}</span></div>'
        for kind, value, name in figures
    )


def heat_section(report: Report) -> str:
    """Differences by bucket, by kind of error and by label, as coloured tables."""
    comparison, parts = report["comparison"], report["systems"]
    known = [value for values in comparison["buckets"].values() for value in values if value]
    sizes = sorted(map(abs, [*known, *comparison["labels"].values()]))
    full = max([FULL, *sizes[: len(sizes) * 9 // 10]])  # a few extremes must not pale the rest
    rows = []
    for key, split in parts[0]["buckets"].items():
        cells = [
            heat_cell(value, f"{own['name']} {own['interval']}", gold_count(own), full=full)
            for value, own in zip(comparison["buckets"][key], split["buckets"], strict=True)
        ]
        cells += ["<td></td>"] * (4 - len(cells))
        rows.append(f"<tr><th>{escape(split['title'])}</th>{''.join(cells)}</tr>")
    labels = [
        heat_cell(value, name, gold_count(own), full=full)
        for (name, value), own in zip(
            comparison["labels"].items(), parts[0]["labels"].values(), strict=True
        )
    ]
    for i in range(0, len(labels), 4):
        some = labels[i : i + 4] + ["<td></td>"] * (4 - len(labels[i : i + 4]))
        rows.append(f"<tr><th>{'Label' if i == 0 else ''}</th>{''.join(some)}</tr>")
    errors = [
        heat_cell(comparison["errors"][f"{kind}_rate"], f"{kind} errors", full=full, fewer=True)
        for kind in ("boundary", "type")
    ]
    rows.append(f"<tr><th>Share of all errors</th>{''.join(errors)}<td></td><td></td></tr>")
    first, second = (escape(part["name"]) for part in parts)
    note = (
        f"F of {first} minus F of {second}, in points. Green: {first} is better; red: worse; "
        f"pale: fewer than {FEW} gold entities. In the last row, less is better."
    )
    return section("Where they differ", f'<table class="heat">{"".join(rows)}</table>', note)


def gold_count(rates: Dict[str, Any]) -> int:
    return rates["hits"] + rates["misses"]


def heat_cell(
    value: Optional[float],
    name: str,
    count: Optional[int] = None,
    *,
    full: float,
    fewer: bool = False,
) -> str:
    """A difference. `fewer`: less is better."""
    told = f"<small>{escape(name.strip())}</small>"
    if count is not None:
        told += f"<small>n = {count:,}</small>"
    if value is None:
        return f'<td class="none">&ndash;{told}</td>'
    strength = round(100 * min(abs(value) / full, 1))
    kind = "better" if (value < 0) == fewer else "worse"
    if count is not None and count < FEW:
        kind += " few"
    return f'<td class="{kind}" style="--a:{strength}%"><b>{signed(value)}</b>{told}</td>'


def label_section(parts: Sequence[Dict[str, Any]]) -> str:
    columns = ("P", "R", "F", "missed", "false")
    head = "<th></th><th>gold</th>" + "".join(
        f'<th class="{key}">{name}</th>'
        for key, _ in zip(("one", "two"), parts)
        for name in columns
    )
    rows = [("all", [part["overall"] for part in parts])]
    rows.append(("all, without labels", [part["unlabelled"] for part in parts]))
    rows += [(name, [part["labels"][name] for part in parts]) for name in parts[0]["labels"]]
    body = []
    for name, owns in rows:
        cells = [f"{owns[0]['hits'] + owns[0]['misses']:,}"]
        for own in owns:
            cells += [percent(own[key]) for key in ("precision", "recall", "f")]
            cells += [f"{own[key]:,}" for key in ("misses", "alarms")]
        body.append(table_row(name, cells))
    macro = ", ".join(f"{percent(part['macro_f'])} ({escape(part['name'])})" for part in parts)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return section("By label", table, f"Mean F over labels: {macro}")


def pair_section(parts: Sequence[Dict[str, Any]]) -> str:
    """Two plots beside one another."""
    known = [part for part in parts if part["calibration"] is not None]
    figures = [figure("Recall by length", length_plot(parts))]
    if known:
        told = "; ".join(
            f"{percent(part['calibration']['error'])} ({escape(part['name'])})" for part in known
        )
        note = f"Expected calibration error {told}. Larger dots: more predictions."
        figures.append(figure("Can confidences be believed?", reliability_plot(parts), note))
    return f'<div class="pair">{"".join(figures)}</div>'


def error_section(parts: Sequence[Dict[str, Any]]) -> str:
    names = {
        "boundary": "boundary: touches gold, but has the offsets of none",
        "type": "type: offsets of gold, other label",
        "spurious": "spurious: touches no gold",
        "misses": "missed gold",
        "untouched": "… of which no prediction touches",
    }
    rows = []
    for key, name in names.items():
        cells = []
        for part in parts:
            errors = part["errors"]
            cells += [f"{errors[key]:,}", f"{percent(errors[key] / max(errors['total'], 1))} %"]
        rows.append(table_row(name, cells))
    head = "<th></th>" + "".join(
        f'<th class="{key}">count</th><th class="{key}">of all errors</th>'
        for key, _ in zip(("one", "two"), parts)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return section("Kinds of errors", table, "All errors: false alarms and misses")


def confusion_section(part: Dict[str, Any], *, folded: bool) -> str:
    labels = ["nothing" if name is None else name for name in part["confusion"]["labels"]]
    head = "<th></th>" + "".join(f"<th>{escape(name)}</th>" for name in labels)
    rows = []
    for i, (name, counts) in enumerate(zip(labels, part["confusion"]["counts"], strict=True)):
        total = max(sum(counts), 1)
        cells = "".join(
            f'<td class="{"better" if i == j else "worse"}" style="--a:{100 * count / total:.0f}%">'
            f"{count or ''}</td>"
            for j, count in enumerate(counts)
        )
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    table = f'<table class="heat small"><thead><tr>{head}</tr></thead>{"".join(rows)}</table>'
    note = "Rows: gold. Columns: predicted at the same offsets. Colour: share of the row."
    return section(f"Labels taken for others: {part['name']}", table, note, folded=folded)


def confident_section(part: Dict[str, Any], *, folded: bool) -> str:
    items = []
    for own in part["confident_errors"]:
        score = "" if own["score"] is None else f" {own['score']:.2f}"
        gold = ", ".join(f"<q>{escape(g['text'])}</q> {escape(g['label'])}" for g in own["gold"])
        items.append(
            f"<li><p>{escape(own['before'])}<mark>{escape(own['text'])}</mark>"
            f"{escape(own['after'])}</p><p class='why'><b>{escape(own['label'])}{score}</b> "
            f"{own['kind']} error · gold: {gold or 'nothing'}</p></li>"
        )
    title = f"Most confident errors: {part['name']}"
    return section(title, f"<ol>{''.join(items)}</ol>" if items else "<p>None.</p>", folded=folded)


def section(title: str, body: str, note: str = "", *, folded: bool = False) -> str:
    """A part of the page; folded ones open with a click."""
    told = f'<p class="note">{note}</p>' if note else ""
    inner = f'{told}<div class="wide">{body}</div>'
    if folded:
        return f"<details><summary>{escape(title)}</summary>{inner}</details>"
    return f"<section><h2>{escape(title)}</h2>{inner}</section>"


def figure(title: str, svg: str, note: str = "") -> str:
    return section(title, plot(svg), note)


def plot(svg: str, size: str = "") -> str:
    return f'<div class="plot {size}">{svg}</div>'


def table_row(name: str, cells: List[str]) -> str:
    return f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def signed(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)
