"""The part of docs/benchmarks.md on our transformer encoder beside spacy-transformers."""

from __future__ import annotations

from statistics import mean
from typing import Dict, List

from .encoders import BATCH, LONG_WORDS, NAMES
from .tables import Record, average, best_runs, by_corpus, spread, table

HEAD = (
    "MiniLM by our encoder (`huggingface`) and by spacy-transformers (`transformer`), each in an "
    "environment of its own, one thread, both in turn. Times are seconds of the processor."
)
TASKS = {
    "predict": "prediction, {sentences} sentences ({words:,} words)",
    "predict_long": f"prediction, one document of {LONG_WORDS:,} words",
    "train": f"training, {{steps}} steps of {BATCH} sentences",
}


def encoder_section(measurements: List[Record]) -> str:
    """The last measurement of speed and of spaCy's heads, and all runs over both."""
    newest = {record["kind"]: record for record in measurements}
    lines = ["## Our transformer encoder beside spacy-transformers", "", HEAD, ""]
    if "speed" in newest:
        lines += [*speed_lines(newest["speed"]), ""]
    if "heads" in newest:
        lines += [*head_lines(newest["heads"]), ""]
    runs = [record for record in measurements if record["kind"] == "run"]
    return "\n".join([*lines, *run_lines(runs)])


def speed_lines(record: Record) -> List[str]:
    rows = []
    for task, title in TASKS.items():
        seconds, peak = record[task], record["peak_mb"][task]
        cells = [f"{seconds[name]:.1f}" for name in NAMES] + [f"{seconds['ratio']:.2f}"]
        cells += [f"{peak[name]:,.0f}" for name in NAMES]
        rows.append([title.format(**record), *cells])
    names = [f"`{name}`" for name in NAMES]
    long, short = (record[task][NAMES[0]] for task in ("predict_long", "predict"))
    speed = (LONG_WORDS / long) / (record["words"] / short)
    return [
        *table(["", *names, "ratio", *(f"{name}, peak MB so far" for name in names)], rows),
        "",
        f"The largest difference of any number in a token vector of the sentences is "
        f"{record['largest_difference']:.0e}. Words of the long document are read at {speed:.2f} of the "
        f"speed of those of sentences by `huggingface`: its windows share some words. Commit "
        f"{record['commit']}.",
    ]


def head_lines(record: Record) -> List[str]:
    """Scores of spaCy's own components."""
    rows = []
    for score in record[NAMES[0]]:
        values = [record[name][score] for name in NAMES]
        rows.append(
            [f"`{score}`", *map(spread, values), f"{mean(values[0]) - mean(values[1]):+.1f}"]
        )
    return [
        f"spaCy's own `ner`, and a `tagger` that learns the same entities as tags, on {record['dataset']} "
        f"dev after {record['steps']} steps of {record['batch']} sentences, {len(record['seeds'])} seeds:",
        "",
        *table(["", *(f"`{name}`" for name in NAMES), "difference"], rows),
    ]


def run_lines(runs: List[Record]) -> List[str]:
    """Systems that were trained over both with the same recipe and steps."""
    found: Dict[tuple, Dict[str, List[Record]]] = {}
    for dataset, encoder, steps, own in by_corpus(runs):
        if encoder in NAMES:
            for system, chosen in best_runs(own).items():
                key = dataset, system, steps, chosen[0].get("recipe")
                found.setdefault(key, {})[encoder] = chosen
    rows = []
    for (dataset, system, _, _), by_encoder in found.items():
        if len(by_encoder) == len(NAMES):
            pair = [by_encoder[name] for name in NAMES]
            cells = [spread([run["f"] for run in own]) for own in pair]
            cells += [f"{average(own, 'predict_words_per_second'):,.0f}" for own in pair]
            cells += [f"{max(run['peak_mb'] for run in own):,}" for own in pair]
            rows.append([dataset, f"`{system}`", *cells])
    keys = [f"{part}, `{name}`" for part in ("F", "words/s", "peak MB") for name in NAMES]
    return [*table(["corpus", "system", *keys], rows), ""] if rows else []
