"""Several pipelines measured in turn, so that what else the machine does meets all of them alike."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Sequence

import numpy

from ..errors import Errors, UserError

QUANTILES = (50, 95, 99)
Measured = Dict[str, Any]


def measure(
    pipelines: Sequence[str], texts: List[str], *, rounds: int, threads: int = 0
) -> List[Measured]:
    """What each pipeline takes for the texts; `rounds` of them after one that warms up.

    threads: Of torch; 0 leaves them as they are.
    """
    with TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        workers = [
            stack.enter_context(PipelineProcess(pipeline, file, threads)) for pipeline in pipelines
        ]
        for worker in workers:
            worker.run()  # warms up
        results: List[List[Measured]] = [[] for _ in workers]
        for _ in range(rounds):
            for worker, runs in zip(workers, results):
                runs.append(worker.run())
        return [
            summary(name, worker.start, runs)
            for name, worker, runs in zip(pipelines, workers, results, strict=True)
        ]


class PipelineProcess:
    """The process of a pipeline, which ends with the context."""

    def __init__(self, pipeline: str, texts: Path, threads: int):
        command = [sys.executable, "-m", "spacy_spanner.timing.worker", pipeline]
        self.pipeline = pipeline
        self.process = subprocess.Popen(
            [*command, str(texts), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> PipelineProcess:
        self.start = self._answer()
        return self

    def __exit__(self, *error: Any) -> None:
        self.process.kill()
        self.process.communicate()

    def run(self) -> Measured:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Measured:
        """The next line of JSON; components may print lines of their own."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        _, errors = self.process.communicate()
        reason = (errors.strip().splitlines() or ["it ended without a message"])[-1]
        raise UserError(Errors.S210.format(path=self.pipeline, reason=reason))


def summary(name: str, start: Measured, results: List[Measured]) -> Measured:
    """The figures of a pipeline, medians over the rounds.

    >>> rounds = [{"words": 10, "components": {"a": 2.0}, "latency": [0.5], "memory": 1.0}]
    >>> start = {"products": "numpy", "seconds": {"import": 1.0, "load": 0.5, "first": 0.5}}
    >>> summary("p", start, rounds)["words_per_second"]
    5.0
    """
    words = results[0]["words"]
    latency = [seconds for result in results for seconds in result["latency"]]
    parts = {
        part: median(result["components"][part] for result in results)
        for part in results[0]["components"]
    }
    total = median(sum(result["components"].values()) for result in results)
    return {
        "pipeline": name,
        "products": start["products"],
        "words": words,
        "words_per_second": words / total,
        "latency_ms": {
            f"p{share}": 1000 * float(numpy.percentile(latency, share)) for share in QUANTILES
        },
        "memory_mb": max(result["memory"] for result in results),
        "start_seconds": {**start["seconds"], "all": sum(start["seconds"].values())},
        "components": {
            part: {"share": seconds / total, "words_per_second": words / max(seconds, 1e-9)}
            for part, seconds in parts.items()
        },
    }


def benchmark_page(measured: List[Measured], *, note: str) -> str:
    """A self-contained page of the figures."""
    from ..analysis.pages import environment

    template = environment().get_template("benchmark.html")
    return template.render(title="Speed of pipelines", note=note, pipelines=measured)
