"""The scores of several systems side by side, from the JSON files that `spacy evaluate` writes."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import srsly
import typer
from wasabi import msg


def rows(name: str, metrics: Dict[str, Any]) -> List[List[str]]:
    """A row for each kind of result that was scored: span groups and entities."""
    kinds = [key[: -len("_per_type")] for key in metrics if key.endswith("_per_type")]
    table = []
    for kind in kinds:
        scores = [metrics.get(f"{kind}_{part}") for part in "prf"]
        if None not in scores:
            table.append([name, kind, *(f"{100 * score:.1f}" for score in scores)])
            table[-1].append(f"{metrics['speed']:,.0f}")
    return table


def difference(report: Dict[str, Any], names: List[str]) -> str:
    """How far the first system is ahead, and what of that may be chance."""
    change = report["comparison"]["f_score"]
    value, low, high = (f"{100 * change[part]:+.1f}" for part in ("value", "low", "high"))
    return (
        f"F of {names[0]} minus {names[1]}: {value} (95 % interval {low} to {high}, p = "
        f"{change['p_value']:.3f}; the documents of the test part drawn again {change['resamples']:,} "
        "times. One seed: another one moves it, too)"
    )


def main(
    metrics: List[Path] = typer.Argument(..., exists=True, help="One file for each system"),
    analysis: Optional[Path] = typer.Option(None, help="Of `analyze --compare --json`"),
    page: Optional[List[Path]] = typer.Option(None, help="A page to name; may be repeated"),
    packages: Optional[Path] = typer.Option(None, help="Where wheels were built"),
) -> None:
    header = ["system", "result", "P", "R", "F", "words/s"]
    data = [row for path in metrics for row in rows(path.stem, srsly.read_json(path))]
    msg.divider("Scores on the test part")
    msg.table(data, header=header, divider=True, aligns=["l", "l", "r", "r", "r", "r"])
    if analysis is not None:
        msg.text(difference(srsly.read_json(analysis), [path.stem for path in metrics]))
    for path in page or []:
        msg.good(f"Page to look at: {path}")
    if packages is not None:
        for wheel in sorted(packages.glob("**/*.whl")):
            msg.good(f"Package to install: {wheel}")


if __name__ == "__main__":
    typer.run(main)
