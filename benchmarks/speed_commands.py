"""Commands that measure time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional

import typer

from .app import DATA, ONE_THREAD, TRANSFORMER, app
from .results import (
    ENCODERS,
    MEMORY,
    PRODUCTION,
    SPEED,
    TRAINING_MEMORY,
    append,
    commit,
    machine,
)


@app.command()
def speed(
    encoder: str = typer.Option("hash", help="hash, transformer or huggingface"),
    dataset: str = typer.Option("genia", help="Corpus whose dev sentences are timed"),
    systems: str = typer.Option("all", help="Rows of `benchmarks/timed.py`, by commas"),
    rounds: int = typer.Option(0, help="Rounds, of which ratios are medians [the encoder's own]"),
    sentences: int = typer.Option(0, help="Sentences in each round [the encoder's own]"),
    threads: int = typer.Option(2, help="Threads of torch"),
    data: Path = DATA,
    transformer: Optional[str] = TRANSFORMER,
    results: Path = typer.Option(SPEED, help="File that the measurement is appended to"),
) -> None:
    """Words per second of every system over the encoder alone, round by round in one process, and
    what one long document needs in memory, each system in a process of its own."""
    from .speed import measure
    from .timed import ROUNDS, SENTENCES, TIMED

    record = measure(
        list(TIMED) if systems == "all" else systems.split(","),
        encoder=encoder,
        dataset=dataset,
        rounds=rounds or ROUNDS[encoder],
        sentences=sentences or SENTENCES[encoder],
        threads=threads,
        data=data,
        transformer=transformer,
    )
    append(results, {**record, "commit": commit(), **machine()})


@app.command()
def memory(
    slots: int = typer.Option(400_000, help="Slots of the memory"),
    words: int = typer.Option(30_000, help="Distinct words of the training data"),
    rounds: int = typer.Option(20, help="Rounds; the ratio is their median"),
    sentences: int = typer.Option(100, help="Sentences of 25 tokens in each round"),
    results: Path = typer.Option(MEMORY, help="File that the measurement is appended to"),
) -> None:
    """Prediction time of Hire-NER with a full memory over that without one."""
    from .memory import measure

    record = measure(slots=slots, words=words, rounds=rounds, sentences=sentences)
    append(results, {**record, "commit": commit(), **machine()})


@app.command()
def training_memory(
    systems: str = typer.Option("min,hire,global_pointer", help="Systems, by commas"),
    dataset: str = typer.Option("conll04", help="Corpus to train on"),
    encoder: str = typer.Option("hash", help="Encoder"),
    epochs: int = typer.Option(4, help="Epochs, with sentences alone and joined"),
    data: Path = DATA,
    results: Path = typer.Option(TRAINING_MEMORY, help="File that measurements are appended to"),
) -> None:
    """Resident memory of trainings, epoch by epoch, each in a process of its own."""
    for system in systems.split(","):
        command = [sys.executable, "-m", "benchmarks", "training-memory-of"]
        command += [system, dataset, encoder, str(epochs), f"--data={data}"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        record = json.loads(done.stdout.splitlines()[-1])
        append(results, {**record, "commit": commit(), **machine()})


@app.command(hidden=True)
def training_memory_of(
    system: str, dataset: str, encoder: str, epochs: int, data: Path = DATA
) -> None:
    """One row of `training-memory`, printed as JSON."""
    from .training_memory import measure

    found = measure(system, dataset=dataset, encoder=encoder, epochs=epochs, data=data)
    print(json.dumps(found))


OTHER = typer.Option(
    Path(".venv-transformers/bin/python"), help="Python of the environment with spacy-transformers"
)


@app.command()
def production(
    rounds: int = typer.Option(5, help="Rounds, of which ratios are medians"),
    texts: int = typer.Option(400, help="Texts that pipelines with a transformer annotate"),
    docs: int = typer.Option(100_000, help="Documents over which memory must stay the same"),
    rows: str = typer.Option(
        "",
        help="Only these rows, by commas, and nothing else: processor time, on a busy machine too",
    ),
    data: Path = DATA,
    transformer: Optional[str] = TRANSFORMER,
    other: Path = OTHER,
    results: Path = typer.Option(PRODUCTION, help="File that the measurement is appended to"),
) -> None:
    """`annotate` over spaCy's plain `nlp.pipe`, start-up, and memory over many documents."""
    from .production import ROWS, measure_rows, start_up, trained
    from .service import measure_service

    chosen = rows.split(",") if rows else list(ROWS)
    options = {"rounds": rounds, "texts": texts, "data": data, "transformer": transformer}
    record: Dict[str, Any] = {
        "rounds": rounds,
        "rows": measure_rows(chosen, other=other, **options),
    }
    if rows:
        append(results, {**record, "commit": commit(), **machine()})
        return
    record["start"] = start_up(data)
    path = trained(*ROWS["hash"][:2], data, None)
    record["service"] = measure_service(path, rate=200, seconds=60)
    record["memory"] = {}
    for way in ("pipe", "annotate"):
        command = [sys.executable, "-m", "benchmarks", "resident", way, str(docs), f"--data={data}"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=ONE_THREAD)
        record["memory"][way] = json.loads(done.stdout.splitlines()[-1])
    append(results, {**record, "commit": commit(), **machine()})


@app.command(hidden=True)
def production_row(
    row: str,
    rounds: int = 5,
    texts: int = 400,
    data: Path = DATA,
    transformer: Optional[str] = TRANSFORMER,
) -> None:
    """One row of `production`, printed as JSON."""
    from .production import measure_row

    options = {"rounds": rounds, "texts": texts, "data": data, "transformer": transformer}
    print(json.dumps(measure_row(row, **options)))


@app.command(hidden=True)
def resident(way: str, docs: int, data: Path = DATA) -> None:
    """Memory of many documents, in a process of its own."""
    from .production import ROWS, memory, trained

    dataset, encoder, _ = ROWS["hash"]
    print(json.dumps(memory(trained(dataset, encoder, data, None), way=way, docs=docs, data=data)))


@app.command()
def encoders(
    dataset: str = typer.Option("genia", help="Corpus whose dev sentences are timed"),
    sentences: int = typer.Option(256, help="Sentences of a round"),
    rounds: int = typer.Option(3, help="Rounds of prediction; one of the others"),
    steps: int = typer.Option(50, help="Updates of a round of training"),
    other: Path = OTHER,
    data: Path = DATA,
    transformer: str = typer.Option(..., help="Folder of the transformer"),
    results: Path = typer.Option(ENCODERS, help="File that the measurement is appended to"),
) -> None:
    """Our encoder over current transformers beside spacy-transformers: token vectors, processor time
    on one thread, and peak memory under the same head."""
    from .encoders import measure

    record = measure(
        other=str(other.absolute()),
        transformer=transformer,
        data=data,
        dataset=dataset,
        sentences=sentences,
        rounds=rounds,
        steps=steps,
    )
    append(results, {"kind": "speed", **record, "commit": commit()})


@app.command()
def heads_of_spacy(
    dataset: str = typer.Option("conll04", help="Corpus"),
    steps: int = typer.Option(200, help="Updates"),
    seeds: str = typer.Option("0,1,2", help="Seeds, by commas"),
    other: Path = OTHER,
    data: Path = DATA,
    transformer: str = typer.Option(..., help="Folder of the transformer"),
    results: Path = typer.Option(ENCODERS, help="File that the measurement is appended to"),
) -> None:
    """spaCy's own ner and tagger over our encoder and over spacy-transformers."""
    from .encoders import heads_of_spacy as measure_heads

    record = measure_heads(
        other=str(other.absolute()),
        transformer=transformer,
        data=data,
        dataset=dataset,
        steps=steps,
        seeds=[int(seed) for seed in seeds.split(",")],
    )
    append(results, {"kind": "heads", **record, "commit": commit()})
