"""The settings of our component in a training config, as `spacy spanner check` needs them."""

from __future__ import annotations

from configparser import InterpolationError
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Dict

from spacy.util import load_config
from thinc.api import ConfigValidationError

from ..errors import Errors
from .record import CorpusError
from .stats import Settings

OURS = "spacy-spanner."  # how the names of our architectures begin


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
        model = block.get("model", {})
        if str(model.get("@architectures", "")).startswith(OURS):
            known = {field.name for field in fields(Settings)}
            found = {**model, **block}
            return replace(Settings(), **{k: found[k] for k in known if k in found})
    names = ", ".join(components) or "none"
    raise CorpusError(Errors.S026.format(path=path, names=names))
