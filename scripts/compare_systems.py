"""Several systems on the same test data: one table, one chart, and a significance test of each against
the baseline (paired bootstrap over documents; p-values also by Holm's method for several tests)."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import srsly
import typer
from wasabi import msg

from spacy_spanner.analysis.plots import require_plots
from spacy_spanner.analysis.scores import overall, paired_bootstrap
from spacy_spanner.analysis.systems import System, load_systems

HEADER = ["system", "P", "R", "F", "difference", "95 % interval", "p", "p (Holm)"]


def holm(p_values: List[float]) -> List[float]:
    """P-values that hold for all tests together (Holm 1979)."""
    adjusted, largest = list(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def compare(systems: List[System], *, resamples: int) -> List[Dict[str, Any]]:
    """Scores of each system, the best first, and how it differs from the last one, the baseline."""
    *others, baseline = systems
    differences = [paired_bootstrap(own, baseline, resamples=resamples) for own in others]
    adjusted = holm([own.p_value for own in differences])
    rows: List[Dict[str, Any]] = []
    for number, system in enumerate(systems):
        counts = overall(system)
        row = {
            "system": system.name,
            "p": counts.precision,
            "r": counts.recall,
            "f": counts.f_score,
        }
        if system is not baseline:
            row["difference"] = {**differences[number]._asdict(), "holm": adjusted[number]}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["f"])


def cells(row: Dict[str, Any]) -> List[str]:
    """One line of the table, in percent and percentage points."""
    shown = [row["system"], *(f"{100 * row[key]:.1f}" for key in "prf")]
    if "difference" not in row:
        return [*shown, "baseline", "", "", ""]
    own = row["difference"]
    interval = f"{100 * own['low']:+.1f} to {100 * own['high']:+.1f}"
    values = [f"{100 * own['value']:+.1f}", interval]
    return [*shown, *values, f"{own['p_value']:.3f}", f"{own['holm']:.3f}"]


def draw(rows: List[Dict[str, Any]], path: Path) -> None:
    """F of each system beside its difference from the baseline with the 95 % interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 0.45 * len(rows)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = list(range(len(rows)))[::-1]
    colours = ["#2563c9" if "difference" in row else "#8a8f99" for row in rows]
    bars = left.barh(places, [100 * row["f"] for row in rows], color=colours)
    left.bar_label(bars, fmt="%.1f", padding=3)
    left.set_yticks(places, [row["system"] for row in rows])
    left.set_xlabel("F")
    left.set_xlim(0, 108)
    right.axvline(0, color="#8a8f99", linewidth=1)
    for place, row in zip(places, rows, strict=True):
        if "difference" in row:
            value, low, high = (100 * row["difference"][key] for key in ("value", "low", "high"))
            right.plot([low, high], [place, place], color="#2563c9")
            right.plot([value], [place], "o", color="#2563c9")
    right.set_xlabel("difference of F from the baseline, 95 % interval")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main(
    gold: str = typer.Argument(..., help="Test data (.spacy)"),
    sources: List[str] = typer.Argument(..., help="Pipelines or predictions; the baseline last"),
    folder: Optional[Path] = typer.Option(None, help="Sources are systems trained below it"),
    spans_key: str = typer.Option("sc"),
    resamples: int = typer.Option(1000),
    chart: Path = typer.Option(Path("reports/comparison.png")),
    json: Path = typer.Option(Path("reports/comparison.json")),
) -> None:
    if len(sources) < 2:
        raise typer.BadParameter("name at least one system and the baseline")
    require_plots()
    if folder is not None:
        sources = [str(folder / name / "model-best") for name in sources]
    systems, _ = load_systems(sources, gold, output="spans", spans_key=spans_key)
    rows = compare(systems, resamples=resamples)
    msg.divider(f"{gold}, {resamples:,} draws")
    msg.table(list(map(cells, rows)), header=HEADER, divider=True, aligns=["l", *"rrrrrrr"])
    draw(rows, chart)
    srsly.write_json(json, rows)
    msg.good(f"Chart: {chart}. Figures: {json}")


if __name__ == "__main__":
    typer.run(main)
