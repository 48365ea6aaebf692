"""`python -m benchmarks.peak PIPELINE WORDS`: peak memory of one document, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Dict

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from tqdm import tqdm

from spacy_spanner.timing.worker import peak_mb

from .timed import ALONE


def peak_memory(pipelines: Dict[str, Language], doc: Doc, folder: str) -> Dict[str, float]:
    """MB at most while the document is annotated; for systems, those beyond the encoder alone."""
    words = Path(folder) / "words.json"
    words.write_text(json.dumps([token.text for token in doc]), encoding="utf8")
    peaks = {}
    for name, nlp in tqdm(pipelines.items(), "memory"):
        path = Path(folder) / "pipeline"
        nlp.to_disk(path)
        command = [sys.executable, "-m", "benchmarks.peak", str(path), str(words)]
        threads = [str(torch.get_num_threads())]
        done = subprocess.run([*command, *threads], check=True, capture_output=True, text=True)
        peaks[name] = float(done.stdout.splitlines()[-1])
    return {n: mb if n == ALONE else round(mb - peaks[ALONE], 1) for n, mb in peaks.items()}


def main(path: str, words: str, threads: str) -> None:
    from spacy_spanner import use_fastest_ops

    from . import listener  # noqa: F401  (registers the factory)

    torch.set_num_threads(int(threads))
    use_fastest_ops()
    nlp = spacy.load(path)
    doc = Doc(nlp.vocab, words=json.loads(Path(words).read_text(encoding="utf8")))
    for _ in nlp.pipe([doc]):
        pass
    print(round(peak_mb(), 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
