"""`python -m benchmarks.scaling MODEL INPUT`: annotation by one process, several, and Ray actors.

Speeds are taken between the first and the last shard that was written, so that starting processes and
loading the pipeline, which a long run does once, stay out; they are shown apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List

import typer


def measure(args: List[str], output: Path, *, shard_size: int, workers: int) -> Dict[str, float]:
    """Run the command; gives seconds before the first shard, and documents a second after it."""
    command = [sys.executable, "-m", "spacy", "spanner", "annotate", *args, "-o", str(output)]
    begin = time.time()
    subprocess.run([*command, "--shard-size", str(shard_size)], check=True, capture_output=True)
    times = sorted(path.stat().st_mtime for path in output.glob("part-*"))
    # The first shard of every worker is written while others still start.
    shards = len(times) - workers
    per_shard = (times[-1] - times[workers - 1]) / shards
    return {"start": times[0] - begin, "per_shard": per_shard, "speed": shard_size / per_shard}


def main(
    model: str = typer.Argument(..., help="A trained pipeline"),
    path: Path = typer.Argument(..., help="What to annotate", exists=True),
    workers: int = typer.Option(2, help="Processes, and Ray actors"),
    shard_size: int = typer.Option(100, help="Records in a shard"),
) -> None:
    """Print one JSON line for each way to run."""
    ways = {
        "one process": (1, ["--threads", "1"]),
        f"{workers} processes": (workers, ["-n", str(workers)]),
        "1 actor": (1, ["-e", "ray", "--actors", "1"]),
        f"{workers} actors": (workers, ["-e", "ray", "--actors", str(workers)]),
    }
    found: Dict[str, Dict[str, float]] = {}
    for name, (count, args) in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            options = [str(path), "-m", model, *args]
            result = measure(options, Path(folder), shard_size=shard_size, workers=count)
        found[name] = result
        one = found["one process"]
        result["ratio"] = result["speed"] / one["speed"]
        # What a shard costs beside the work on it, for each worker.
        result["overhead"] = result["per_shard"] * count - one["per_shard"]
        rounded = {key: round(value, 4) for key, value in result.items()}
        print(json.dumps({"way": name, **rounded}), flush=True)


if __name__ == "__main__":
    typer.run(main)
