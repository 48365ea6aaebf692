"""The README keeps its word: its Python runs, and its commands and pages are there."""

import contextlib
import io
import re
from pathlib import Path

from typer.testing import CliRunner

from spacy_spanner.cli import spanner

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def test_the_twenty_lines_run_and_find_the_nested_place():
    [code] = [block for block in blocks("python") if "import spacy" in block]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    lines = printed.getvalue().splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == [
        "Ada Lind PERSON",
        "University of Torvik ORG",
        "Torvik PLACE",
        "Norway PLACE",
    ]


def test_commands_and_their_options_exist():
    commands = re.findall(r"-m spacy spanner (\w+)(.*)", "\n".join(blocks("bash")))
    assert {name for name, _ in commands} >= {"convert", "check", "config", "render", "analyze"}
    for name, rest in commands:
        shown = CliRunner().invoke(spanner, [name, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        for option in re.findall(r"\s(--[a-z][\w-]*)", rest.split("#")[0]):
            assert option in shown.output, f"{name} has no {option}"


def test_linked_pages_exist():
    for link in re.findall(r"\]\(([\w/.]+)\)", README):
        assert (ROOT / link).exists(), link
