"""The option tables of the documentation have every option of every architecture, and its default."""

import json
import re
from fractions import Fraction
from inspect import signature
from pathlib import Path

import pytest
from spacy.util import registry

from .models.test_builder import ARCHITECTURES

DOCS = Path(__file__).parent.parent / "docs"
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", flags=re.M)


def documented():
    """From an option to the defaults that tables give it."""
    found = {}
    for path in DOCS.glob("*.md"):
        for names, default in ROW.findall(path.read_text(encoding="utf8")):
            names = re.findall(r"`(\w+)`", names)
            values = default.split(", ")
            values = values if len(values) == len(names) else [default] * len(names)
            for name, value in zip(names, values, strict=True):
                found.setdefault(name, set()).add(value.strip().strip("`"))
    return found


def same(default, written):
    if re.fullmatch(r"\d+/\d+", written):
        return float(Fraction(written)) == default
    try:
        return json.loads(written) == default
    except ValueError:
        return False


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_tables_hold_every_option_and_its_default(name):
    tables = documented()
    make = registry.architectures.get(name)
    of_module = signature(make.module.__init__).parameters
    for option, parameter in signature(make).parameters.items():
        if option in of_module or option == "learn_rate_scale":
            written = tables.get(option, set())
            assert any(same(parameter.default, text) for text in written), (option, written)
