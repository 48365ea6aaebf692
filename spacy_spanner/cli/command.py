"""Error handling of all commands: one message for what a user can correct, a traceback with `--debug`."""

from __future__ import annotations

import errno
import inspect
import re
from configparser import Error as ConfigSyntaxError
from functools import wraps
from typing import Any, Callable

import click
import typer
from thinc.api import ConfigValidationError
from wasabi import Printer

from ..errors import Errors, UserError

DEBUG = typer.Option(False, "--debug", help="Show the traceback of an error")
CORRECTABLE = (
    UserError,
    OSError,
    ImportError,  # a language or an extra that is not installed
    ValueError,
    ConfigSyntaxError,
    click.ClickException,  # spaCy's: typer has its own
)
CODE = re.compile(r"\[[A-Z]+\d+\] ")  # how messages of spaCy and ours begin, whatever the class
HINTS = {
    errno.ENOENT: "Check the name.",
    errno.EACCES: "Change its permissions, or choose another path.",
    errno.EPERM: "Change its permissions, or choose another path.",
    errno.EROFS: "Choose a place that can be written.",
    errno.ENOSPC: "Free some space, or choose another path.",
    errno.EDQUOT: "Free some space, or choose another path.",
    errno.EEXIST: "Choose another name.",
    errno.EISDIR: "Name a file.",
    errno.ENOTDIR: "Choose a place below a folder, not below a file.",
}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The command with an option `--debug`. Without it, errors that a user can cause end in a message
    and exit code 1; errors of the program keep their traceback."""

    @wraps(function)
    def run(*args: Any, debug: bool = False, **options: Any) -> None:
        try:
            function(*args, **options)
        except typer.BadParameter:  # typer shows it with the usage; in older versions it is click's
            raise
        except Exception as error:
            # Wrong arguments are left to typer, which shows the usage; in some versions they are click's.
            is_usage = isinstance(error, typer.BadParameter)
            if debug or is_usage or not is_correctable(error):
                raise
            show(error)
            raise typer.Exit(1) from error

    signature = inspect.signature(function)
    option = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=DEBUG)
    parameters = [*signature.parameters.values(), option]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {**function.__annotations__, "debug": bool}
    return run


def show(error: Exception) -> None:
    msg = Printer()
    msg.fail(message_of(error))
    if not isinstance(error, UserError):
        msg.text("Use --debug to see the traceback.")


def is_correctable(error: Exception) -> bool:
    return isinstance(error, CORRECTABLE) or CODE.match(str(error)) is not None


def message_of(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, ConfigValidationError):
        found = error.errors or []
        places = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in found]
        parts = [part for part in (error.title, error.desc, *places) if part]
        return " ".join("; ".join(parts).split())
    if isinstance(error, OSError) and error.errno is not None:
        path = error.filename if error.filename is not None else "The file"
        hint = HINTS.get(error.errno, "")
        return Errors.S100.format(path=path, reason=error.strerror, hint=hint).strip()
    return " ".join(str(error).split()) or type(error).__name__
