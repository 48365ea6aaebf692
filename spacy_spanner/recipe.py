"""Settings of a training config that are chosen by the corpus: system, encoder, number of steps."""

from __future__ import annotations

from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

from spacy.vocab import Vocab
from thinc.api import Config
from thinc.compat import has_cupy_gpu, has_torch_cuda_gpu

from .corpus.docs import read_docs, source_name
from .corpus.pairs import annotated_kinds
from .corpus.stats import Settings, Stats, corpus_stats
from .errors import Errors, UserError, Warnings
from .training_config import (
    component_of,
    factory_defaults,
    learns_relations,
    own_output,
    width_limit,
)

STEPS_AT_1000 = (
    250  # steps for a corpus of 1,000 words; they grow with the square root of its words
)
FEWEST, MOST = 400, 10_000
ROWS_OF_TABLE = 16  # evaluations in a training
RECOMMENDED = "global_pointer"  # for flat entities, too (docs/accuracy.md)


class Choice(NamedTuple):
    """A recommended system and encoder, whether entities are flat, and why."""

    system: str
    encoder: str
    flat: bool
    reasons: List[str]


class Gold(NamedTuple):
    """Counts of the annotation that a system learns from, the `output` for it, and why it is that."""

    stats: Stats
    output: Optional[str]
    reasons: List[str]


def read_gold(path: Path, system: str, *, output: Optional[str], spans_key: str) -> Gold:
    """Count a corpus as a system sees it; an error where there is nothing for it to learn.

    system: A name, or "auto", which learns flat entities from a span group, too.
    output: One that the user has chosen; None takes what the corpus has.
    """
    factory = component_of(RECOMMENDED if system == "auto" else system)["factory"]
    default, can_change = ("both", True) if system == "auto" else own_output(factory)
    relations = learns_relations(factory_defaults(factory)[0])
    kinds = annotated_kinds(read_docs(path, Vocab()), spans_key)
    sources = {kind: f"`{source_name(kind, spans_key)}`" for kind in ("ents", "spans")}
    kind, other = ("ents", "spans") if (output or default) == "ents" else ("spans", "ents")
    replaced = output is None and kinds[other] and not kinds[kind]
    if replaced and not can_change:
        places = {"system": system, "source": sources[kind], "path": path, "other": sources[other]}
        raise UserError(Errors.S253.format(**places))
    if replaced:
        kind, output = other, "ents" if other == "ents" else "both"
    stats = corpus_stats(path, Settings(output=kind, spans_key=spans_key, relations=relations))
    if not stats.spans:
        raise UserError(Errors.S250.format(path=path, source=sources[kind]))
    if relations and not stats.relations:
        raise UserError(Errors.S254.format(path=path, system=system))
    reasons = []
    if replaced and kind == "ents" and stats.keys:
        keys = ", ".join(sorted(stats.keys))
        reasons = [Warnings.SW21.format(path=path, key=spans_key, keys=keys)]
    elif replaced and system != "auto":
        reasons = [f"output = {output}: {path} is annotated in {sources[kind]} alone"]
    return Gold(stats, output or ("both" if system == "auto" else None), reasons)


def recommend(
    stats: Stats,
    *,
    encoder: Optional[str] = None,
    vectors: Optional[str] = None,
    transformer: Optional[str] = None,
) -> Choice:
    """The system and the encoder for a corpus; docs/accuracy.md has what they were chosen by.

    encoder: One that the user has chosen.
    vectors: Static vectors at hand.
    transformer: A pretrained transformer at hand.
    """
    size = f"{stats.spans:,} spans in {stats.docs:,} documents, {stats.tokens:,} tokens"
    if stats.overlapping:
        reason = f"{stats.overlapping:,} of {size} overlap others"
    else:
        reason = f"no span of {size} overlaps another; flat entities are the most probable ones"
    reasons = [f"{RECOMMENDED}: {reason}"]
    if encoder:
        reasons.append(f"{encoder}: chosen by --encoder")
        return Choice(RECOMMENDED, encoder, not stats.overlapping, reasons)
    on_gpu = has_cupy_gpu or has_torch_cuda_gpu
    if transformer and on_gpu and find_spec("transformers"):
        reasons.append(f"huggingface: {transformer} was given, and there is a GPU")
        return Choice(RECOMMENDED, "huggingface", not stats.overlapping, reasons)
    hint = "" if transformer else "; with one, give --transformer NAME"
    how = "there is no GPU for a transformer" if not on_gpu else "no transformer was given"
    if transformer and on_gpu:  # and no library
        how = f"{transformer} needs the library transformers: pip install 'spacy-spanner[huggingface]'"
    start = f"its word vectors start from {vectors}" if vectors else "no vectors were given"
    reasons.append(f"lstm: {how}{hint}; {start}")
    return Choice(RECOMMENDED, "lstm", not stats.overlapping, reasons)


def fit_to_corpus(config: Config, stats: Stats) -> Dict[str, int]:
    """Set the length of the training by the size of the corpus; returns the settings.

    Training ends early only if half of the steps bring nothing, so never while the rate rises, which
    is a tenth of the steps.
    """
    steps = round(STEPS_AT_1000 * (stats.tokens / 1000) ** 0.5, -2)
    steps = int(min(max(steps, FEWEST), MOST))
    values = {"max_steps": steps, "eval_frequency": steps // ROWS_OF_TABLE, "patience": steps // 2}
    config["training"].update(values)
    return values


def follow_paper(config: Config, stats: Stats) -> Dict[str, int]:
    """Count the epochs of a paper's recipe in steps, with a score after each; returns the settings."""
    recipe = config["recipe"]
    recipe["steps_per_epoch"] = max(ceil(stats.docs / recipe["batch_size"]), 1)
    steps = recipe["epochs"] * recipe["steps_per_epoch"]
    values = {"max_steps": steps, "eval_frequency": recipe["steps_per_epoch"]}
    config["training"].update(values)
    return values


def widest(system: str, stats: Stats) -> Optional[int]:
    """The width that holds 99 % of the spans, for a system that needs one."""
    return None if width_limit(component_of(system)) is None else stats.width_for(99)
