"""Settings of components: keyword arguments of the constructor, then attributes that can be changed,
with the same checks."""

from __future__ import annotations

from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, Dict, List, Type, Union, get_args, get_origin, get_type_hints

from ..errors import Rule

KINDS: Dict[type, Any] = {
    float: (Real, "it must be a number"),
    int: (Integral, "it must be a whole number"),
    bool: (bool, "it must be true or false"),
    str: (str, "it must be a text"),
}


class Setting:
    """A setting as an attribute of its component, kept in `cfg`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, pipe: Any, owner: type) -> Any:
        return self if pipe is None else pipe.cfg[self.name]

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
        own, hints = signature(init).parameters.values(), get_type_hints(init)
        for parameter in own:
            if parameter.kind is Parameter.KEYWORD_ONLY:
                found.setdefault(
                    parameter.name, parameter.replace(annotation=hints[parameter.name])
                )
        if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own):
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
    """A number of numpy as one of Python, which can be stored."""
    return value.item() if hasattr(value, "item") else value
