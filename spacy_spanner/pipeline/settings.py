"""Settings of components: keyword arguments of the constructor, then attributes that can be changed,
with the same checks."""

from __future__ import annotations

from inspect import Parameter, signature
from numbers import Integral, Real
from types import MappingProxyType
from typing import (
    Any,
    Dict,
    List,
    Mapping,
    Type,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ..errors import Rule
from .loading import BY_LABEL, MOST_BIAS, are_labels, is_count, is_number
from .seen import is_record

OUTPUTS = ("spans", "ents", "both")
PROBABILITY = "it must be a probability from 0 to 1"
AT_LEAST_1 = "it must be at least 1, or null"
BIAS = f"it must be a number from {-MOST_BIAS:g} to {MOST_BIAS:g}"
LABELS = "it must be a list of distinct texts, none of them empty"
KINDS: Dict[type, Any] = {
    float: (Real, "it must be a number"),
    int: (Integral, "it must be a whole number"),
    bool: (bool, "it must be true or false"),
    str: (str, "it must be a text"),
}


class Setting:
    """A setting as an attribute of its component, kept in `cfg`. One of single labels is set as a whole,
    so that it is checked: its dict cannot be changed in place."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, pipe: Any, owner: type) -> Any:
        if pipe is None:
            return self
        value = pipe.cfg[self.name]
        return MappingProxyType(value) if isinstance(value, dict) else value

    def __set__(self, pipe: Any, value: Any) -> None:
        pipe.configure(**{self.name: value})


def settings_of(pipe: Type) -> Dict[str, Parameter]:
    """The settings of a component with their types and defaults: the keyword arguments of its
    constructor and of those that it hands the rest to."""
    found: Dict[str, Parameter] = {}
    for cls in pipe.__mro__:
        init = vars(cls).get("__init__")
        if init is None:
            continue
        parameters, hints = signature(init).parameters.values(), get_type_hints(init)
        for parameter in parameters:
            if parameter.kind is Parameter.KEYWORD_ONLY:
                found.setdefault(
                    parameter.name, parameter.replace(annotation=hints[parameter.name])
                )
        if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
            break
    return found


def type_rules(pipe: Type, values: Dict[str, Any]) -> List[Rule]:
    """That each of these values has the type of its setting."""
    rules: List[Rule] = []
    for name, parameter in settings_of(pipe).items():
        hint = parameter.annotation
        kind, *others = get_args(hint) if get_origin(hint) is Union else (hint,)
        if name in values and kind in KINDS:
            number, reason = KINDS[kind]
            value = values[name]
            is_kind = isinstance(value, number) and isinstance(value, bool) == (kind is bool)
            rules.append((name, is_kind or (value is None and bool(others)), reason))
    return rules


def plain(value: Any) -> Any:
    """A number of numpy as one of Python, which can be stored; also those of single labels."""
    if isinstance(value, Mapping):
        return {key: plain(own) for key, own in value.items()}
    return value.item() if hasattr(value, "item") else value


def shared_rules(cfg: Dict[str, Any]) -> List[Rule]:
    """Rules of the settings that all components have."""
    factor = cfg["width_factor"]
    return [
        ("labels", are_labels(cfg["labels"]), LABELS),
        ("window", is_count(cfg["window"], least=1), "a row needs at least one token"),
        ("overlap", 0 <= cfg["overlap"] < cfg["window"], "it must be from 0 to less than `window`"),
        ("join_training", 0 <= cfg["join_training"] <= 1, "it is a share from 0 to 1"),
        ("width_factor", factor is None or is_number(factor, least=1), AT_LEAST_1),
        ("max_cells", is_count(cfg["max_cells"], least=1), "it must be positive"),
        ("spans_key", cfg["spans_key"] != cfg["ents_key"], "it must differ from `ents_key`"),
        ("threshold", is_number(cfg["threshold"], least=0, most=1), PROBABILITY),
        ("temperature", is_number(cfg["temperature"], least=1e-9), "it must be positive"),
        ("bias", is_number(cfg["bias"], least=-MOST_BIAS, most=MOST_BIAS), BIAS),
        *label_rules(cfg),
        ("seen", is_record(cfg["seen"]), "it must be what training stored there"),
    ]


def label_rules(cfg: Dict[str, Any], prefix: str = "") -> List[Rule]:
    """Rules of the settings of single labels.

    prefix: Of the settings and labels, "relation_" for those of relations."""
    labels = f"{prefix}labels"
    return [
        (
            prefix + name,
            is_by_label(cfg[prefix + name], cfg[labels], least, most),
            f"it must be a dict whose keys are among the `{labels}` of the component "
            f"and whose values are numbers from {least:g} to {most:g}",
        )
        for name, (least, most) in BY_LABEL.items()
    ]


def is_by_label(values: Any, labels: Any, least: float, most: float) -> bool:
    """Whether it is a dict from some of the labels to numbers of this range."""
    return isinstance(values, dict) and all(
        label in labels and is_number(value, least=least, most=most)
        for label, value in values.items()
    )
