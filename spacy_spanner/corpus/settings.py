"""The settings of our component in a training config, as `spacy spanner check` needs them."""

from __future__ import annotations

from configparser import InterpolationError
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Dict

from spacy.util import load_config
from thinc.api import ConfigValidationError

from ..errors import Errors
from ..training_config import factory_defaults, is_ours, learns_relations, width_limit
from .record import CorpusError
from .stats import Settings


def settings_from_config(path: Path) -> Settings:
    """Settings of the first component, in the order of the pipeline, with a model of ours."""
    try:
        config = load_config(path, interpolate=True)
    except (ConfigValidationError, InterpolationError) as error:
        raise CorpusError(Errors.S029.format(path=path, reason=str(error).strip())) from error
    components: Dict[str, Dict[str, Any]] = config.get("components", {})
    order = config.get("nlp", {}).get("pipeline", [])
    for name in sorted(components, key=lambda n: order.index(n) if n in order else len(order)):
        block = components[name]
        try:
            if is_ours(block):
                return read_settings(block)
        except ValueError as error:  # also of spaCy's validation
            raise CorpusError(Errors.S029.format(path=path, reason=str(error).strip())) from error
    names = ", ".join(components) or "none"
    raise CorpusError(Errors.S026.format(path=path, names=names))


def read_settings(block: Dict[str, Any]) -> Settings:
    """The settings of a component block; the factory and the model are asked for what it omits."""
    defaults = factory_defaults(block["factory"])[0] if "factory" in block else {}
    found = {**defaults, **block}
    found["relations"] = learns_relations(found)
    if found.get("output") is None and found.get("entities") == "given":
        found["output"] = "ents"
    found["max_width"] = width_limit(block)
    known = {field.name: found.get(field.name) for field in fields(Settings)}
    return replace(Settings(), **{k: v for k, v in known.items() if v is not None})
