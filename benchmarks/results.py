"""The files that measurements are appended to, one JSON object a line."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, Dict, List

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.jsonl"
SPEED = FOLDER / "speed.jsonl"
PAPER_RUNS = FOLDER / "papers.jsonl"
MEMORY = FOLDER / "memory.jsonl"
TRAINING_MEMORY = FOLDER / "training_memory.jsonl"
PRODUCTION = FOLDER / "production.jsonl"
BEFORE = FOLDER / "before_documents.jsonl"  # runs of the version that trained on sentences alone
ENCODERS = FOLDER / "encoders.jsonl"
QUICKSTART = FOLDER / "quickstart.jsonl"
KEYS = ("dataset", "encoder", "system", "learn_rate", "seed", "steps", "recipe")

_writing = Lock()


def run_key(record: Dict[str, Any]) -> tuple:
    return tuple(record.get(key) for key in KEYS)


def read_lines(path: Path) -> List[Dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines() if line]


def load(path: Path) -> Dict[tuple, Dict[str, Any]]:
    """Finished runs by what identifies them; of a run measured again the last counts."""
    return {run_key(record): record for record in read_lines(path)}


def quality(record: Dict[str, Any]) -> float:
    """What learning rates are chosen by: F of the relations where a system finds them, or of the
    spans."""
    return record.get("relations", record)["f"]


def append(path: Path, record: Dict[str, Any]) -> None:
    with _writing:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf8") as file:
            file.write(json.dumps(record) + "\n")


def commit() -> str:
    """The commit that was measured, marked where the tree has changes. Measurements that were appended to
    their files are none."""
    try:
        name = git("describe", "--always", "--abbrev=10")
        changes = git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":!*.jsonl")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}-dirty" if changes else name


def git(*options: str) -> str:
    command = ["git", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, check=True)
    return done.stdout.strip()


def machine() -> Dict[str, Any]:
    packages = {name: version(name) for name in ("spacy", "thinc", "torch", "numpy")}
    return {"machine": f"{os.cpu_count()} cores, {platform.machine()}", "versions": packages}
