"""Fetch the files of a corpus that project.yml names; say for each that cannot be had how to put it there."""

from http.client import HTTPException
from pathlib import Path
from typing import Any, Dict, List
from urllib.request import urlopen

import srsly
import typer
from wasabi import msg

PROJECT = Path("project.yml")
SECONDS = 60


def assets_of(dataset: str) -> List[Dict[str, Any]]:
    """The assets of project.yml below assets/DATASET."""
    assets = srsly.read_yaml(PROJECT)["assets"]
    return [own for own in assets if own["dest"].startswith(f"assets/{dataset}/")]


def fetch(url: str, target: Path) -> None:
    """Write what is at an address to a file, or raise an error and leave no file."""
    with urlopen(url, timeout=SECONDS) as answer:
        kind, content = answer.headers.get_content_type(), answer.read()
    if not content or kind == "text/html":
        raise OSError("the server sent a web page" if content else "the server sent nothing")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    part.write_bytes(content)
    part.replace(target)


def main(dataset: str = typer.Argument(..., help="Folder below assets/, such as genia")) -> None:
    """Files that are there already are kept."""
    missing = 0
    for asset in assets_of(dataset):
        target = Path(asset["dest"])
        if target.exists():
            continue
        try:
            fetch(asset["url"], target)
            msg.good(f"Fetched {target}")
        except (OSError, HTTPException, ValueError) as error:
            missing += 1
            reason = " ".join(str(error).split()) or type(error).__name__
            print(f"{target} could not be fetched ({reason}): save {asset['url']} as {target}")
    folder = Path("assets") / dataset
    if missing:
        raise typer.Exit(1)
    if not folder.is_dir():
        known = sorted({Path(own["dest"]).parts[1] for own in srsly.read_yaml(PROJECT)["assets"]})
        print(
            f"{folder} is not there: put your files into it, or choose {', '.join(known)} or demo"
        )
        raise typer.Exit(1)
    msg.good(f"{folder} is complete")


if __name__ == "__main__":
    typer.run(main)
