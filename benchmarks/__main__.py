"""Commands that train systems and write the report."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import List, Optional

import typer
from tqdm import tqdm

from .accuracy import Run, execute, plan
from .app import DATA, MINUTES, ONE_THREAD, TRANSFORMER, VECTORS, app
from .results import (
    PAPER_RUNS,
    QUICKSTART,
    RESULTS,
    append,
    commit,
    load,
    machine,
    quality,
    read_lines,
    run_key,
)
from .speed_commands import speed
from .systems import names


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
    rates: Optional[str] = typer.Option(
        None, help="Learning rates, by commas [those of the encoder]"
    ),
    again: bool = typer.Option(False, "--again", help="Measure also what is in the results file"),
    workers: int = typer.Option(2, help="Trainings at a time, one thread each"),
    data: Path = DATA,
    vectors: Optional[Path] = VECTORS,
    transformer: Optional[str] = TRANSFORMER,
    minutes: float = MINUTES,
    brief: Optional[bool] = typer.Option(
        None,
        "--brief/--full",
        help="All runs without or with analysis, running text and documents whose sentences are not "
        "marked  [with them for the first seed alone]",
    ),
    results: Path = typer.Option(RESULTS, help="File that every finished run is appended to"),
) -> None:
    """Train every system on every corpus; what is in the results file already is not done again."""
    given = {"data": data, "vectors": vectors, "transformer": transformer}
    options = [f"--{k}={v}" for k, v in given.items() if v] + [f"--minutes={minutes}"]
    first, others = (
        [*options, "--brief"] if is_brief else options
        for is_brief in ((False, True) if brief is None else (brief, brief))
    )
    all_seeds = [int(seed) for seed in seeds.split(",")]
    chosen_rates = [float(rate) for rate in rates.split(",")] if rates else None
    grid = plan(
        datasets.split(","), names(systems.split(",")), encoder, all_seeds, steps, chosen_rates
    )
    n_runs = sum(len(runs) + len(all_seeds) - 1 for runs in grid)
    with tqdm(total=n_runs, unit="run") as bar, ThreadPoolExecutor(workers) as pool:

        def all_seeds_of(runs: List[Run]) -> None:
            best = max(
                (measured(run, results, first, bar, again=again) for run in runs), key=quality
            )
            for seed in all_seeds[1:]:
                chosen = replace(runs[0], learn_rate=best["learn_rate"], seed=seed)
                measured(chosen, results, others, bar, again=again)

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
        for line in process.stdout.splitlines():
            if line.startswith("{"):
                append(results, json.loads(line))
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
    brief: bool = typer.Option(
        False, "--brief", help="Without analysis, running text and documents that are not marked"
    ),
) -> None:
    """A single run, given as JSON; prints its record, and those of other readings of its weights."""
    chosen = Run(**json.loads(run))
    given = {"data": data, "vectors": vectors, "transformer": transformer}
    for record in execute(chosen, **given, minutes=minutes, brief=brief):
        print(json.dumps({**record, "commit": commit(), **machine()}))


@app.command()
def quickstart(
    datasets: str = typer.Option(
        "demo,conll04,wnut17,genia,germeval2014", help="Corpora, by commas"
    ),
    sides: str = typer.Option("spacy,ours", help="Whose commands write the config, by commas"),
    seeds: str = typer.Option("0", help="Seeds, by commas"),
    optimize: str = typer.Option(
        "efficiency", help="efficiency or accuracy; of `config auto` alone"
    ),
    data: Path = DATA,
    vectors: Optional[Path] = VECTORS,
    results: Path = typer.Option(QUICKSTART, help="File that every finished run is appended to"),
) -> None:
    """What a user gets from spaCy's quickstart and from `config auto`, no setting touched."""
    from .quickstart import measure

    runs = [
        (dataset, int(seed), side)
        for dataset in datasets.split(",")
        for seed in seeds.split(",")
        for side in sides.split(",")
    ]
    for dataset, seed, side in tqdm(runs, unit="run"):
        record = measure(side, dataset, seed=seed, data=data, vectors=vectors, optimize=optimize)
        append(results, {**record, "commit": commit(), **machine()})


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
        rates=None,
        again=False,
        workers=2,
        data=Path("assets"),
        vectors=None,
        transformer=None,
        minutes=3.0,
        brief=None,
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
