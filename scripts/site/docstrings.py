"""Doc-strings of the package: options are lines of `name: meaning`, results a line of `RETURNS:`.

As a griffe extension, this module rewrites them to the sections that mkdocstrings renders.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Collection, Dict, List, Tuple

OPTION = re.compile(r"(\w+(?:, \w+)*): +(\S.*)")
RETURNS = re.compile(r"RETURNS: +(\S.*)")


def split_options(text: str, names: Collection[str]) -> Tuple[str, Dict[str, str]]:
    """Split a doc-string into its text and the meaning of each option.

    names: Options to look for; other lines with a colon are text.
    RETURNS: The text without the options, and the meanings by name.
    """
    body: List[str] = []
    meanings: Dict[str, str] = {}
    current: List[str] = []
    for line in inspect.cleandoc(text).splitlines():
        match = OPTION.fullmatch(line)
        if match and all(name in names for name in match[1].split(", ")):
            current = match[1].split(", ")
            meanings.update(dict.fromkeys(current, match[2].strip()))
        elif current and line.startswith(" "):
            for name in current:
                meanings[name] += " " + line.strip()
        else:
            current = []
            body.append(line)
    return "\n".join(body).strip(), meanings


def google_style(text: str, names: Collection[str], title: str = "Args") -> str:
    """Rewrite a doc-string in the style that mkdocstrings is configured for."""
    body, meanings = split_options(text, names)
    body = RETURNS.sub(lambda match: f"Returns:\n    {match[1]}", body)
    if not meanings:
        return body
    options = "\n".join(f"    {name}: {meaning}" for name, meaning in meanings.items())
    before, found, after = body.partition("Returns:\n")
    return f"{before.rstrip()}\n\n{title}:\n{options}\n\n{found}{after}".strip()


try:
    import griffe
except ImportError:  # only the site needs it
    pass
else:

    class HouseStyle(griffe.Extension):
        """Rewrites the doc-strings of all objects that griffe reads."""

        def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
            """Rewrite the doc-string of a function or method."""
            if func.docstring:
                names = {parameter.name.strip("*") for parameter in func.parameters}
                func.docstring.value = google_style(func.docstring.value, names)

        def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
            """Rewrite the doc-string of a class, which documents `__init__` or the attributes."""
            if not cls.docstring:
                return
            names = {parameter.name for parameter in cls.parameters}
            own = "__init__" in cls.members
            title = "Args" if own else "Attributes"
            cls.docstring.value = google_style(
                cls.docstring.value, names if own else set(cls.members), title
            )
