"""Checks of a component that is loaded: a pipeline that was changed or damaged is refused here and
not in the middle of a prediction."""

from __future__ import annotations

from math import inf
from pathlib import Path
from sys import float_info
from typing import Any, Callable, Dict, Optional

import srsly
from thinc.api import Model

from ..batch import SIZES
from ..errors import Errors

MOST_BYTES = 16_000_000  # of stored settings; labels take most of it
SIZED = ("E", "W", "b", "G")  # weights of thinc's layers, whose axes are among their dimensions
CHANGING = ("dropout_rate", "static_width")  # numbers of a layer that the config does not decide

MOST_BIAS = 50.0  # of the log-odds; beyond, every score would be 0 or 1
# Settings of single labels, with the range of their values: the component's own data, which its config
# does not have.
BY_LABEL = {"label_thresholds": (0.0, 1.0), "label_bias": (-MOST_BIAS, MOST_BIAS)}


def is_count(value: Any, *, least: int = 0) -> bool:
    """Whether it is a whole number from `least` up."""
    return type(value) is int and least <= value < 1 << 62


def is_number(value: Any, *, least: float, most: float = inf) -> bool:
    """Whether it is a finite number in this range."""
    return type(value) in (int, float) and least <= value <= min(most, float_info.max)


def are_labels(value: Any) -> bool:
    """Whether it is a list of distinct labels."""
    is_list = isinstance(value, list) and all(isinstance(label, str) and label for label in value)
    return is_list and len(set(value)) == len(value)


# What is stored of a head beside its weights.
FACTS: Dict[str, Callable[[Any], bool]] = {
    "levels": lambda value: value is None or is_count(value, least=1),
    "needs_sentences": lambda value: isinstance(value, bool),
    "max_width": lambda value: value is None or is_count(value, least=1),
    "threshold": lambda value: is_number(value, least=0, most=1),
}


def stored_bytes(path: Path) -> Optional[bytes]:
    """The content of a stored file; None where there is none."""
    return path.read_bytes() if path.is_file() else None


def load_settings(
    name: str, cfg: Dict[str, Any], stored: Any, check: Callable[[Dict[str, Any]], None]
) -> None:
    """Put stored settings into `cfg`, if they pass; what is not stored keeps the value of the config, and
    those of single labels become empty.

    stored: JSON, or None."""
    if stored is None:
        return
    try:
        if len(stored) > MOST_BYTES:
            raise ValueError(f"they have more than {MOST_BYTES:,} bytes")
        settings = srsly.json_loads(stored)
        if not isinstance(settings, dict):
            raise ValueError("they are not an object")
    except (ValueError, TypeError) as err:
        raise ValueError(Errors.S124.format(name=name, reason=err)) from err
    empty: Dict[str, Any] = {key: {} for key in cfg if key.endswith(tuple(BY_LABEL))}
    merged = {**cfg, **empty, **settings}
    check(merged)
    cfg.update(merged)


def load_model(name: str, model: Model, stored: Optional[bytes]) -> None:
    """Load a stored model, and look at every number that prediction depends on."""
    before = [dict(node.attrs) for node in model.walk()]
    try:
        if stored is None:
            raise ValueError("there is none")
        model.from_bytes(stored)
        for node, attrs in zip(model.walk(), before, strict=True):
            check_node(node, attrs, is_built=bool(model.has_dim("nI")))
        check_facts(model, before[0])
        width = model.layers[0].maybe_get_dim("nO") if model.layers else None
        if model.has_dim("nI") and width not in (None, model.get_dim("nI")):
            raise ValueError(f"its token vectors have width {width}")
    except Exception as err:  # whatever a reader met that it did not expect
        if str(err).startswith("[S"):
            raise
        raise ValueError(Errors.S125.format(name=name, reason=err)) from err


def check_node(node: Model, before: Dict[str, Any], *, is_built: bool) -> None:
    """Refuse a layer whose weights are not there, not finite or of another size than it says, or
    with other settings than its config."""
    for attr, value in before.items():
        is_fixed = type(value) in (int, float) and attr not in (*CHANGING, *FACTS)
        if is_fixed and node.attrs[attr] != value:
            raise ValueError(f"{attr} of {node.name} is {node.attrs[attr]!r}, not {value!r}")
    for shim in node.shims:
        sizes = getattr(shim, "sizes", {})
        if hasattr(shim, "is_built") and shim.is_built != is_built:
            raise ValueError(f"the weights of {node.name} are there without its sizes, or missing")
        for size, dim in SIZES.items():
            dims = (dim, "nO") if size == "width" else (dim,)  # of a head, or of an encoder
            if size in sizes and sizes[size] not in [node.maybe_get_dim(name) for name in dims]:
                raise ValueError(f"{size} of {node.name} is {sizes[size]}, its layer has another")
    for param in node.param_names if is_built else ():
        array: Any = node.get_param(param)  # says so where there is none
        if array.dtype.kind != "f" or not node.ops.xp.isfinite(array).all():
            raise ValueError(f"{param} of {node.name} holds what is not a finite number")
        named = {node.maybe_get_dim(dim) for dim in node.dim_names}
        if param in SIZED and not named.issuperset(array.shape):
            raise ValueError(f"{param} of {node.name} has shape {array.shape}")


def check_facts(model: Model, before: Dict[str, Any]) -> None:
    """Refuse facts about a head that cannot be, and keep those that follow from its config."""
    for fact, fits in FACTS.items():
        if fact in before:
            if not fits(model.attrs[fact]):
                raise ValueError(f"{fact} = {model.attrs[fact]!r} is not possible")
            model.attrs[fact] = before[fact]


def check_label_dims(
    name: str, cfg: Dict[str, Any], model: Model, label_dims: Dict[str, str]
) -> None:
    """Refuse lists of labels that the model has another number of outputs for."""
    for labels, dim in label_dims.items():
        n_labels, n_out = len(cfg[labels]), model.maybe_get_dim(dim)
        if n_out not in (None, n_labels):
            reason = f"there are {n_labels} {labels}, but the model gives {n_out}"
            raise ValueError(Errors.S124.format(name=name, reason=reason))
