"""What a user gets from spaCy's quickstart beside `config auto`, for docs/benchmarks.md and the README."""

from __future__ import annotations

from itertools import product
from statistics import geometric_mean, mean
from typing import Iterable, List, NamedTuple, Tuple

from .data import DATASETS
from .quickstart import EFFICIENCY, LIMIT
from .tables import Record, average, known_spread, table

DEFAULT, FASTEST = "words_per_second_default", "words_per_second_fastest"

TEXT = f"""## What a user gets

Both sides by the commands that a user types, no setting touched: `spacy init config --pipeline ner`
(`spancat` where entities nest), and `spacy spanner config auto`, with GloVe vectors where the row says
so; then `spacy train` with the training part (of a large corpus its first {LIMIT:,} sentences) and the
development part, on which both are scored. Training stops by the rules of each config. F is over all
gold spans, with the spread where there are several seeds. The calibration error is in points (`ner`
gives no confidences); our thresholds and temperature were fitted on the same part when training saved
the model, as every user of `config auto` has it; by chance it would be the next number, were every
confidence of ours the true probability. Seconds and words per second are of the processor's
time, one thread; words per second as a program gets them that calls nothing of ours, and "faster
products" is the ratio where both have numpy's matrix products instead of thinc's BLIS. The last row has
the mean distance and the geometric mean of the ratios over the corpora of which both sides were
measured; of a corpus with and without vectors it takes the row with them.
"""

SHORT = (
    "What a user gets: `spacy init config` and `config auto`, both with no setting touched, and words per "
    "second and seconds of training of the second over those of the first:"
)


class Pair(NamedTuple):
    """A row: the runs of both sides, a run for each seed; one side may be missing."""

    corpus: str
    vectors: bool  # of our side
    spacy: List[Record]
    ours: List[Record]

    @property
    def distance(self) -> float:
        return average(self.ours, "f") - average(self.spacy, "f")

    def ratio(self, key: str) -> float:
        return average(self.ours, key) / average(self.spacy, key)


def quickstart_section(records: List[Record]) -> str:
    runs = last_runs(records)
    if not runs:
        return ""
    parts = [TEXT, "```bash", *commands(runs), "```", ""]
    for optimize in optimized(runs):
        if optimize != EFFICIENCY:
            parts += [f"Our side by `config auto --optimize {optimize}`:", ""]
        parts += [*pairs_table(pairs_of(runs, optimize)), ""]
    measured = sorted({f"{run['machine']}, commit {run['commit']}" for run in runs})
    return "\n".join([*parts, f"Measured on: {'; '.join(measured)}.", ""])


def last_runs(records: List[Record]) -> List[Record]:
    """Of a run measured again the last counts."""
    return list(
        {(run["side"], run["dataset"], run["seed"], *form(run)): run for run in records}.values()
    )


def form(run: Record) -> Tuple[str, bool]:
    """What our side was given. spaCy's is always the same, whatever its record says of vectors."""
    ours = run["side"] == "ours"
    return run.get("optimize", EFFICIENCY) if ours else EFFICIENCY, ours and run["vectors"]


def optimized(runs: List[Record]) -> List[str]:
    """The forms of our side, the default first."""
    found = {form(run)[0] for run in runs}
    return [EFFICIENCY, *sorted(found - {EFFICIENCY})]


def pairs_of(runs: List[Record], optimize: str = EFFICIENCY) -> List[Pair]:
    """Rows in the order of the corpora, without vectors before with them. A corpus of which only
    spaCy's side was measured is shown in the first table alone."""
    pairs = []
    for corpus in DATASETS:
        here = [run for run in runs if run["dataset"] == corpus]
        peers = [run for run in here if run["side"] == "spacy"]
        own = [run for run in here if run["side"] == "ours"]
        found = [
            Pair(corpus, vectors, peers, [run for run in own if form(run) == (optimize, vectors)])
            for vectors in (False, True)
        ]
        kept = [pair for pair in found if pair.ours]
        pairs += kept or (found[:1] if peers and optimize == EFFICIENCY else [])
    return pairs


def complete(pairs: Iterable[Pair]) -> List[Pair]:
    """One row for each corpus of which both sides were measured."""
    return list({pair.corpus: pair for pair in pairs if pair.spacy and pair.ours}.values())


def pairs_table(pairs: List[Pair]) -> List[str]:
    head = [
        "corpus",
        "F, spaCy",
        "F, ours",
        "distance",
        "calibration error, spaCy",
        "ours",
        "by chance",
    ]
    head += [
        "training seconds, spaCy",
        "ours",
        "words/s, spaCy",
        "ours",
        "ratio",
        "faster products",
    ]
    rows = []
    for pair in pairs:
        sides = (pair.spacy, pair.ours)
        both = all(sides)
        cells = [name_of(pair), *map(scored, sides), f"{pair.distance:+.1f}" if both else ""]
        cells += [known_spread(side, "calibration_error") for side in sides]
        cells.append(known_spread(pair.ours, "calibration_chance"))
        cells += [whole(side, key) for key in ("train_seconds", DEFAULT) for side in sides]
        cells += [f"{pair.ratio(key):.2f}" if both else "" for key in (DEFAULT, FASTEST)]
        rows.append(cells)
    known = complete(pairs)
    if known:
        ratios = [times(known, key) for key in (DEFAULT, FASTEST)]
        rows.append([mean_name(known), "", "", mean_distance(known), *[""] * 7, *ratios])
    return table(head, rows)


def name_of(pair: Pair) -> str:
    return pair.corpus + (", GloVe" if pair.vectors else "")


def mean_name(pairs: List[Pair]) -> str:
    return "mean" if len(pairs) == 1 else f"mean of {len(pairs)} corpora"


def mean_distance(pairs: List[Pair]) -> str:
    return f"{mean(pair.distance for pair in pairs):+.1f}"


def times(pairs: List[Pair], key: str) -> str:
    return f"{geometric_mean(pair.ratio(key) for pair in pairs):.2f}"


def scored(side: List[Record]) -> str:
    """F and the component that has it."""
    return f"{known_spread(side, 'f')} `{side[-1]['components'][-1]}`" if side else ""


def whole(side: List[Record], key: str) -> str:
    return f"{average(side, key):,.0f}" if side else ""


def commands(runs: List[Record]) -> List[str]:
    """What reproduces these runs, a line for each form of our side."""
    lines = []
    for optimize, vectors in product(optimized(runs), (False, True)):
        own = [run for run in runs if run["side"] == "ours" and form(run) == (optimize, vectors)]
        if own:
            corpora = [corpus for corpus in DATASETS if corpus in {run["dataset"] for run in own}]
            seeds = ",".join(map(str, sorted({run["seed"] for run in own})))
            text = f"quickstart --data DATA --datasets {','.join(corpora)} --seeds {seeds}"
            text += " --vectors VECTORS" if vectors else ""
            text += "" if optimize == EFFICIENCY else f" --sides ours --optimize {optimize}"
            lines.append(f'make bench BENCH="{text}"')
    return lines or ['make bench BENCH="quickstart --data DATA"']


def short_quickstart(records: List[Record]) -> List[str]:
    """For the README: what was measured of both sides."""
    known = complete(pairs_of(last_runs(records)))
    if not known:
        return []
    rows = [
        [name_of(pair), scored(pair.spacy), scored(pair.ours), f"{pair.distance:+.1f}"]
        + [f"{pair.ratio(key):.2f}" for key in (DEFAULT, "train_seconds")]
        for pair in known
    ]
    ratios = [times(known, key) for key in (DEFAULT, "train_seconds")]
    rows.append([mean_name(known), "", "", mean_distance(known), *ratios])
    head = ["corpus", "F, spaCy", "F, `config auto`", "distance", "words/s", "training"]
    return [SHORT, "", *table(head, rows)]
