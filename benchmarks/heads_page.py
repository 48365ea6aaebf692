"""All heads over the same small BiLSTM encoder side by side, spaCy's among them, and how far the
recommended system is ahead."""

from __future__ import annotations

from statistics import mean
from typing import Dict, List, Optional

from spacy_spanner import recipe

from .comparison import best_of, compared
from .data import TRANSFORMERS
from .systems import BASELINES, default_row
from .tables import Record, best_runs, by_corpus, known_spread, spread, table

# With static vectors, but for German and for the demo, which needs nothing from elsewhere.
CORPORA = {
    "demo": "lstm",
    "germeval2014": "lstm",
    "conll04": "lstm_vectors",
    "wnut17": "lstm_vectors",
    "genia": "lstm_vectors",
}
HEADS = (
    *("ner", "ner_fast", "spancat", "spancat_fast"),
    *("global_pointer", "efficient_global_pointer", "locate_and_label", "seq_ner"),
    *("seq_ner_crf", "span_ner", "bl_seq_ner", "bl_span_ner", "bl_both"),
)
NEVER_FITTED = ("ner", "ner_fast")
Own = Dict[str, List[Record]]  # runs of a corpus by system, a run for each seed
Heads = Dict[str, Own]  # by corpus

TEXT = """## All heads over the same BiLSTM encoder

F of every head over the encoder `lstm` (`lstm_vectors` with GloVe), with the same steps, schedule and
averaged weights, and the best of the learning rates that were run, which the tables below name: mean and
spread (standard deviation) over seeds. Thresholds are not fitted. Bold is the system that `config auto`
takes for the corpus. Our heads learn at twice the rate of the encoder, as their configs have it;
`ner_fast` and `spancat_fast` are spaCy's with the same factor. `bl_both` is `bundled_ner` as its config
has it; `bl_seq_ner` and `bl_span_ner` are the same weights with one head that answers, of checkpoints that
were chosen by what both find. "Ahead" counts the corpora on which a system has more than the best of
spaCy's, of those on which it and at least one of these were measured.
"""

RECOMMENDED = """The recommended system beside the best of spaCy's. "Clear" is as above. The
calibration error is in points: as the head gives its scores; with threshold, temperature and biases fitted
on the same development part, as training saves them; fitted on each half of that part for the other half.
By chance it would be the last number, were every confidence that is fitted as training saves it the true
probability.
"""

HELD_OUT = """The same with thresholds fitted on both sides, on each half of the development part for the
other half: ours with temperature and biases, as training saves them; that of `spancat` as `spacy
find-threshold` would find it. `ner` has none. Systems whose runs were not fitted so are left out, and with
one of spaCy's the other one, as the better of them is not known then.
"""

FITTED = """The same fitted on the whole development part and scored on it, which flatters what fits more
numbers: spans of ours are also ordered anew by a bias of each label.
"""

SHORT = (
    "Over the same small BiLSTM encoder (GloVe on conll04, wnut17 and genia). Bold is what `config auto` "
    'takes; "ahead" are the corpora on which a system beats the best of spaCy\'s:'
)


def heads_section(runs: List[Record]) -> str:
    heads = measured_heads(runs)
    if not heads:
        return ""
    parts = [TEXT, *heads_table(heads), ""]
    rows = recommended_rows(heads)
    if rows:
        head = ["corpus, encoder", "spaCy", "F", "recommended", "F", "distance", "clear"]
        head += ["calibration error", "fitted", "held out", "by chance"]
        parts += [RECOMMENDED, *table(head, rows), ""]
    parts += [HELD_OUT, *heads_table(with_fit(heads, "held_out")), ""]
    parts += [FITTED, *heads_table(with_fit(heads, "fitted")), ""]
    return "\n".join(parts)


def measured_heads(runs: List[Record]) -> Heads:
    """What was measured of these corpora and systems. All systems of a corpus have the same steps: those
    that most of them were measured with."""
    found: Heads = {}
    for dataset, encoder, _, own in by_corpus(runs):
        if CORPORA.get(dataset) == encoder:
            heads = {name: chosen for name, chosen in best_runs(own).items() if name in HEADS}
            if heads and len(heads) >= len(found.get(dataset, {})):
                found[dataset] = heads
    return {dataset: found[dataset] for dataset in CORPORA if dataset in found}


def heads_table(heads: Heads) -> List[str]:
    """A system each row, a corpus each column."""
    rows, bold = [], default_row(recipe.RECOMMENDED)
    for name in HEADS:
        if any(name in own for own in heads.values()):
            cells = [cell(own, name, bold) for own in heads.values()]
            rows.append([f"`{name}`", *cells, ahead(heads, name)])
    distances = [distance(own, bold) for own in heads.values()]
    if any(value is not None for value in distances):
        shown = ["" if value is None else f"{value:+.1f}" for value in distances]
        rows.append(["distance of the bold one", *shown, ""])
    return table(["system", *heads, "ahead"], rows)


def cell(own: Own, name: str, bold: str) -> str:
    if name not in own:
        return ""
    text = spread(scores_of(own)[name])
    return f"**{text}**" if name == bold else text


def ahead(heads: Heads, name: str) -> str:
    """On how many corpora a system of ours is ahead, of those on which it can be compared."""
    if name in BASELINES:
        return ""
    found = [distance(own, name) for own in heads.values()]
    known = [value for value in found if value is not None]
    return f"{sum(value > 0 for value in known)} of {len(known)}" if known else ""


def with_fit(heads: Heads, kind: str) -> Heads:
    """The same with the scores of fitted thresholds, of what was fitted. Where one of spaCy's was not, the
    better one is not known, so both are left out.

    kind: "fitted" or "held_out"."""
    found: Heads = {}
    for dataset, own in heads.items():
        known = {name: runs for name, runs in own.items() if is_fitted(name, runs, kind)}
        if any(name in BASELINES and name not in known for name in own):
            known = {name: runs for name, runs in known.items() if name not in BASELINES}
        found[dataset] = {
            name: [{**run, **run.get(kind, {})} for run in runs] for name, runs in known.items()
        }
    return found


def is_fitted(name: str, runs: List[Record], kind: str) -> bool:
    """Of ours, runs from before fits were judged on held-out spans do not count: they fitted fewer
    numbers."""
    key = kind if name in BASELINES else "held_out"
    return name in NEVER_FITTED or all(key in run for run in runs)


def distance(own: Own, name: str) -> Optional[float]:
    """F beyond that of the better one of spaCy's; None where either was not measured."""
    peer = better_peer(own)
    if peer is None or name not in own:
        return None
    scores = scores_of(own)
    return mean(scores[name]) - mean(scores[peer])


def better_peer(own: Own) -> Optional[str]:
    peers = {name: values for name, values in scores_of(own).items() if name in BASELINES}
    return best_of(peers) if peers else None


def scores_of(own: Own) -> Dict[str, List[float]]:
    return {name: [run["f"] for run in runs] for name, runs in own.items()}


def recommended_rows(heads: Heads) -> List[List[str]]:
    rows = []
    for dataset, own in heads.items():
        peer, name = better_peer(own), default_row(recipe.RECOMMENDED)
        if peer is not None and name in own:
            judged = [run for run in own[name] if "held_out" in run]
            fitted, held_out = ([run[kind] for run in judged] for kind in ("fitted", "held_out"))
            cells = compared(peer, name, scores_of(own))
            cells += [
                known_spread(part, "calibration_error") for part in (own[name], fitted, held_out)
            ]
            cells.append(known_spread(fitted, "calibration_chance"))
            rows.append([f"{dataset}, `{CORPORA[dataset]}`", *cells])
    return rows


def other_runs(runs: List[Record]) -> List[Record]:
    """Runs that this table makes no shorter work of: over transformers, and on other corpora."""
    heads = measured_heads(runs)
    told = {
        dataset for dataset, own in heads.items() if better_peer(own) and set(own) - set(BASELINES)
    }
    return [run for run in runs if run["dataset"] not in told or run["encoder"] in TRANSFORMERS]


def short_heads(runs: List[Record]) -> List[str]:
    """For the README."""
    heads = measured_heads(runs)
    return [SHORT, "", *heads_table(heads)] if heads else []
