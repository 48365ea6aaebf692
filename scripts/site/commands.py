"""The reference of the commands, from the typer app itself."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, Callable, List, NamedTuple, Tuple, get_args, get_origin, get_type_hints

from .pieces import code, plain, table

WORDS = {str: "text", int: "number", float: "number"}


class Parameter(NamedTuple):
    """An argument or option of a command."""

    name: str
    hint: Any  # its type, without Optional and List
    many: bool
    info: Any  # what typer knows about it


def command_reference() -> str:
    """A section for each command of `spacy spanner`."""
    from spacy_spanner.cli import spanner

    commands = [(own.name, own.callback) for own in spanner.registered_commands]
    return "\n\n".join(command_section(name, call) for name, call in commands if name and call)


def command_section(name: str, call: Callable) -> str:
    """Description, usage, arguments and options of one command."""
    arguments, options = parameters(call)
    usage = " ".join(["python -m spacy spanner", name, "[OPTIONS]", *map(argument_name, arguments)])
    parts = [f"## {name}", plain(inspect.getdoc(call) or ""), f"```text\n{usage}\n```"]
    if arguments:
        rows = [[code(argument_name(own)), plain(own.info.help or "")] for own in arguments]
        parts.append(table(["argument", "meaning"], rows))
    head = ["option", "value", "default", "meaning"]
    parts.append(table(head, [option_row(own) for own in options]))
    return "\n\n".join(parts)


def parameters(call: Callable) -> Tuple[List[Parameter], List[Parameter]]:
    """The arguments and the options of a command, in their order."""
    from typer.models import ArgumentInfo, OptionInfo

    hints = get_type_hints(call)
    found: Tuple[List[Parameter], List[Parameter]] = ([], [])
    for own in inspect.signature(call).parameters.values():
        hint, many = hints[own.name], False
        while get_origin(hint) is not None:
            many = many or get_origin(hint) is list
            hint = get_args(hint)[0]
        for place, kind in zip(found, (ArgumentInfo, OptionInfo)):
            if isinstance(own.default, kind):
                place.append(Parameter(own.name, hint, many, own.default))
    return found


def argument_name(argument: Parameter) -> str:
    """An argument as a usage line shows it."""
    name = argument.name.upper() + ("..." if argument.many else "")
    return name if argument.info.default is ... else f"[{name}]"


def option_row(option: Parameter) -> List[str]:
    """Names, values, default and meaning of an option."""
    declared = option.info.param_decls or ["--" + option.name.replace("_", "-")]  # as typer does
    names = ", ".join(code(n) for own in declared for n in own.split("/"))
    meaning = plain(option.info.help or "")
    if option.hint is bool:
        return [names, "", "", meaning]
    if issubclass(option.hint, Enum):
        value = ", ".join(code(member.value) for member in option.hint)
    else:
        value = WORDS.get(option.hint, "path")
    if option.many:
        value += ", may be repeated"
    return [names, value, default_of(option), meaning]


def default_of(option: Parameter) -> str:
    """The default of an option, as it would be typed."""
    default = option.info.default
    if default is ...:
        return "required"
    if default is None or default == []:
        return ""
    values = default if isinstance(default, list) else [default]
    return ", ".join(code(getattr(own, "value", own)) for own in values)
