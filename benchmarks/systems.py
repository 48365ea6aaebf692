"""What is measured: systems as overlays of a config, and encoders they stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List

from thinc.api import Config

from spacy_spanner.training_config import BASELINES, join_config


@dataclass(frozen=True)
class System:
    """A row of the tables: a factory, and changes to its model block or its settings."""

    factory: str
    model: Dict[str, Any] = field(default_factory=dict)
    settings: Dict[str, Any] = field(default_factory=dict)
    encoders: tuple = ("hash", "vectors", "transformer")


SYSTEMS: Dict[str, System] = {
    "ner": System("ner"),
    "spancat": System("spancat"),
    "global_pointer": System("global_pointer"),
    "efficient_global_pointer": System("efficient_global_pointer"),
    "locate_and_label": System("locate_and_label"),
    "seq_ner": System("seq_ner"),
    "seq_ner_crf": System("seq_ner", {"tagging": "crf"}),
    "span_ner": System("span_ner"),
    "bl_seq_ner": System("bundled_ner", {"decode_from": "seq"}),
    "bl_span_ner": System("bundled_ner", {"decode_from": "span"}),
}

LEARN_RATES = {"hash": [0.0005, 0.001, 0.002], "vectors": [0.0005, 0.001, 0.002]}
LEARN_RATES["transformer"] = [3e-5, 6e-5]


def make_config(
    system: str, encoder: str, *, lang: str, nested: bool, max_width: int, **options: Any
) -> Config:
    """The training config of a system; all systems of an encoder differ in their head alone.

    max_width: A width that holds 99 % of the gold spans; only systems with a limit use it.
    """
    chosen = SYSTEMS[system]
    output = None if chosen.factory in BASELINES else ("both" if nested else "ents")
    width = max_width if chosen.factory in ("spancat", "span_ner", "bundled_ner") else None
    config = join_config(
        chosen.factory, encoder, lang=lang, output=output, max_width=width, **options
    )
    component = config["components"][chosen.factory]
    component["model"].update(chosen.model)
    component.update(chosen.settings)
    return config


def names(chosen: List[str]) -> List[str]:
    """Systems by name, all of them for "all"."""
    return list(SYSTEMS) if chosen == ["all"] else chosen
