"""The encoder over current transformers beside spacy-transformers: two environments in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, Dict, List

import numpy
from tqdm import tqdm

NAMES = ("huggingface", "transformer")
BATCH = 8  # sentences of an update
LONG_WORDS = 20_000


class Remote:
    """A worker in the environment of `python`."""

    def __init__(self, python: str, encoder: str, *, transformer: str, data: Path):
        settings = {"encoder": encoder, "transformer": transformer, "data": str(data)}
        threads = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")
        self.process = subprocess.Popen(
            [
                *(python, "-W", "ignore", "-m", "benchmarks.encoder_worker"),
                json.dumps({**settings, "batch": BATCH}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )

    def ask(self, task: str, **options: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"task": task, **options}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(
    *,
    other: str,
    transformer: str,
    data: Path,
    dataset: str,
    sentences: int,
    rounds: int,
    steps: int,
) -> Dict[str, Any]:
    """Seconds of processor time of both, and their ratios round by round.

    other: The Python of the environment with spacy-transformers.
    """
    pythons = dict(zip(NAMES, (sys.executable, other), strict=True))

    workers = {n: Remote(p, n, transformer=transformer, data=data) for n, p in pythons.items()}
    sizes = {"dataset": dataset, "sentences": sentences, "long_words": LONG_WORDS}
    facts = {name: worker.ask("start", **sizes) for name, worker in workers.items()}
    record: Dict[str, Any] = {"dataset": dataset, "sentences": sentences, "rounds": rounds}
    record.update(words=facts[NAMES[0]]["words"], batch=BATCH, steps=steps, peak_mb={})
    record["versions"] = {name: fact["versions"] for name, fact in facts.items()}
    record["largest_difference"] = difference(workers)
    for task in ("predict", "predict_long", "train"):  # each needs more memory than the one before
        options = {"steps": steps} if task == "train" else {}
        seconds = in_turn(workers, task, rounds if task == "predict" else 1, options)
        record[task] = {name: round(median(values), 3) for name, values in seconds.items()}
        ratios = [a / b for a, b in zip(*(seconds[name] for name in NAMES), strict=True)]
        record[task]["ratio"] = round(median(ratios), 3)
        record["peak_mb"][task] = {name: round(w.ask("peak"), 1) for name, w in workers.items()}
    for worker in workers.values():
        worker.close()
    return record


def in_turn(
    workers: Dict[str, Remote], task: str, times: int, options: Dict
) -> Dict[str, List[float]]:
    """Of several rounds each in both orders, so that what else the machine does meets both."""
    seconds: Dict[str, List[float]] = {name: [] for name in workers}
    for _ in tqdm(range(times), task):
        order = [*workers, *reversed(workers)] if times > 1 else [*workers]
        taken: Dict[str, List[float]] = {name: [] for name in workers}
        for name in order:
            taken[name].append(workers[name].ask(task, **options))
        for name, values in taken.items():
            seconds[name].append(mean(values))
    return seconds


def difference(workers: Dict[str, Remote]) -> float:
    """The largest difference of any number in any token vector."""
    with TemporaryDirectory() as folder:
        arrays = []
        for name, worker in workers.items():
            path = str(Path(folder) / f"{name}.npy")
            worker.ask("vectors", path=path)
            arrays.append(numpy.load(path))
    return float(abs(arrays[0] - arrays[1]).max())


def heads_of_spacy(
    *, other: str, transformer: str, data: Path, dataset: str, steps: int, seeds: List[int]
) -> Dict[str, Any]:
    """spaCy's own `ner` and `tagger` over both, with the same steps and seeds."""
    record: Dict[str, Any] = {"dataset": dataset, "steps": steps, "seeds": seeds, "batch": BATCH}
    for name, python in zip(NAMES, (sys.executable, other), strict=True):
        worker = Remote(python, name, transformer=transformer, data=data)
        scores = [
            worker.ask("accuracy", dataset=dataset, steps=steps, seed=seed)
            for seed in tqdm(seeds, name)
        ]
        worker.close()
        record[name] = {key: [round(100 * s[key], 2) for s in scores] for key in scores[0]}
    return record
