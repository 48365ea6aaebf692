"""`python -m benchmarks`: accuracy, speed and the report; see `make bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import List, Optional

import typer
from tqdm import tqdm

from .accuracy import Run, execute, plan
from .results import (
    ENCODERS,
    MEMORY,
    PAPER_RUNS,
    PRODUCTION,
    RESULTS,
    SPEED,
    append,
    commit,
    load,
    machine,
    quality,
    read_lines,
    run_key,
)
from .systems import names

ONE_THREAD = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Tensors of ever other sizes otherwise leave gaps that glibc does not give back: gigabytes.
    "MALLOC_MMAP_THRESHOLD_": "1048576",
}

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None)

DATA = typer.Option(
    Path("assets"), "--data", help="Folder of corpora: NAME/train.jsonl, NAME/dev.jsonl"
)
VECTORS = typer.Option(None, "--vectors", help="Pipeline with vectors, from `spacy init vectors`")
TRANSFORMER = typer.Option(None, "--transformer", help="Name or folder of the transformer")
MINUTES = typer.Option(15.0, "--minutes", help="Most minutes of one training")


@app.command()
def accuracy(
    datasets: str = typer.Option("conll04,wnut17,genia,germeval2014", help="Corpora, by commas"),
    systems: str = typer.Option("all", help="Systems, by commas"),
    encoder: Optional[str] = typer.Option(
        None, help="hash, vectors, transformer or huggingface [the corpus' own]"
    ),
    seeds: str = typer.Option(
        "0,1,2", help="Seeds, by commas; the first one chooses the learning rate"
    ),
    steps: int = typer.Option(0, help="Training steps [the corpus' own]"),
    workers: int = typer.Option(2, help="Trainings at a time, one thread each"),
    data: Path = DATA,
    vectors: Optional[Path] = VECTORS,
    transformer: Optional[str] = TRANSFORMER,
    minutes: float = MINUTES,
    results: Path = typer.Option(RESULTS, help="File that every finished run is appended to"),
) -> None:
    """Train every system on every corpus; what is in the results file already is not done again."""
    given = {"data": data, "vectors": vectors, "transformer": transformer}
    options = [f"--{k}={v}" for k, v in given.items() if v] + [f"--minutes={minutes}"]
    all_seeds = [int(seed) for seed in seeds.split(",")]
    grid = plan(datasets.split(","), names(systems.split(",")), encoder, all_seeds, steps)
    n_runs = sum(len(runs) + len(all_seeds) - 1 for runs in grid)
    with tqdm(total=n_runs, unit="run") as bar, ThreadPoolExecutor(workers) as pool:

        def all_seeds_of(runs: List[Run]) -> None:
            best = max((measured(run, results, options, bar) for run in runs), key=quality)
            for seed in all_seeds[1:]:
                chosen = replace(runs[0], learn_rate=best["learn_rate"], seed=seed)
                measured(chosen, results, options, bar)

        list(pool.map(all_seeds_of, grid))


def measured(
    run: Run, results: Path, options: List[str], bar: tqdm, *, again: bool = False
) -> dict:
    """The record of a run, from the file of results or else measured in a process of its own.

    again: Measure it also where it is in the file."""
    if again or run_key(asdict(run)) not in load(results):
        command = [sys.executable, "-m", "benchmarks", "one", json.dumps(asdict(run))]
        process = subprocess.run(
            [*command, *options], capture_output=True, text=True, env=ONE_THREAD
        )
        if process.returncode:
            bar.write(f"failed: {run}\n{process.stderr[-2000:]}")
            bar.update()
            return {**asdict(run), "f": -1.0}
        append(results, json.loads(process.stdout.splitlines()[-1]))
    record = load(results)[run_key(asdict(run))]
    bar.write(f"{run.dataset} {run.system} lr {run.learn_rate} seed {run.seed}: F {record['f']}")
    bar.update()
    return record


@app.command()
def paper(
    tables: List[str] = typer.Argument(..., help="Tables, such as bundling-table-3; or all"),
    corpora: Optional[str] = typer.Option(None, help="Corpora, by commas [those of the table]"),
    seeds: str = typer.Option("0,1", help="Seeds, by commas"),
    steps: int = typer.Option(0, help="Training steps [the corpus' own]"),
    learn_rate: float = typer.Option(0.002, help="Learning rate of all rows"),
    again: bool = typer.Option(False, "--again", help="Measure all rows anew, with this version"),
    data: Path = DATA,
    minutes: float = MINUTES,
    results: Path = typer.Option(PAPER_RUNS, help="File that every finished run is appended to"),
    target: Path = typer.Option(Path("docs/papers.md"), help="The page to write"),
) -> None:
    """Run tables of the papers, and write the page of them; runs that have what a table measures are
    not done again."""
    from .paper_measures import is_measured
    from .papers import PAPERS, runs_of
    from .papers_page import write_page

    chosen = list(PAPERS) if tables == ["all"] else tables
    for name in chosen:
        if name not in PAPERS:
            raise typer.BadParameter(f"There is no table {name}. Choose: {', '.join(PAPERS)}.")
    where = corpora.split(",") if corpora else []
    numbers = [int(seed) for seed in seeds.split(",")]
    known = {**load(RESULTS), **load(results)}
    runs = dict.fromkeys(
        run
        for own in (PAPERS[name] for name in chosen)
        for run in runs_of(own, where, numbers, steps, learn_rate)
        if again or not is_measured(own.measures, known.get(run_key(asdict(run))), own.lengths)
    )
    with tqdm(total=len(runs), unit="run") as bar:
        for run in runs:
            options = [f"--data={data}", f"--minutes={minutes}"]
            measured(run, results, options, bar, again=True)
    write_page([*read_lines(RESULTS), *read_lines(results)], target)


@app.command(hidden=True)
def one(
    run: str,
    data: Path = DATA,
    vectors: Optional[Path] = VECTORS,
    transformer: Optional[str] = TRANSFORMER,
    minutes: float = MINUTES,
) -> None:
    """A single run, given as JSON; prints its record."""
    record = execute(
        Run(**json.loads(run)), data=data, vectors=vectors, transformer=transformer, minutes=minutes
    )
    print(json.dumps({**record, "commit": commit(), **machine()}))


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


OTHER = typer.Option(
    Path(".venv-transformers/bin/python"), help="Python of the environment with spacy-transformers"
)


@app.command()
def production(
    rounds: int = typer.Option(5, help="Rounds, of which ratios are medians"),
    texts: int = typer.Option(400, help="Texts that pipelines with a transformer annotate"),
    docs: int = typer.Option(100_000, help="Documents over which memory must stay the same"),
    data: Path = DATA,
    transformer: Optional[str] = TRANSFORMER,
    other: Path = OTHER,
    results: Path = typer.Option(PRODUCTION, help="File that the measurement is appended to"),
) -> None:
    """`annotate` over spaCy's plain `nlp.pipe`, start-up, and memory over many documents."""
    from .production import ROWS, measure, trained
    from .service import measure_service

    record = measure(rounds=rounds, texts=texts, data=data, transformer=transformer, other=other)
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


@app.command()
def report(
    target: Path = typer.Option(Path("docs/benchmarks.md"), help="The page to write"),
    readme: Path = typer.Option(Path("README.md"), help="The page whose figures to renew"),
    papers: Path = typer.Option(Path("docs/papers.md"), help="The page of the papers"),
) -> None:
    """Write the page, its plots, the figures of the README and the page of the papers from everything
    measured so far."""
    from .papers_page import write_page
    from .report import write_report

    write_report(target, readme)
    write_page([*read_lines(RESULTS), *read_lines(PAPER_RUNS)], papers)


@app.command()
def quick(folder: Path = typer.Option(Path("corpus/bench-quick"), help="Where results go")) -> None:
    """A small form of everything on the bundled corpus, in minutes; proves that it runs."""
    results = folder / "results.jsonl"
    accuracy(
        datasets="demo",
        systems="spancat,global_pointer",
        encoder=None,
        seeds="0",
        steps=100,
        workers=2,
        data=Path("assets"),
        vectors=None,
        transformer=None,
        minutes=3.0,
        results=results,
    )
    speed(
        encoder="hash",
        dataset="demo",
        systems="spancat_10,global_pointer",
        rounds=2,
        sentences=80,
        threads=1,
        data=Path("assets"),
        transformer=None,
        results=folder / "speed.jsonl",
    )


if __name__ == "__main__":
    app()
