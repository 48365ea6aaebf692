"""Pictures of the measurements: F of every system, and F against speed."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Iterable, List, Tuple

from .systems import BASELINES
from .tables import Record, average, best_runs, by_corpus

OURS, SPACY = "#3b6fb6", "#999999"
Point = Tuple[float, float, str]  # words per second, F, name


def plot_scores(runs: List[Record], target: Path) -> None:
    """F of every system on every corpus, with the spread over seeds; tables of one or two systems are
    left out."""
    groups = [own for own in by_corpus(runs) if len(best_runs(own[-1])) > 2]
    if not groups:
        return
    plt, figure, axes = panels(len(groups))
    for axis, (dataset, encoder, steps, own) in zip(axes, groups):
        chosen = best_runs(own)
        names = list(chosen)[::-1]
        values = [[run["f"] for run in chosen[name]] for name in names]
        errors = [stdev(v) if len(v) > 1 else 0.0 for v in values]
        colors = [SPACY if name in BASELINES else OURS for name in names]
        axis.barh(names, [mean(v) for v in values], xerr=errors, color=colors)
        low = min(mean(v) for v in values)
        axis.set_xlim(max(0, low - 10), None)
        axis.set_title(f"{dataset}, {encoder}, {steps:,} steps")
        axis.set_xlabel("F on dev")
    save(plt, figure, target)


def plot_speed(runs: List[Record], target: Path) -> None:
    """F against words per second in prediction, a panel for each corpus, all encoders in it."""
    corpora = sorted({run["dataset"] for run in runs})
    if not corpora:
        return
    plt, figure, axes = panels(len(corpora), width=6.0, height=4.6)
    encoders = sorted({run["encoder"] for run in runs})
    colors = dict(zip(encoders, plt.get_cmap("tab10").colors))
    for axis, corpus in zip(axes, corpora):
        points: List[Point] = []
        for _, encoder, _, own in by_corpus([run for run in runs if run["dataset"] == corpus]):
            for system, chosen in best_runs(own).items():
                x, y = average(chosen, "predict_words_per_second"), average(chosen, "f")
                marker = "^" if system in BASELINES else "o"
                axis.scatter(x, y, color=colors[encoder], marker=marker, alpha=0.8)
                points.append((x, y, f"{system}, {encoder}"))
        front = pareto_front(points)
        axis.plot([p[0] for p in front], [p[1] for p in front], color="#555555", lw=0.8)
        for number, (x, y, _) in enumerate(front, start=1):
            axis.annotate(str(number), (x, y), (5, 3), textcoords="offset points", fontsize=8)
        names = "\n".join(f"{number} {own[2]}" for number, own in enumerate(front, start=1))
        axis.text(0.02, 0.02, names, transform=axis.transAxes, fontsize=7)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.xaxis.set_minor_formatter("{x:,.0f}")
        axis.tick_params(axis="x", which="both", labelsize=7, rotation=30)
        axis.set_title(corpus)
        axis.set_xlabel("words per second in prediction, one thread")
        axis.set_ylabel("F on dev")
    handles = [
        plt.Line2D([], [], color=color, marker="s", ls="", label=name)
        for name, color in colors.items()
    ]
    handles += [
        plt.Line2D([], [], color="black", marker=marker, ls="", label=name)
        for marker, name in [("o", "ours"), ("^", "spaCy's")]
    ]
    figure.legend(handles=handles, loc="lower right", ncols=2)
    save(plt, figure, target)


def pareto_front(points: Iterable[Point]) -> List[Point]:
    """Points such that no other one is both faster and better; the fastest first."""
    front: List[Point] = []
    for point in sorted(points, key=lambda own: (-own[0], -own[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def panels(count: int, *, columns: int = 3, width: float = 5.0, height: float = 4.0) -> Any:
    """A figure with so many panels, row by row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = ceil(count / columns)
    size = (width * columns, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return plt, figure, list(axes.flat)


def save(plt: Any, figure: Any, target: Path) -> None:
    figure.tight_layout()
    figure.savefig(target, dpi=100)
    plt.close(figure)
