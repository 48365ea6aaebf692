"""One complete training config from short overlays: base + encoder + system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from spacy.util import CONFIG_SECTION_ORDER, load_model_from_config
from thinc.api import Config

from .errors import Errors

CONFIGS = Path(__file__).parent / "configs"
BASELINES = ("ner", "spancat")  # spaCy's own components, configured alike for fair comparisons
RELATIONS = "global_pointer_relations"
POINTERS = ("global_pointer", "efficient_global_pointer")


def names(kind: str) -> List[str]:
    """The overlays there are; `kind` is "systems" or "encoders"."""
    return sorted(path.stem for path in (CONFIGS / kind).glob("*.cfg"))


def read_overlay(*parts: str) -> Config:
    path = CONFIGS.joinpath(*parts).with_suffix(".cfg")
    return Config().from_disk(path, interpolate=False)


def join_config(
    system: str,
    encoder: str,
    *,
    lang: str = "en",
    output: Optional[str] = None,
    spans_key: str = "sc",
    max_width: Optional[int] = None,
    transformer: Optional[str] = None,
    mixed_precision: bool = False,
) -> Config:
    """The overlays put together, as short as they are.

    system: A system of ours, or "ner" or "spancat".
    encoder: "hash", "vectors", "huggingface", "transformer" (spacy-transformers), or a variant with
        word vectors tuned in training.
    output: "spans", "ents" or "both"; the system's own default without it.
    max_width: Widest span, where the system has such a limit.
    transformer: Name or folder of the pretrained model.
    mixed_precision: Half precision inside the transformer (GPU only); bf16 with "huggingface".
    """
    config = Config(section_order=CONFIG_SECTION_ORDER).merge(read_overlay("base"))
    config = config.merge(read_overlay("encoders", encoder))
    overlay = read_overlay("systems", system)
    component = overlay.pop("component")
    config = config.merge(overlay)
    head, pointer = config.pop("head", {}), config.pop("pointer", {})
    if system not in BASELINES:
        component["model"].update(head)
        component["model"].update(pointer if system in POINTERS else {})
        component["spans_key"] = spans_key
        if output is not None:
            component["output"] = output
    elif system == "spancat":
        component["spans_key"] = spans_key
    component["model"]["tok2vec"] = config.pop("tok2vec")
    word_width = config.pop("words", {}).get("width")
    if system == "hierarchical_ner" and word_width:
        component["model"]["word_width"] = word_width
    if max_width is not None:
        set_width(component, max_width)
    config["components"][system] = component
    config["nlp"]["lang"] = lang
    config["nlp"]["pipeline"] = list(config["components"])
    config["training"]["score_weights"] = score_weights(system, output, spans_key)
    set_transformer(config["components"], transformer, mixed_precision=mixed_precision)
    return config


def set_transformer(
    components: Dict[str, Any], transformer: Optional[str], *, mixed_precision: bool
) -> None:
    """Put the name of the transformer where the encoder, if it is one, has it."""
    if "transformer" in components:
        model = components["transformer"]["model"]
        model["name"] = transformer or model["name"]
        model["mixed_precision"] = mixed_precision
        return
    model = components.get("tok2vec", {}).get("model", {})
    if model.get("@architectures") == "spacy-spanner.HuggingFaceEncoder.v1":
        model["mixed_precision"] = "bf16" if mixed_precision else "none"
        if transformer is not None:
            model.update(name=transformer, width=vector_width(transformer))


def vector_width(transformer: str) -> int:
    """The width of a transformer's vectors, from its config.json; of a model of the hub, that file
    alone is fetched."""
    path = Path(transformer) / "config.json"
    try:
        if not path.is_file():
            from huggingface_hub import hf_hub_download

            path = Path(hf_hub_download(transformer, "config.json"))
        data = json.loads(path.read_text(encoding="utf8"))
        return int(data["hidden_size"] if "hidden_size" in data else data["dim"])
    except ImportError as err:
        raise ValueError(Errors.S086) from err
    except Exception as err:  # the library has its own error for every way to fail
        reason = f"its config.json is needed for the width of its vectors ({err})"
        raise ValueError(Errors.S080.format(name=transformer, reason=reason)) from err


def set_width(component: Dict[str, Any], max_width: int) -> None:
    if "suggester" in component:
        component["suggester"]["max_size"] = max_width
    elif component["factory"] in (*POINTERS, "span_ner", RELATIONS):
        component["model"]["max_width"] = max_width
    elif component["factory"] == "bundled_ner":
        span_head = {"@architectures": "spacy-spanner.SpanNER.v1", "tok2vec": None}
        component["model"]["span"] = {**span_head, "max_width": max_width}
    elif component["factory"] == "locate_and_label":
        component["model"]["seed_lengths"] = list(range(1, max_width + 1))


def score_weights(system: str, output: Optional[str], spans_key: str) -> Dict[str, Optional[float]]:
    """Weights of the scores that this system fills, and of no others."""
    if system == RELATIONS:  # the score of the entities is shown beside, without weight
        entities = "ents_f" if output == "ents" else f"spans_{spans_key}_f"
        return {"rel_f": 1.0, "rel_p": 0.0, "rel_r": 0.0, entities: 0.0}
    if output is None:
        spans = (*POINTERS, "locate_and_label", "spancat")
        output = "spans" if system in spans else "ents"
    if system in BASELINES:
        output = {"ner": "ents", "spancat": "spans"}[system]
    prefix = "ents" if output == "ents" else f"spans_{spans_key}"
    # spaCy adds the default weights of the factory; null takes away those that are not filled.
    defaults = [f"{name}_{part}" for name in ("ents", "spans_sc") for part in ("f", "p", "r")]
    unfilled = dict.fromkeys([*defaults, "ents_per_type", "spans_sc_per_type"])
    return {**unfilled, f"{prefix}_f": 1.0, f"{prefix}_p": 0.0, f"{prefix}_r": 0.0}


def complete(config: Config) -> Config:
    """The config with every default filled in, as `spacy init fill-config` would do."""
    filled = load_model_from_config(config, auto_fill=True, validate=True).config
    return Config(filled, section_order=CONFIG_SECTION_ORDER)
