"""Plots as SVG that takes its colours and fonts from the page around it. Needs matplotlib."""

from __future__ import annotations

import importlib.util
import re
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple

import numpy

from ..errors import Errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib draws with these; `embed_svg` replaces them by variables of the style sheet.
INK, SOFT, RULE = "#010203", "#010204", "#010205"
COLOURS = [f"#0102{number:02x}" for number in range(6, 12)]
SYSTEM_VARIABLES = ("one", "two", "three", "four", "five", "six")
VARIABLES = {INK: "ink", SOFT: "soft", RULE: "rule", **dict(zip(COLOURS, SYSTEM_VARIABLES))}
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spacy-spanner",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": RULE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
}
MOST_FIGURES = 16  # bars of a chart; over more of them their values would overlap
LONGEST = 12  # tokens; longer entities are drawn together
SystemReport = Dict[str, Any]
Panel = Tuple[str, List[List[Dict[str, Any]]]]  # title, buckets of each system


def require_plots() -> None:
    """Raise an error before the work begins if matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(Errors.S031)


def report_plots(parts: Sequence[SystemReport]) -> Dict[str, str]:
    """The plots of the systems of a report as SVG, by name; "calibration" only with confidences."""
    buckets = [
        (split["title"], [part["buckets"][key]["buckets"] for part in parts])
        for key, split in parts[0]["buckets"].items()
    ]
    documents = [
        (f"{kind.capitalize()}, by {unit}", [part["document_length"][unit][kind] for part in parts])
        for unit, kinds in parts[0]["document_length"].items()
        for kind in kinds
    ]
    plots = {
        "buckets": draw_panels("buckets", buckets, n_columns=4),
        "documents": draw_panels("documents", documents, n_columns=2),
        "length": draw_figure("length", (5.6, 3.7), partial(fill_lengths, parts)),
    }
    if any(part["calibration"] for part in parts):
        curves = partial(fill_calibration, parts)
        plots["calibration"] = draw_figure("calibration", (5.6, 3.7), curves)
    return plots


def draw_panels(name: str, panels: Sequence[Panel], *, n_columns: int) -> str:
    """A grid of bar charts: F of each system in each bucket."""
    n_rows = -(-len(panels) // n_columns)

    def fill(figure: Figure) -> None:
        grid = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
        for axes, (title, systems) in zip(grid, panels):
            axes.set_title(title, loc="left")
            draw_bars(axes, [[100 * bucket["f"] for bucket in buckets] for buckets in systems])
            ticks = [tick(bucket) for bucket in systems[0]]
            axes.set_xticks(range(len(ticks)), ticks, fontsize=8 if len(ticks) <= 4 else 6)
        for axes in grid[len(panels) :]:
            axes.remove()
        for axes in grid[::n_columns]:
            axes.set_ylabel("F")

    return draw_figure(name, (11.6, 2.75 * n_rows), fill)


def tick(bucket: Dict[str, Any]) -> str:
    """Name and interval of a bucket, and how many gold spans or relations it has."""
    count = f"n = {bucket['hits'] + bucket['misses']:,}"
    return "\n".join(filter(None, (bucket.get("name"), bucket["interval"], count)))


def draw_bars(axes: Axes, values: List[List[float]]) -> None:
    """Bars of each system side by side, with their values."""
    width = 0.8 / len(values)
    for i, heights in enumerate(values):
        left = numpy.arange(len(heights)) - 0.4 + width * (i + 0.5)
        bars = axes.bar(left, heights, width * 0.92, color=COLOURS[i])
        if len(values) * len(heights) <= MOST_FIGURES:
            axes.bar_label(bars, fmt="%.0f", fontsize=8, color=SOFT, padding=1)
    axes.set_ylim(0, 112)
    axes.set_yticks([0, 25, 50, 75, 100])


def fill_lengths(parts: Sequence[SystemReport], figure: Figure) -> None:
    """Recall by length of entity in tokens; the longest are drawn as one."""
    axes = figure.subplots()
    known = sorted({min(row["length"], LONGEST) for part in parts for row in part["lengths"]})
    counts: Dict[int, int] = {}
    for i, part in enumerate(parts):
        found, gold = dict.fromkeys(known, 0), dict.fromkeys(known, 0)
        for row in part["lengths"]:
            found[min(row["length"], LONGEST)] += row["hits"]
            gold[min(row["length"], LONGEST)] += row["hits"] + row["misses"]
        drawn = [length for length in known if gold[length]]
        recalls = [100 * found[length] / gold[length] for length in drawn]
        axes.plot(drawn, recalls, "o-", color=COLOURS[i], markersize=5)
        counts = gold
    ticks = [f"{n}{'+' if n == LONGEST else ''}\n{counts[n]:,}" for n in known]
    axes.set_xticks(known, ticks, fontsize=8)
    axes.set_xlabel("tokens, and gold entities of that length")
    axes.set_ylabel("recall")
    axes.set_ylim(0, 103)


def fill_calibration(parts: Sequence[SystemReport], figure: Figure) -> None:
    """Accuracy by confidence; perfectly calibrated confidences lie on the diagonal."""
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color=SOFT, linewidth=1)
    for i, part in enumerate(parts):
        if part["calibration"] is None:
            continue
        bins = part["calibration"]["bins"]
        confidence = [group["confidence"] for group in bins]
        accuracy = [group["accuracy"] for group in bins]
        sizes = numpy.array([group["size"] for group in bins])
        axes.plot(confidence, accuracy, "-", color=COLOURS[i], linewidth=1.5)
        axes.scatter(confidence, accuracy, 14 + 180 * sizes / sizes.sum(), color=COLOURS[i])
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("confidence")
    axes.set_ylabel("accuracy")


def draw_figure(name: str, size: Tuple[float, float], fill: Callable[[Figure], None]) -> str:
    """Fill a new figure, without matplotlib's global state, and write it as SVG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    target = StringIO()
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        fill(figure)
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(target, format="svg", transparent=True, metadata=no_metadata)
    return embed_svg(target.getvalue(), name)


def embed_svg(svg: str, name: str) -> str:
    """A drawing as an element of an HTML page: colours become variables, ids get a prefix."""
    svg = svg[svg.index("<svg") :].strip()
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    return re.sub(r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', svg)
