"""docs/benchmarks.md and its plots, from the files of measurements alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, List, Tuple

from .data import DATASETS
from .results import RESULTS, SPEED, read_lines
from .systems import SYSTEMS

Record = Dict[str, Any]

HEAD = """# Benchmarks

Everything here is made by `make bench` (`python -m benchmarks report`) from `benchmarks/results.jsonl` and `benchmarks/speed.jsonl`, to which every finished run
is appended; nothing is typed in. Figures are on the development parts, strict (ends and label), micro, over **all** gold spans, nested ones too. All
systems of a table stand on the same encoder and take the same number of steps; each one's learning rate is the best of the same small grid for the first seed,
on the development part, which flatters all of them alike. A table with a few rows is a table that is not finished.

```bash
make bench BENCH="accuracy --data DATA --vectors VECTORS --datasets conll04"
make bench BENCH="speed --data DATA --encoder hash"
make bench BENCH="report"
```
`DATA` holds `conll04/train.jsonl`, `conll04/dev.jsonl` and so on; `VECTORS` is what `spacy init vectors` made of GloVe 6B 100d (100,000 words).
"""


def write_report(target: Path) -> None:
    runs, speeds = read_lines(RESULTS), read_lines(SPEED)
    parts = [HEAD, *(accuracy_section(*group) for group in by_corpus(runs)), speed_section(speeds)]
    target.write_text("\n".join(parts).rstrip() + "\n", encoding="utf8")
    plot(runs, target.parent / "benchmarks.png")


def by_corpus(runs: List[Record]) -> List[Tuple[str, str, int, List[Record]]]:
    groups: Dict[tuple, List[Record]] = defaultdict(list)
    for run in runs:
        groups[run["dataset"], run["encoder"], run["steps"]].append(run)
    return [(*key, groups[key]) for key in sorted(groups)]


def best_runs(runs: List[Record]) -> Dict[str, List[Record]]:
    """The runs of each system with its best learning rate, one for each seed."""
    chosen: Dict[str, List[Record]] = {}
    for system in SYSTEMS:
        own = [run for run in runs if run["system"] == system]
        if own:
            first_seed = own[0]["seed"]
            best = max((run for run in own if run["seed"] == first_seed), key=lambda run: run["f"])
            chosen[system] = [run for run in own if run["learn_rate"] == best["learn_rate"]]
    return chosen


def spread(values: List[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def accuracy_section(dataset: str, encoder: str, steps: int, runs: List[Record]) -> str:
    limit = DATASETS[dataset].budgets[encoder].train_limit
    lines = [
        f"## {dataset}, encoder `{encoder}`, {steps:,} steps"
        + (f", {limit:,} training sentences" if limit else ""),
        "",
        "| system | P | R | F | seeds | learning rate | training words/s | prediction words/s | size MB | peak MB | seconds | commit |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for system, own in best_runs(runs).items():
        cells = [spread([run[key] for run in own]) for key in ("p", "r", "f")]
        cells += [str(len(own)), f"{own[0]['learn_rate']:g}"]
        cells += [f"{mean(run['train_words_per_second'] for run in own):,.0f}"]
        cells += [f"{mean(run['predict_words_per_second'] for run in own):,.0f}"]
        cells += [f"{own[0]['size_mb']:.0f}", f"{max(run['peak_mb'] for run in own):,}"]
        cells += [f"{mean(run['seconds'] for run in own):,.0f}", own[-1]["commit"]]
        lines.append("| " + " | ".join([f"`{system}`", *cells]) + " |")
    note = "Words per second are of runs beside other work, one thread each: compare them within a table only, and roughly."
    return "\n".join([*lines, "", note, ""])


def speed_section(speeds: List[Record]) -> str:
    """The last measurement of each encoder."""
    latest = {record["encoder"]: record for record in speeds}
    lines: List[str] = []
    for encoder, record in sorted(latest.items()):
        lines += [
            f"## Speed over the encoder alone, `{encoder}`",
            "",
            f"{record['sentences']} sentences of {record['dataset']} dev, {record['threads']} thread(s), medians over {record['rounds']} rounds in one "
            f"process; the encoder alone predicts {record['words_per_second']:,} words/s. The last column is one document of 20,000 tokens "
            f"without sentence boundaries against documents of 500. {record['machine']}, commit {record['commit']}, "
            + ", ".join(f"{name} {version}" for name, version in record["versions"].items())
            + ".",
            "",
            "| system | prediction | training | long document |",
            "|---|---|---|---|",
        ]
        for name in record["predict"]:
            row = [record[kind][name] for kind in ("predict", "train", "long")]
            lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in row) + " |")
        lines.append("")
    return "\n".join(lines)


def plot(runs: List[Record], target: Path) -> None:
    """F of every system on every corpus, with the spread over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = by_corpus(runs)
    if not groups:
        return
    figure, axes = plt.subplots(1, len(groups), figsize=(4.5 * len(groups), 4), squeeze=False)
    for axis, (dataset, encoder, _, own) in zip(axes[0], groups):
        chosen = best_runs(own)
        names = list(chosen)[::-1]
        values = [[run["f"] for run in chosen[name]] for name in names]
        errors = [stdev(v) if len(v) > 1 else 0.0 for v in values]
        colors = ["#999999" if name in ("ner", "spancat") else "#3b6fb6" for name in names]
        axis.barh(names, [mean(v) for v in values], xerr=errors, color=colors)
        low = min(mean(v) for v in values)
        axis.set_xlim(max(0, low - 10), None)
        axis.set_title(f"{dataset} ({encoder})")
        axis.set_xlabel("F on dev")
    figure.tight_layout()
    figure.savefig(target, dpi=110)
    plt.close(figure)
