"""Errors and warnings by code: the message from `spacy_spanner.errors`, and what to do."""

from __future__ import annotations

import re
from typing import Dict, Tuple

from .advice import ADVICE
from .pieces import plain

CODE = re.compile(r"SW?\d+")


def messages(holder: type) -> Dict[str, str]:
    """The messages of a class of messages by code, sorted."""
    return {code: text for code, text in sorted(vars(holder).items()) if CODE.fullmatch(code)}


def split_message(text: str) -> Tuple[str, str]:
    """The first sentence, which names the problem, and the rest, which says what to do."""
    problem, _, rest = text.partition(". ")
    return (f"{problem}.", rest) if rest else (text, "")


def placeholders(text: str) -> str:
    """A message whose placeholders are set as code."""
    parts = re.split(r"(`[^`]*`)", text)
    shown = []
    for part in parts:
        field = re.compile(r"'?\{(\w+)[^}]*\}'?")
        inside = part.startswith("`")
        replaced = field.sub(r"<\1>", part) if inside else field.sub(r"`<\1>`", part)
        shown.append(replaced.replace("{{", "{").replace("}}", "}"))  # as `str.format` does
    return plain("".join(shown))


def section(code: str, text: str) -> str:
    """One message under its code."""
    problem, rest = split_message(text)
    advice = " ".join(filter(None, (placeholders(rest), ADVICE.get(code, ""))))
    return f"### {code}\n\n{placeholders(problem)}\n\n**What to do.** {advice}"


def error_reference() -> str:
    """All errors."""
    from spacy_spanner.errors import Errors

    return "\n\n".join(section(*item) for item in messages(Errors).items())


def warning_reference() -> str:
    """All warnings."""
    from spacy_spanner.errors import Warnings

    return "\n\n".join(section(*item) for item in messages(Warnings).items())
