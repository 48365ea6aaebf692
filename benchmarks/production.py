"""`annotate` beside spaCy's plain `nlp.pipe`, in one process, on one thread, both in turn.

Processor time of the whole process counts: reading, tokenization, the model, writing. The pipelines
are trained first, shortly, where they are not there yet.
"""

from __future__ import annotations

import json
import resource
import shutil
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
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str

from spacy_spanner.acceleration import remember_codecs, use_fastest_ops
from spacy_spanner.distributed.inputs import InputFile
from spacy_spanner.distributed.records import cut_files
from spacy_spanner.distributed.worker import Worker, WorkerSettings, entity_rows, ents_keys

from .accuracy import Run, training_config
from .data import DATASETS, corpus, read_docs, stats_of
from .documents import to_predict
from .scoring import score_pairs
from .systems import LEARN_RATES, make_config

FOLDER = Path("training") / "production"
# What is measured: the corpus that trains it, the encoder, and what `annotate` has to reach.
ROWS = {
    "hash": ("genia", "hash", 1.9),
    "transformer": ("conll04", "transformer", 1.7),
    "huggingface": ("conll04", "huggingface", 1.7),
    "int8": ("conll04", "huggingface", 2.6),
}


def measure_rows(
    rows: List[str], *, rounds: int, texts: int, data: Path, transformer: Optional[str], other: Path
) -> Dict[str, Any]:
    """Ratios of these rows, F of the int8 pipeline.

    other: Python of the environment with spacy-transformers, in which its row is measured."""
    record: Dict[str, Any] = {}
    for row in rows:
        encoder = ROWS[row][1]
        if encoder != "hash" and transformer is None:
            continue
        if encoder != "transformer":
            found = measure_row(row, rounds=rounds, texts=texts, data=data, transformer=transformer)
        elif other.exists():
            command = [str(other), "-m", "benchmarks", "production-row", row]
            command += [f"--rounds={rounds}", f"--texts={texts}", f"--data={data}"]
            command += [f"--transformer={transformer}"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
        else:
            continue
        record[row] = found
    return record


def measure_row(
    row: str, *, rounds: int, texts: int, data: Path, transformer: Optional[str]
) -> Dict[str, Any]:
    """Ratios and words per second of one pipeline, and how many of its texts differ."""
    torch.set_num_threads(1)
    dataset, encoder, _ = ROWS[row]
    lines = [doc.text for doc in read_docs(corpus("genia", "dev", data), "en") if len(doc)]
    plain = trained(dataset, encoder, data, transformer)
    fast = quantized(plain) if row == "int8" else plain
    found = compare(plain, fast, lines if encoder == "hash" else lines[:texts], rounds)
    if row == "int8":
        found["f"] = [f_of(path, dataset, data) for path in (plain, fast)]
        del found["different"]  # other weights, other results
    return found


def trained(dataset: str, encoder: str, data: Path, transformer: Optional[str]) -> Path:
    """The folder of a Global Pointer pipeline after a short training."""
    folder = FOLDER / f"{dataset}-{encoder}"
    if (folder / "model-best").exists():
        return folder / "model-best"
    use_fastest_ops()
    remember_codecs()
    paths = {part: corpus(dataset, part, data) for part in ("train", "dev")}
    train_docs = read_docs(paths["train"], "en")
    stats = stats_of(train_docs)
    steps = DATASETS[dataset].budgets[encoder].steps
    run = Run(dataset, encoder, "global_pointer", LEARN_RATES[encoder][0], 0, steps)
    config = training_config(run, paths, stats, stats.tokens, transformer=transformer)
    folder.mkdir(parents=True, exist_ok=True)
    train(init_nlp(load_config_from_str(config.to_str())), folder)
    return folder / "model-best"


def quantized(path: Path) -> Path:
    from spacy_spanner.quantization.pipeline import quantize

    target = path.parent / "int8"
    if not target.exists():
        quantize(spacy.load(path)).to_disk(target)
    return target


def plain_pipeline(path: Path) -> Language:
    """As spaCy runs it by default: thinc's own products."""
    from thinc.api import require_cpu

    require_cpu()
    return spacy.load(path)


def compare(plain: Path, fast: Path, texts: List[str], rounds: int) -> Dict[str, Any]:
    """Processor seconds of `nlp.pipe` over those of `annotate`, in both orders each round."""
    nlp = plain_pipeline(plain)
    words = sum(len(nlp.make_doc(text)) for text in texts)
    with TemporaryDirectory() as folder:
        source, output = Path(folder) / "texts.jsonl", Path(folder) / "out"
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        settings = WorkerSettings(str(fast), str(output), "jsonl", "text", (), False, 4000)
        worker = Worker(settings)
        shards = cut_files([InputFile("texts", str(source), "jsonl")], 1000)

        def annotate() -> float:
            shutil.rmtree(output, ignore_errors=True)
            before = time.process_time()
            for _ in worker.run(shards):
                pass
            return time.process_time() - before

        def pipe() -> float:
            before = time.process_time()
            for _ in nlp.pipe(texts):
                pass
            return time.process_time() - before

        annotate()  # both warm up
        pipe()
        times = [(pipe(), annotate(), annotate(), pipe()) for _ in range(rounds)]
        parts = sorted(output.glob("part-*"))
        rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    keys = ents_keys(nlp)
    expected = [entity_rows(doc, ents_keys=keys) for doc in nlp.pipe(texts)]
    different = sum(row["entities"] != own for row, own in zip(rows, expected, strict=True))
    return {
        "texts": len(texts),
        "ratios": [round((a + d) / (b + c), 3) for a, b, c, d in times],
        "words_per_second": [
            round(words / median((a + d) / 2 for a, _, _, d in times)),
            round(words / median((b + c) / 2 for _, b, c, _ in times)),
        ],
        "different": different,
    }


def f_of(path: Path, dataset: str, data: Path) -> float:
    nlp = spacy.load(path)
    docs = read_docs(corpus(dataset, "dev", data), "en")
    return score_pairs(docs, list(nlp.pipe(to_predict(docs, nlp.vocab, marked=False))))["f"]


START = """
import sys, time
import spacy
before = time.process_time()
nlp = spacy.load(sys.argv[1])
nlp("The IL-2 gene is expressed in T cells.")
print(time.process_time() - before)
"""


def start_up(data: Path, *, rounds: int = 5) -> Dict[str, float]:
    """Processor seconds of `spacy.load` and a first document, each in a process of its own."""
    from .speed import prepared

    docs = [doc for doc in read_docs(corpus("genia", "dev", data), "en") if len(doc)][:32]
    seconds: Dict[str, List[float]] = {}
    with TemporaryDirectory() as folder:
        for name in ("ner", "global_pointer"):
            config = make_config(name, "hash", lang="en", nested=True, max_width=8)
            prepared(config, docs, 0.001)[0].to_disk(Path(folder) / name)
            seconds[name] = []
        for _ in range(rounds):
            for name, own in seconds.items():
                command = [sys.executable, "-c", START, str(Path(folder) / name)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                own.append(float(done.stdout.split()[-1]))
    return {name: round(median(own), 3) for name, own in seconds.items()}


def memory(path: Path, *, way: str, docs: int, data: Path) -> Dict[str, float]:
    """MB of this process after a tenth of the documents and after all of them.

    way: "pipe" or "annotate"."""
    torch.set_num_threads(1)
    texts = [doc.text[:60] for doc in read_docs(corpus("genia", "dev", data), "en") if len(doc)]
    stream = (texts[i % len(texts)] for i in range(docs))
    marks: Dict[str, float] = {}
    if way == "pipe":
        use_fastest_ops()
        for number, _ in enumerate(spacy.load(path).pipe(stream, batch_size=128), start=1):
            if number in (docs // 10, docs):
                marks[str(number)] = round(resident_mb(), 1)
        return marks
    with TemporaryDirectory() as folder:
        source = Path(folder) / "texts.jsonl"
        with source.open("w") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in stream)
        settings = WorkerSettings(str(path), f"{folder}/out", "jsonl", "text", (), False, 4000)
        shards = cut_files([InputFile("texts", str(source), "jsonl")], docs // 100)
        for number, _ in enumerate(Worker(settings).run(shards), start=1):
            if number in (10, 100):
                marks[str(number * docs // 100)] = round(resident_mb(), 1)
    return marks


def resident_mb() -> float:
    """Linux only: `resource` knows nothing but the peak."""
    status = Path("/proc/self/statm").read_text().split()
    return int(status[1]) * resource.getpagesize() / 2**20
