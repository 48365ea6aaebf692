"""Settings of a training config that are chosen by the corpus: system, encoder, number of steps."""

from __future__ import annotations

from importlib.util import find_spec
from math import ceil
from typing import Dict, List, NamedTuple, Optional

from thinc.api import Config
from thinc.compat import has_cupy_gpu, has_torch_cuda_gpu

from .corpus.stats import Stats
from .training_config import component_of, width_limit

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
    inside = stats.nested + stats.crossing + stats.two_labels
    size = f"{stats.spans:,} spans in {stats.docs:,} documents, {stats.tokens:,} tokens"
    if inside:
        reason = f"{inside:,} of {size} lie inside or across others or have two labels"
    else:
        reason = f"no span of {size} lies inside or across another; flat entities are the most probable ones"
    reasons = [f"{RECOMMENDED}: {reason}"]
    if encoder:
        reasons.append(f"{encoder}: chosen by --encoder")
        return Choice(RECOMMENDED, encoder, not inside, reasons)
    on_gpu = has_cupy_gpu or has_torch_cuda_gpu
    if transformer and on_gpu and find_spec("transformers"):
        reasons.append(f"huggingface: {transformer} was given, and there is a GPU")
        return Choice(RECOMMENDED, "huggingface", not inside, reasons)
    hint = "" if transformer else "; with one, give --transformer NAME"
    how = "there is no GPU for a transformer" if not on_gpu else "no transformer was given"
    start = f"its word vectors start from {vectors}" if vectors else "no vectors were given"
    reasons.append(f"lstm: {how}{hint}; {start}")
    return Choice(RECOMMENDED, "lstm", not inside, reasons)


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
