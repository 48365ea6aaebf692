"""Command lines as pages and files show them: parsed by spaCy's own app, without running them."""

import shlex

import typer
from spacy.cli._util import app

import spacy_spanner.cli  # noqa: F401


def parse(line):
    """The names of the command, such as ["spanner", "convert"]. Unknown commands and options, and too
    few or too many arguments are errors."""
    python, module, name, *rest = shlex.split(line)
    assert [python, module, name] == ["python", "-m", "spacy"], line
    command, names = typer.main.get_command(app), []
    while hasattr(command, "commands"):
        names.append(rest.pop(0))
        command = command.commands[names[-1]]
    check_arguments(command, rest)
    return names


def parse_script(line, main):
    """The same for a script of ours and its function."""
    script = typer.Typer(add_completion=False)
    script.command()(main)
    check_arguments(typer.main.get_command(script), shlex.split(line)[2:])


def check_arguments(command, words):
    context = command.context_class(command)
    for key, value in command.context_settings.items():
        setattr(context, key, value)
    values, extra, _ = command.make_parser(context).parse_args(list(words))
    assert not extra or context.allow_extra_args, extra
    for own in command.params:
        assert values.get(own.name) not in (None, ()) or not own.required, own.name
