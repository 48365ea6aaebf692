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


def main(
    metrics: List[Path] = typer.Argument(..., exists=True, help="One file for each system"),
    page: Optional[List[Path]] = typer.Option(None, help="A page to name; may be repeated"),
    packages: Optional[Path] = typer.Option(None, help="Where wheels were built"),
) -> None:
    header = ["system", "result", "P", "R", "F", "words/s"]
    data = [row for path in metrics for row in rows(path.stem, srsly.read_json(path))]
    msg.divider("Scores on the test part")
    msg.table(data, header=header, divider=True, aligns=["l", "l", "r", "r", "r", "r"])
    for path in page or []:
        msg.good(f"Page to look at: {path}")
    if packages is not None:
        for wheel in sorted(packages.glob("**/*.whl")):
            msg.good(f"Package to install: {wheel}")


if __name__ == "__main__":
    typer.run(main)
