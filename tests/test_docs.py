"""The pages of the site: navigation, links, line lengths, and options as the code has them."""

import inspect
import json
import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.util import registry
from typer.testing import CliRunner

from spacy_spanner.cli import spanner
from spacy_spanner.training_config import factory_defaults

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CONFIG = srsly.read_yaml(ROOT / "mkdocs.yml")
LONG_LINES = {"benchmarks.md"}  # written by the benchmark


def in_navigation():
    return [page for section in CONFIG["nav"] for pages in section.values() for page in pages]


def text_of(path):
    return path.read_text(encoding="utf8")


def without_code(text):
    return re.sub(r"```.*?```", "", text, flags=re.S)


def slug(title):
    """The anchor of a heading, as the `toc` extension makes it."""
    plain = re.sub(r"[^\w\s-]", "", title).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def test_every_page_of_the_navigation_exists_and_no_page_is_left_out():
    assert set(in_navigation()) == {path.relative_to(DOCS).as_posix() for path in PAGES}
    assert len(in_navigation()) == len(set(in_navigation()))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_internal_links_resolve(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(path))):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        page = path.parent / target if target else path
        assert page.exists(), link
        text = text_of(page) if page.suffix == ".md" else ""
        if anchor and "<!-- generated" not in text:  # MkDocs checks those of generated parts
            titles = re.findall(r"^#+ (.*)$", without_code(text), flags=re.M)
            assert anchor in {slug(title) for title in titles}, link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_lines_are_short(path):
    if path.name not in LONG_LINES:
        lines = text_of(path).splitlines()  # a row of a table cannot be wrapped
        assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


def test_nothing_is_fetched_from_elsewhere():
    assert CONFIG["theme"]["font"] is False
    assert "extra_javascript" not in CONFIG


def test_commands_on_the_pages_have_the_options_shown():
    shown = {}
    for path in PAGES:
        blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text_of(path), flags=re.S))
        for name, rest in re.findall(r"-m spacy spanner ([a-z]+)(.*)", blocks.replace("\\\n", " ")):
            if name not in shown:
                result = CliRunner().invoke(spanner, [name, "--help"], env={"COLUMNS": "200"})
                shown[name] = result.output
            for option in re.findall(r"\s(--?[a-z][\w-]*)(?=\s|$)", rest.split("#")[0]):
                assert f"{option} " in shown[name] or f"{option}," in shown[name], (
                    path.name,
                    option,
                )
    assert set(shown) == {command.name for command in spanner.registered_commands}


def test_folders_that_spacy_does_not_make_are_made_before():
    """`spacy package` fails where its output folder does not exist."""
    for path in [*PAGES, ROOT / "README.md"]:
        for block in re.findall(r"```bash\n(.*?)```", text_of(path), flags=re.S):
            for before, folder in re.findall(r"(.*)-m spacy package \S+ (\S+)", block, flags=re.S):
                assert f"mkdir -p {folder}\n" in before, path.name


# Tables of options

SYSTEMS = {
    "global_pointer.md": [["GlobalPointer", "EfficientGlobalPointer"]],
    "locate_and_label.md": [["LocateAndLabel"]],
    "bundling.md": [["SeqNER"], ["SpanNER"], ["BundledNER"]],
    "modularized_interaction.md": [["ModularizedInteraction"]],
    "hierarchical_ner.md": [["HierarchicalNER"]],
    "baselines.md": [["HSCRF"], ["BiLSTMPointer"]],
    # The first table is that of the component.
    "relations.md": [None, ["RelationPointer"], ["RelationClassifier"]],
    "encoders.md": [
        ["HuggingFaceEncoder"],
        ["LSTMEncoder"],
        ["HashVectors"],
        ["TunedVectors"],
        ["CharBiLSTM", "CharCNN", "IntNet"],
        ["TagEmbed"],
        ["JoinedEncoder"],
    ],
}


def tables(text):
    """Every table whose first column is `option`, as rows of cells; the first row is its head."""
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        rows = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
            for line in block.splitlines()
        ]
        if rows[0][0] == "option" and rows[0][1] != "meaning":
            yield [rows[0], *rows[2:]]


def value_of(cell):
    """A default as Python value; JSON or a fraction, with or without inline code."""
    text = cell.strip("`")
    return float(Fraction(text)) if re.fullmatch(r"\d+/\d+", text) else json.loads(text)


def options_of(rows, column):
    """Options with defaults from one column of a table; rows may name several options."""
    found = {}
    for row in rows[1:]:
        names = re.findall(r"`([^`]+)`", row[0])
        cell = row[column]
        if cell:
            parts = (
                cell.split(", ")
                if len(names) > 1 and cell.count(", ") == len(names) - 1
                else [cell] * len(names)
            )
            found.update({name: value_of(part) for name, part in zip(names, parts)})
    return found


def defaults_of(name):
    """Options of a registered architecture with defaults, without encoders below it."""
    build = registry.architectures.get(f"spacy-spanner.{name}.v1")
    signature = inspect.signature(build)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_POSITIONAL]
    hidden = {"tok2vec", *getattr(build, "removed", {})}  # options of earlier versions
    given = [one for one in own if one.default is not one.empty]
    return {one.name: one.default for one in given if one.name not in hidden}


@pytest.mark.parametrize("page", SYSTEMS)
def test_option_tables_agree_with_the_code(page):
    found = list(tables(text_of(DOCS / page)))
    assert len(found) == len(SYSTEMS[page])
    for rows, names in zip(found, SYSTEMS[page]):
        if names is None:
            continue
        wanted = {name: defaults_of(name) for name in names}
        if len(rows[0]) > 3:  # one column of defaults for each architecture
            for column, name in enumerate(names, start=1):
                assert rows[0][column] == name
                assert options_of(rows, column) == wanted[name]
        else:
            joined = {key: value for own in wanted.values() for key, value in own.items()}
            assert options_of(rows, 1) == joined


# Parts made from the code


@pytest.fixture(scope="module")
def generators():
    sys.path.insert(0, str(ROOT))
    try:
        from scripts.site import hooks

        yield hooks.GENERATORS
    finally:
        sys.path.remove(str(ROOT))


def test_every_generated_part_is_known_and_not_empty(generators):
    marks = [
        name for path in PAGES for name in re.findall(r"<!-- generated: (\w+) -->", text_of(path))
    ]
    assert sorted(marks) == sorted(generators)
    for name, make in generators.items():
        assert make().strip(), name


def test_every_setting_has_a_meaning(generators):
    spacy.blank("en")  # loads the entry points of factories
    settings = set(factory_defaults("global_pointer")[0]) - {"model", "scorer"}
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", generators["settings"](), flags=re.M)
    assert {name for name, _ in rows} >= settings
    assert [name for name, meaning in rows if not meaning.strip()] == []


def test_every_option_of_an_architecture_has_a_meaning(generators):
    text = generators["architectures"]()
    rows = re.findall(r"^\| `(\w+)` \| .* \| .* \| (.*) \|$", text, flags=re.M)
    assert len(rows) > 100
    assert [name for name, meaning in rows if not meaning.strip()] == []
    assert not re.search(r"^ +\w+: ", text, flags=re.M)  # options are in the tables alone


def test_every_message_says_what_to_do(generators):
    from scripts.site.advice import ADVICE
    from scripts.site.messages import messages, split_message
    from spacy_spanner.errors import Errors, Warnings

    known = {**messages(Errors), **messages(Warnings)}
    assert set(ADVICE) <= set(known)
    for code, text in known.items():
        assert split_message(text)[1] or ADVICE.get(code), code


def test_every_command_and_option_is_in_the_reference(generators):
    sections = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", generators["commands"](), flags=re.M | re.S)
    )
    assert list(sections) == [command.name for command in spanner.registered_commands]
    for name, section in sections.items():
        shown = CliRunner().invoke(spanner, [name, "--help"], env={"COLUMNS": "200"}).output
        options = re.findall(r"^  (?:.*?)(--[a-z][\w-]*)", shown.split("Options:")[1], flags=re.M)
        assert options[-1] == "--help"
        assert all(f"`{option}`" in section for option in options[:-1])
