"""One complete training config from short overlays: base + encoder + system."""

from __future__ import annotations

import json
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from spacy.language import Language
from spacy.util import CONFIG_SECTION_ORDER, load_model_from_config, registry
from thinc.api import Config

from .errors import Errors, UserError

CONFIGS = Path(__file__).parent / "configs"
OURS = "spacy-spanner."  # how the names of our architectures begin
MANY_WORDS = 1_000_000  # what a corpus of unknown size is taken to have


def names(kind: str) -> List[str]:
    """The overlays there are; `kind` is "systems", "encoders" or "papers"."""
    return sorted(path.stem for path in (CONFIGS / kind).glob("*.cfg"))


def read_overlay(*parts: str) -> Config:
    """An overlay, merged into the one it names as its base, if any."""
    path = CONFIGS.joinpath(*parts).with_suffix(".cfg")
    overlay = Config().from_disk(path, interpolate=False)
    base = overlay.pop("overlay", {}).get("base")
    return overlay if base is None else put_into(read_overlay(*parts[:-1], base), overlay)


def put_into(base: Any, changes: Dict[str, Any]) -> Any:
    """Changes put into a base whose order stays, as it is that of the parts of an encoder. A block of
    another registered function replaces the one of the base."""
    for name, value in changes.items():
        old = base.get(name)
        is_same = isinstance(old, dict) and isinstance(value, dict)
        is_same = is_same and all(old.get(k, v) == v for k, v in value.items() if k[0] == "@")
        base[name] = put_into(old, value) if is_same else value
    return base


def read_recipe(name: str, corpus: str = "") -> Config:
    """The settings of a paper for a system, or for a baseline of its tables; with the name of a corpus,
    those that the paper has for it. `[recipe]` in it names the encoder."""
    overlay = read_overlay("papers", name)
    variants = overlay.pop("variants", {})
    if corpus and corpus not in variants:
        known = ", ".join(["paper", *(f"paper/{variant}" for variant in variants)])
        raise UserError(Errors.S104.format(option="recipe", value=f"paper/{corpus}", choices=known))
    return put_into(overlay, variants.get(corpus, {}))


def component_of(system: str) -> Dict[str, Any]:
    """The component block of a system."""
    return read_overlay("systems", system)["component"]


def is_ours(component: Dict[str, Any]) -> bool:
    """Whether the model of a component block is a head of this package, not an encoder of it."""
    name = str(component.get("model", {}).get("@architectures", ""))
    return name.startswith(OURS) and hasattr(registry.architectures.get(name), "module")


def head_class(component: Dict[str, Any]) -> Any:
    """The module of the head of a component block of ours."""
    return registry.architectures.get(component["model"]["@architectures"]).module


def factory_defaults(factory: str) -> Tuple[Dict[str, Any], Dict[str, Optional[float]]]:
    """The default config and the default score weights of a registered factory."""
    if not Language.has_factory(factory):
        Language()  # spaCy loads factories when the first pipeline is made
    meta = Language.get_factory_meta(factory)
    return dict(meta.default_config or {}), dict(meta.default_score_weights or {})


def join_config(
    system: str,
    encoder: str,
    *,
    lang: str = "en",
    output: Optional[str] = None,
    spans_key: str = "sc",
    max_width: Optional[int] = None,
    levels: int = 1,
    transformer: Optional[str] = None,
    mixed_precision: bool = False,
    optimize: str = "efficiency",
    vectors: Optional[str] = None,
    fit: bool = True,
    paper: Optional[Config] = None,
    words: Optional[int] = None,
) -> Config:
    """The overlays put together, as short as they are.

    system: A system of ours, or "ner" or "spancat".
    encoder: "hash", "vectors", "lstm", "huggingface", "transformer" (spacy-transformers), or a
        variant with word vectors tuned in training and no context.
    output: "spans", "ents" or "both"; the default of the system without it.
    max_width: Widest span, where the system has such a limit.
    levels: Of nested entities, for taggers, where the output has such.
    transformer: Name or folder of the pretrained model.
    mixed_precision: Half precision inside the transformer (GPU only); bf16 with "huggingface".
    optimize: "accuracy" takes the larger form of an encoder that has one (lstm), which is slower.
    vectors: Pipeline with static vectors; an encoder may have fewer parts beside them.
    fit: Fit threshold and temperature whenever the pipeline is saved in training.
    paper: Of `read_recipe`, with the encoder that it names.
    words: Of the training corpus; a system may want smaller batches for a small one, an encoder
        other parts.
    """
    config = Config(section_order=CONFIG_SECTION_ORDER).merge(read_overlay("base"))
    config = config.merge(read_overlay("encoders", encoder))
    static = config.pop("with_vectors", {})
    few_words = (words or 0) <= static.pop("most_words", 0)
    larger = config.pop("accuracy", {})
    for changes, wanted in [(larger, optimize == "accuracy"), (static, vectors and few_words)]:
        if wanted and changes:
            put_into(config["components"]["tok2vec"]["model"], changes)
    small_corpus = config.pop("small_corpus", {})
    if (words or MANY_WORDS) <= small_corpus.pop("most_words", 0):
        put_into(config, small_corpus)
    if not fit:
        del config["training"]["before_to_disk"]
    config["paths"]["vectors"] = vectors
    overlay = read_overlay("systems", system)
    component = overlay.pop("component")
    overlay.pop("defaults", None)  # of the factory
    small_encoder = overlay.pop("small_encoder", {})
    config = config.merge(overlay)
    if "pointer" in config:  # small encoders have this block
        set_recipe(config["training"], words, **small_encoder)
    model, (settings, _) = component["model"], factory_defaults(component["factory"])
    options = option_names(model)
    # What an encoder says of heads, as a system of encoders, is for those that have all of these options.
    for block in (config.pop("head", {}), config.pop("pointer", {}), config.pop("words", {})):
        model.update(block if block.keys() <= options else {})
    content = config.pop("content", {})
    if is_ours(component):
        put_into(model, head_class(component).place(content))
        if levels > 1 and output in ("spans", "both"):
            put_into(model, head_class(component).place({"levels": levels}))
    put_into(model, config.pop("systems", {}).get(system, {}))
    paper = Config({} if paper is None else paper)
    put_into(component, paper.pop("component", {}))
    put_into(config, paper)
    for name, value in {"spans_key": spans_key, "output": output}.items():
        if name in settings and value is not None:
            component[name] = value
    if output == "both" and "overlaps" in settings:
        # Gold entities beside nested spans are the outermost of them (`spacy spanner convert`).
        component.setdefault("overlaps", "outermost")
    model["tok2vec"] = config.pop("tok2vec")
    if max_width is not None:
        set_width(component, max_width)
    config["components"][system] = component
    config["nlp"]["lang"] = lang
    config["nlp"]["pipeline"] = list(config["components"])
    config["training"]["score_weights"] = score_weights(component["factory"], output, spans_key)
    set_transformer(config["components"], transformer, mixed_precision=mixed_precision)
    return config


def option_names(model: Dict[str, Any]) -> Set[str]:
    """The options of the architecture of a model block."""
    if "@architectures" not in model:
        return set()
    return set(signature(registry.architectures.get(model["@architectures"])).parameters)


def set_recipe(
    training: Dict[str, Any],
    words: Optional[int],
    *,
    initial_rate: Optional[float] = None,
    batches_per_epoch: Optional[int] = None,
) -> None:
    """What a system says of its training over a small encoder.

    batches_per_epoch: Fewest batches, in hundreds of words, that a corpus is to be cut into."""
    if initial_rate is not None:
        training["optimizer"]["learn_rate"]["initial_rate"] = initial_rate
    if batches_per_epoch is not None and words is not None:
        batcher = training["batcher"]
        hundreds = max(round(words / batches_per_epoch / 100), 1)
        batcher["size"] = min(batcher["size"], 100 * hundreds)


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
    """Bound the width of spans where a component has such a limit."""
    if "suggester" in component:
        component["suggester"]["max_size"] = max_width
    elif is_ours(component):
        put_into(component["model"], head_class(component).bound_width(max_width))


def width_limit(component: Dict[str, Any]) -> Optional[int]:
    """The widest span that a component can find; None for no limit."""
    if "suggester" in component:
        return component["suggester"].get("max_size")
    if not is_ours(component):
        return None
    block = {**component["model"], "tok2vec": None}
    return registry.resolve({"model": block})["model"].attrs["max_width"]


def own_output(factory: str) -> Tuple[str, bool]:
    """Where a factory's component learns from if nothing else is said, "spans", "ents" or "both", and
    whether its setting `output` can change that."""
    settings, weights = factory_defaults(factory)
    best = next(name for name, weight in weights.items() if weight)
    written = "ents" if best.startswith("ents_") else "spans"
    return settings.get("output") or written, "output" in settings


def learns_relations(settings: Dict[str, Any]) -> bool:
    """Whether these are settings of a component of relations."""
    return "relation_threshold" in settings


def score_weights(
    factory: str, output: Optional[str], spans_key: str
) -> Dict[str, Optional[float]]:
    """Weights of the scores that this factory's component fills, and of no others."""
    weights, (own, can_change) = factory_defaults(factory)[1], own_output(factory)
    best = next(name for name, weight in weights.items() if weight)
    output = output if output is not None and can_change else own
    prefix = "ents" if output == "ents" else f"spans_{spans_key}"
    if not best.startswith(("ents_", "spans_")):  # entities are shown beside, without weight
        kind = best.removesuffix("_f")
        return {f"{kind}_f": 1.0, f"{kind}_p": 0.0, f"{kind}_r": 0.0, f"{prefix}_f": 0.0}
    # spaCy adds the default weights of the factory; null takes away those that are not filled.
    defaults = [f"{name}_{part}" for name in ("ents", "spans_sc") for part in ("f", "p", "r")]
    unfilled = dict.fromkeys([*defaults, "ents_per_type", "spans_sc_per_type"])
    return {**unfilled, f"{prefix}_f": 1.0, f"{prefix}_p": 0.0, f"{prefix}_r": 0.0}


def complete(config: Config) -> Config:
    """The config with every default filled in, as `spacy init fill-config` would do."""
    filled = load_model_from_config(config, auto_fill=True, validate=True).config
    return Config(filled, section_order=CONFIG_SECTION_ORDER)


def check_overrides(config: Config, overrides: Iterable[str]) -> None:
    """Refuse settings on the command line that the config cannot have: spaCy passes over a mistyped
    name in [training] or [nlp]. Sections may lack what spaCy fills in by default."""
    for override in overrides:
        section, *rest = override.split(".")
        defaults = Language.default_config.get(section, {})
        known = [*config.get(section, {}), *defaults]
        name, kind = (rest or [""])[0], "setting"
        if section not in config and section not in Language.default_config:
            name, kind, known = section, "section", [*config]
        elif section == "components":
            kind, known = "component", [*config["components"]]
        elif section not in ("training", "nlp"):
            continue
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = (
                f"; did you mean '{close[0]}'?" if close else f": {', '.join(sorted(set(known)))}"
            )
            raise UserError(Errors.S108.format(override=override, kind=kind, name=name, hint=hint))
