"""Plots as SVG that takes its colours and fonts from the page around it. Needs matplotlib."""

from __future__ import annotations

import importlib.util
import re
from io import StringIO
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple

import numpy

from ..errors import Errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib draws with these; in the page they become the variables of its style sheet.
INK, SOFT, RULE, ONE, TWO = "#010203", "#010204", "#010205", "#010206", "#010207"
VARIABLES = {INK: "ink", SOFT: "soft", RULE: "rule", ONE: "one", TWO: "two"}
COLOURS = (ONE, TWO)
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
LONGEST = 12  # tokens; longer entities are drawn together


def require_plots() -> None:
    """Say what to install before any work is done in vain."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(Errors.S031)


def bucket_plot(parts: Sequence[Dict[str, Any]]) -> str:
    """F of each system in each bucket of each attribute."""
    n_rows = -(-len(parts[0]["buckets"]) // 4)
    return draw("buckets", (11.6, 2.75 * n_rows), fill_buckets, parts)


def fill_buckets(figure: Figure, parts: Sequence[Dict[str, Any]]) -> None:
    splits = list(parts[0]["buckets"])
    n_rows = -(-len(splits) // 4)
    grid = figure.subplots(n_rows, 4, sharey=True, squeeze=False).ravel()
    for axes, key in zip(grid, splits):
        own = [part["buckets"][key]["buckets"] for part in parts]
        ticks = [
            "\n".join(filter(None, (bucket["name"], bucket["interval"], gold_count(bucket))))
            for bucket in own[0]
        ]
        axes.set_title(parts[0]["buckets"][key]["title"], loc="left")
        draw_bars(axes, [[100 * bucket["f"] for bucket in buckets] for buckets in own], ticks)
    for axes in grid[len(splits) :]:
        axes.remove()
    for axes in grid[::4]:
        axes.set_ylabel("F")


def gold_count(rates: Dict[str, Any]) -> str:
    return f"n = {rates['hits'] + rates['misses']:,}"


def draw_bars(axes: Axes, values: List[List[float]], ticks: List[str]) -> None:
    places = numpy.arange(len(ticks))
    width = 0.8 / len(values)
    for i, heights in enumerate(values):
        left = places - 0.4 + width * (i + 0.5)
        bars = axes.bar(left, heights, width * 0.92, color=COLOURS[i])
        axes.bar_label(bars, fmt="%.0f", fontsize=8, color=SOFT, padding=1)
    axes.set_xticks(places, ticks, fontsize=8)
    axes.set_ylim(0, 112)
    axes.set_yticks([0, 25, 50, 75, 100])


def length_plot(parts: Sequence[Dict[str, Any]]) -> str:
    """Recall by length in tokens; the longest are drawn as one."""
    return draw("length", (5.6, 3.7), fill_lengths, parts)


def fill_lengths(figure: Figure, parts: Sequence[Dict[str, Any]]) -> None:
    axes = figure.subplots()
    known = sorted({min(own["length"], LONGEST) for part in parts for own in part["lengths"]})
    counts: Dict[int, int] = {}
    for i, part in enumerate(parts):
        hits, gold = dict.fromkeys(known, 0), dict.fromkeys(known, 0)
        for own in part["lengths"]:
            hits[min(own["length"], LONGEST)] += own["hits"]
            gold[min(own["length"], LONGEST)] += own["hits"] + own["misses"]
        drawn = [length for length in known if gold[length]]
        recalls = [100 * hits[length] / gold[length] for length in drawn]
        axes.plot(drawn, recalls, "o-", color=COLOURS[i], markersize=5, label=part["name"])
        counts = gold
    ticks = [f"{n}{'+' if n == LONGEST else ''}\n{counts[n]:,}" for n in known]
    axes.set_xticks(known, ticks, fontsize=8)
    axes.set_xlabel("tokens, and gold entities of that length")
    axes.set_ylabel("recall")
    axes.set_ylim(0, 103)


def reliability_plot(parts: Sequence[Dict[str, Any]]) -> str:
    """Share of right predictions by confidence; the diagonal is what confidences promise."""
    return draw("reliability", (5.6, 3.7), fill_reliability, parts)


def fill_reliability(figure: Figure, parts: Sequence[Dict[str, Any]]) -> None:
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color=SOFT, linewidth=1)
    for i, part in enumerate(parts):
        if part["calibration"] is None:
            continue
        bins = part["calibration"]["bins"]
        confidence = [own["confidence"] for own in bins]
        accuracy = [own["accuracy"] for own in bins]
        sizes = numpy.array([own["size"] for own in bins])
        axes.plot(confidence, accuracy, "-", color=COLOURS[i], linewidth=1.5)
        axes.scatter(confidence, accuracy, 14 + 180 * sizes / sizes.sum(), color=COLOURS[i])
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("confidence")
    axes.set_ylabel("share that is right")


def draw(
    name: str,
    size: Tuple[float, float],
    fill: Callable[[Figure, Sequence[Dict[str, Any]]], None],
    parts: Sequence[Dict[str, Any]],
) -> str:
    """Fill a figure of its own, without matplotlib's global state, and write it as SVG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    target = StringIO()
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        fill(figure, parts)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(target, format="svg", transparent=True, metadata=nothing)
    return adopt(target.getvalue(), name)


def adopt(svg: str, name: str) -> str:
    """A drawing as an element of an HTML page: colours are variables, ids are its own."""
    svg = svg[svg.index("<svg") :].strip()
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    return re.sub(r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', svg)
