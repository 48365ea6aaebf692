"""The rows of the speed tables, with fixed widths, and the bars they have to reach."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from .systems import SYSTEMS, System

ALONE = "encoder alone"
PEERS = ("ner", "spancat_3", "spancat_10")
WIDTH = 10  # of all heads of ours that have one

# Unlike the tables of accuracy, every head stands on every encoder here.
TIMED: Dict[str, System] = {
    "ner": System("ner"),
    "spancat_3": System("spancat", width=3),
    "spancat_10": System("spancat", width=10),
    "global_pointer": System("global_pointer"),
    "efficient_global_pointer": System("efficient_global_pointer"),
    "locate_and_label": System("locate_and_label"),
    "seq_ner": System("seq_ner"),
    "seq_ner_crf": SYSTEMS["seq_ner_crf"],
    "span_ner": System("span_ner", width=WIDTH),
    "bl_seq_ner": System("bundled_ner", {"decode_from": "seq"}, width=WIDTH),
    "bl_span_ner": System("bundled_ner", {"decode_from": "span"}, width=WIDTH),
    "min": System("modularized_interaction"),
    "hire": System("hierarchical_ner"),
}
OURS = tuple(name for name in TIMED if name not in PEERS)

# What is timed over each encoder, and how often in a round: what takes tenths of a second more often.
# Over a transformer, training and long documents are its own work.
KINDS: Dict[str, Dict[str, int]] = {
    "hash": {"predict": 4, "train": 2, "long": 2},
    "transformer": {"predict": 1},
    "huggingface": {"predict": 1},
}
# Rounds and sentences with which a measurement takes minutes, not hours.
ROUNDS = {"hash": 3, "transformer": 2, "huggingface": 2}
SENTENCES = {"hash": 256, "transformer": 128, "huggingface": 128}

POINTERS = ("global_pointer", "efficient_global_pointer")
SPAN_CLASSIFIERS = ("span_ner", "locate_and_label")
SHARED_ENCODER = (*POINTERS, "seq_ner", "seq_ner_crf", "span_ner", "bl_seq_ner", "bl_span_ner")
OWN_LSTMS = ("min", "hire")

# Words per second over the encoder alone, and for "long" over documents of 500 tokens.
BARS: Dict[Tuple[str, str], Dict[str, float]] = {
    ("transformer", "predict"): {
        **dict.fromkeys(SHARED_ENCODER, 0.95),
        "locate_and_label": 0.90,
        **dict.fromkeys(OWN_LSTMS, 0.80),
    },
    ("hash", "predict"): {
        **dict.fromkeys((*POINTERS, "seq_ner"), 0.75),
        **dict.fromkeys(SPAN_CLASSIFIERS, 0.50),
        "min": 0.35,
        "hire": 0.45,
    },
    ("hash", "train"): {
        **dict.fromkeys(POINTERS, 0.75),
        **dict.fromkeys(SPAN_CLASSIFIERS, 0.50),
    },
    ("hash", "long"): dict.fromkeys(OURS, 0.95),
}
MEMORY_BAR = 300  # MB that the head may need beside the encoder, for one document of 20,000 tokens


def bar(encoder: str, kind: str, system: str) -> Optional[float]:
    """What a row has to reach; None for the peers, and where no bar is set."""
    if kind == "memory":
        return MEMORY_BAR if system in OURS else None
    return BARS.get((encoder, kind), {}).get(system)
