"""What a user gets from spaCy's quickstart beside what a user gets from `config auto`: both by the
commands that a user types, with no setting touched."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from thinc.api import require_cpu

from spacy_spanner.acceleration import remember_codecs, use_fastest_ops

from .app import ONE_THREAD
from .calibration import calibration_scores
from .data import CACHE, DATASETS, corpus, read_docs
from .documents import to_predict
from .scoring import score_pairs

LIMIT = 5000  # training sentences, for both sides
ROUNDS = 5
EFFICIENCY = "efficiency"  # what both sides optimize for where nothing is said


def config_command(
    side: str, dataset: str, train: Path, vectors: Optional[Path], optimize: str = EFFICIENCY
) -> List[str]:
    """The command that writes the config; the file to write is missing. Vectors and `optimize` are for
    our side alone."""
    lang = DATASETS[dataset].lang
    if side == "spacy":
        component = "spancat" if DATASETS[dataset].nested else "ner"
        return ["init", "config", "--lang", lang, "--pipeline", component]
    given = [] if vectors is None else ["--vectors", str(vectors)]
    given += [] if optimize == EFFICIENCY else ["--optimize", optimize]
    return ["spanner", "config", "auto", "--lang", lang, "--corpus", str(train), *given, "-o"]


def training_part(dataset: str, data: Path) -> Path:
    """The training part, of a large corpus its first sentences."""
    whole = corpus(dataset, "train", data)
    docs = read_docs(whole, DATASETS[dataset].lang)
    if len(docs) <= LIMIT:
        return whole
    target = CACHE / dataset / f"train-{LIMIT}.spacy"
    if not target.exists():
        DocBin(docs=docs[:LIMIT], store_user_data=True).to_disk(target)
    return target


def measure(
    side: str,
    dataset: str,
    *,
    seed: int,
    data: Path,
    vectors: Optional[Path],
    optimize: str = EFFICIENCY,
) -> Dict[str, Any]:
    """Train as a user does, then score on the development part."""
    train, dev = training_part(dataset, data), corpus(dataset, "dev", data)
    with TemporaryDirectory() as folder:
        config, output = Path(folder) / "config.cfg", Path(folder) / "training"
        spacy_command([*config_command(side, dataset, train, vectors, optimize), str(config)])
        paths = ["--paths.train", str(train), "--paths.dev", str(dev)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        spacy_command(
            ["train", str(config), "--output", str(output), *paths, "--system.seed", str(seed)]
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = output / "model-best"
        return {
            "side": side,
            "dataset": dataset,
            "seed": seed,
            "vectors": side == "ours" and vectors is not None,
            "optimize": optimize if side == "ours" else EFFICIENCY,
            "train_seconds": round(seconds),
            **score(best, dev, DATASETS[dataset].lang),
        }


def spacy_command(words: List[str]) -> None:
    command = [sys.executable, "-m", "spacy", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=ONE_THREAD)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def score(best: Path, dev: Path, lang: str) -> Dict[str, Any]:
    """P, R and F on all gold spans, the calibration error in points, and words per second."""
    torch.set_num_threads(1)
    remember_codecs()
    docs = read_docs(dev, lang)
    found: Dict[str, Any] = {}
    for name, choose_ops in [("default", require_cpu), ("fastest", use_fastest_ops)]:
        choose_ops()
        nlp = spacy.load(best)
        found[f"words_per_second_{name}"] = words_per_second(nlp, docs)
    predicted = list(nlp.pipe(to_predict(docs, nlp.vocab, marked=False)))
    found.update(score_pairs(docs, predicted), components=nlp.pipe_names)
    found.update(calibration_scores(docs, predicted))
    return found


def words_per_second(nlp: Language, docs: List[Doc]) -> int:
    """Of the processor's time, without tokenization."""
    seconds = []
    for _ in range(ROUNDS):
        texts = to_predict(docs, nlp.vocab, marked=False)
        before = time.process_time()
        for _ in nlp.pipe(texts):
            pass
        seconds.append(time.process_time() - before)
    return round(sum(map(len, docs)) / median(seconds))
