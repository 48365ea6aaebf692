"""A small pipeline and small inputs for the tests of this folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

from ..systems import TEXTS, make_examples, make_nlp, train

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
COMMAND = [sys.executable, "-m", "spacy", "spanner"]


def save_pipeline(folder: Path) -> Path:
    """A pipeline that knows the training sentences by heart."""
    nlp = make_nlp("global_pointer", output="both")
    train(nlp, make_examples(nlp), steps=30)
    nlp.to_disk(folder)
    return folder


def write_jsonl(path: Path, count: int) -> Path:
    rows = [{"text": f"{TEXTS[i % 4]} Again {i}.", "id": i} for i in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    return path


def contents(folder: Path) -> dict:
    """All results of a run: names and bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("part-*"))
    }


def left_over(folder: Path) -> list:
    return [path for path in folder.rglob(".*") if path.is_file()]


def start(*args, **options) -> subprocess.Popen:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
    return subprocess.Popen([*map(str, args)], env=ENVIRONMENT, **options)


def descendants(pid):
    """Process ids below a process, with their command lines."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                commands[int(entry.name)] = (entry / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(status[1])
    found, level = [], {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found += level
    return {child: commands[child] for child in found}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
