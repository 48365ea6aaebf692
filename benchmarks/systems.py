"""What is measured: systems as overlays of a config, and encoders they stand on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Dict, List, Optional, Tuple, Union

from spacy.util import registry
from thinc.api import Config

from spacy_spanner.training_config import (
    component_of,
    is_ours,
    join_config,
    put_into,
    read_overlay,
    width_limit,
)

from .data import SMALL
from .fast_heads import ADAM
from .fast_heads import NAME as FAST_HEADS


@dataclass(frozen=True)
class System:
    """A row of the tables: a system of `configs/systems`, and changes to its model block or its
    settings."""

    overlay: str
    model: Dict[str, Any] = field(default_factory=dict)
    settings: Dict[str, Any] = field(default_factory=dict)
    encoders: tuple = ("hash", "vectors", "transformer", "huggingface", *SMALL)
    more_steps: int = 1  # times the steps of the other systems, for another task than theirs
    width: Optional[int] = None  # widest span, instead of a width that suits the corpus
    head_scale: float = 1.0  # of spaCy's: factor on the learning rate of the head
    readings: tuple = ()  # other rows that read the same weights in another way
    span_of: Optional[str] = None  # of a bundle: the system whose head is its `span`


TUNED = ("tuned",)  # the paper's own word representation
INTNET = ("tuned_intnet",)
SEEDS_TO_6 = {"seed_lengths": [1, 2, 3, 4, 5, 6]}
# In a few epochs states change so fast that those of the epoch before deserve less trust than usual.
TRUST = {"mix": 0.85}
NO_CONTEXT = {"sentence_level": "off", "document_level": "off"}

SYSTEMS: Dict[str, System] = {
    "ner": System("ner"),
    "spancat": System("spancat"),
    # With the factor that the encoder's config gives our heads.
    "ner_fast": System("ner", encoders=SMALL, head_scale=2.0),
    "spancat_fast": System("spancat", encoders=SMALL, head_scale=2.0),
    "global_pointer": System("global_pointer"),
    "efficient_global_pointer": System("efficient_global_pointer"),
    "locate_and_label": System("locate_and_label"),
    "seq_ner": System("seq_ner"),
    "seq_ner_bio": System("seq_ner", {"scheme": "BIO"}, encoders=("vectors",)),
    # As papers of nested entities have it for a baseline, which knows the outermost ones.
    "seq_ner_crf": System("seq_ner", {"tagging": "crf", "levels": 1}),
    "span_ner": System("span_ner"),
    "biaffine_ner": System("biaffine_ner"),
    "hscrf": System("hscrf"),
    "bilstm_pointer": System("bilstm_pointer"),
    "bl_seq_ner": System("bundled_ner", {"decode_from": "seq"}),
    "bl_span_ner": System("bundled_ner", {"decode_from": "span"}),
    "bl_both": System(
        "bundled_ner", {"decode_from": "both"}, readings=("bl_seq_ner", "bl_span_ner")
    ),
    "bl_pointer": System(
        "bundled_ner", {"decode_from": "both"}, encoders=SMALL, span_of="global_pointer"
    ),
    "relations": System("global_pointer_relations", more_steps=2),
    "relation_classifier": System("relation_classifier", more_steps=2),
    "locate_and_label_6": System("locate_and_label", SEEDS_TO_6, encoders=("vectors",)),
    "locate_and_label_6_no_regressor": System(
        "locate_and_label", {**SEEDS_TO_6, "use_regressor": False}, encoders=("vectors",)
    ),
    "min": System("modularized_interaction", encoders=(*TUNED, "hash")),
    "min_ner_only": System(
        "modularized_interaction", {"use_boundary": False, "use_type": False}, encoders=TUNED
    ),
    "min_no_boundary": System("modularized_interaction", {"use_boundary": False}, encoders=TUNED),
    "min_no_type": System("modularized_interaction", {"use_type": False}, encoders=TUNED),
    "min_no_interaction": System(
        "modularized_interaction", {"use_interaction": False}, encoders=TUNED
    ),
    "hire": System("hierarchical_ner", TRUST, encoders=(*INTNET, "hash")),
    "hire_mix_07": System("hierarchical_ner", {"mix": 0.7}, encoders=INTNET),
    "hire_base": System("hierarchical_ner", NO_CONTEXT, encoders=INTNET),
    "hire_sentence": System("hierarchical_ner", {"document_level": "off"}, encoders=INTNET),
    "hire_document": System(
        "hierarchical_ner", {"sentence_level": "off", **TRUST}, encoders=INTNET
    ),
}

# spaCy's components, configured alike for fair comparisons.
BASELINES = [name for name, system in SYSTEMS.items() if not is_ours(component_of(system.overlay))]

LEARN_RATES: Dict[str, List[float]] = {
    "hash": [0.001, 0.002, 0.003],
    "vectors": [0.001, 0.002],
    "transformer": [1e-4, 2e-4],
    "huggingface": [1e-4, 2e-4],
    **{name: [0.0015, 0.003, 0.006] for name in SMALL},
    "tuned": [0.003],
    "tuned_intnet": [0.003],
}

# Encoders that are forms of another one: its name and options of the config.
FORMS: Dict[str, Tuple[str, Dict[str, str]]] = {
    "lstm_vectors": ("lstm", {"vectors": "VECTORS"}),  # the path is set by the run
    "lstm_large": ("lstm", {"vectors": "VECTORS", "optimize": "accuracy"}),
}


def name_of(system: System) -> str:
    """The name of a system in `SYSTEMS`, or else one that says all about it."""
    for name, own in SYSTEMS.items():
        if (own.overlay, own.model) == (system.overlay, system.model):
            return name
    return json.dumps([system.overlay, system.model], sort_keys=True)


def default_row(overlay: str) -> str:
    """The name of the row that leaves a system as its config is."""
    block = component_of(overlay)["model"]
    options = signature(registry.get("architectures", block["@architectures"])).parameters
    values = {**{name: option.default for name, option in options.items()}, **block}
    for name, own in SYSTEMS.items():
        same = all(values.get(option) == value for option, value in own.model.items())
        if own.overlay == overlay and same and not own.settings:
            return name
    raise ValueError(f"No row of benchmarks/systems.py is {overlay} as its config has it.")


def system_of(name: str) -> System:
    """A system by its name in `SYSTEMS`, or by that of `name_of`."""
    return SYSTEMS[name] if name in SYSTEMS else System(*json.loads(name))


def make_config(
    system: Union[str, System],
    encoder: str,
    *,
    lang: str,
    nested: bool,
    max_width: Optional[int] = None,
    **options: Any,
) -> Config:
    """The training config of a system; all systems of an encoder differ in their head alone.

    max_width: A width that holds 99 % of the gold spans; only systems with a limit and no width of
        their own use it.
    """
    chosen = system_of(system) if isinstance(system, str) else system
    block = component_of(chosen.overlay)
    output = ("both" if nested else "ents") if is_ours(block) else None
    width = chosen.width or (None if width_limit(block) is None else max_width)
    encoder, form = FORMS.get(encoder, (encoder, {}))
    # Thresholds fitted on what is measured would flatter our systems.
    options = {"fit": False, **form, **options}
    config = join_config(
        chosen.overlay, encoder, lang=lang, output=output, max_width=width, **options
    )
    component = config["components"][chosen.overlay]
    put_into(component["model"], chosen.model)
    component.update(chosen.settings)
    if chosen.span_of:
        part = join_config(chosen.span_of, encoder, lang=lang, **options)["components"]
        block = {**part[chosen.span_of]["model"], "tok2vec": None}
        del block["learn_rate_scale"]  # that of the bundle counts
        component["model"]["span"] = block
    head = read_overlay("encoders", encoder).get("head", {})
    scale = head.get("learn_rate_scale", chosen.head_scale)
    if scale != 1 and not is_ours(block):
        optimizer = config["training"]["optimizer"]
        for name, value in ADAM.items():
            optimizer.setdefault(name, value)
        optimizer.update({"@optimizers": FAST_HEADS, "head_scale": scale})
    return config


def names(chosen: List[str]) -> List[str]:
    """Systems by name, all of them for "all"."""
    return list(SYSTEMS) if chosen == ["all"] else chosen
