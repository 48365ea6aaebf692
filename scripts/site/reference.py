"""The reference of components and architectures, from the registered functions and doc-strings."""

from __future__ import annotations

import inspect
import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, get_type_hints

from .docstrings import split_options
from .pieces import code, config_value, plain, table

ROOT = Path(__file__).parent.parent.parent
SYSTEM_PAGES = ROOT / "docs"
# Options that many doc-strings take for granted.
COMMON = {
    "tok2vec": "Encoder; null only where this is a part of another architecture.",
    "learn_rate_scale": "Factor on the learning rate of this block alone.",
}
HEAD = ["option", "type", "default", "meaning"]


def entry_points(group: str) -> List[str]:
    """The names that the package registers in a group of entry points."""
    parser = ConfigParser(delimiters=["="])
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(ROOT / "setup.cfg", encoding="utf8")
    lines = parser["options.entry_points"][group].strip().splitlines()
    return [line.split("=")[0].strip() for line in lines]


def page_of(name: str) -> Optional[Path]:
    """The page that introduces a registered name in its first lines."""
    for path in sorted(SYSTEM_PAGES.glob("*.md")):
        head = path.read_text(encoding="utf8").splitlines()[:20]
        if any(code(name) in line for line in head):
            return path
    return None


def link_to(path: Path) -> str:
    """A link from a page of the reference to another page."""
    title = path.read_text(encoding="utf8").splitlines()[0].removeprefix("# ")
    return f"[{title}](../{path.name})"


def architecture_reference() -> str:
    """A section for each registered architecture: those of systems, then those of encoders."""
    from spacy.util import registry

    sections: Dict[str, List[str]] = {"Systems": [], "Encoders": []}
    for name in entry_points("spacy_architectures"):
        build = registry.architectures.get(name)
        kind = "Encoders" if ".encoders." in build.__module__ else "Systems"
        sections[kind].append(architecture_section(name, build))
    return "\n\n".join(f"## {kind}\n\n" + "\n\n".join(own) for kind, own in sections.items())


def architecture_section(name: str, build: Any) -> str:
    """What an architecture is, and its options with defaults and meanings."""
    parameters = inspect.signature(build).parameters
    module = getattr(build, "module", None)  # of which an architecture may fix some options
    options = {*parameters, *(inspect.signature(module).parameters if module else ())}
    body, meanings = split_options(build.__doc__ or "", options)
    body = re.sub(r", and$", ".", body)  # before a list of options
    page = page_of(name)
    if page is not None:
        meanings = {**page_meanings(page, name.split(".")[1]), **meanings}
        body += f"\n\nExplained in {link_to(page)}."
    hints = resolved_hints(build)
    rows = []
    for own in (p for p in parameters.values() if p.name not in getattr(build, "removed", ())):
        repeated = own.kind is inspect.Parameter.VAR_POSITIONAL
        rows.append(
            [
                code("*" if repeated else own.name),
                code(short_type(hints.get(own.name, own.annotation))),
                "" if own.default is own.empty else code(config_value(own.default)),
                meaning_in_config(meanings.get(own.name, COMMON.get(own.name, ""))),
            ]
        )
    title = name.split(".")[1]
    block = f'```ini\n@architectures = "{name}"\n```'
    return "\n\n".join([f"### {title}", block, body, table(HEAD, rows)])


def page_meanings(page: Path, title: str) -> Dict[str, str]:
    """Meanings from the option tables of a page, for doc-strings that are silent: those under the
    heading of the architecture, and otherwise those on which all tables of the page agree."""
    text = page.read_text(encoding="utf8")
    own_section = re.search(rf"^#+ {title}$(.*?)(?=^#)", text, flags=re.M | re.S)
    own = table_meanings(own_section[1]) if own_section else {}
    return {**table_meanings(text), **own}


def table_meanings(text: str) -> Dict[str, str]:
    """Meanings from option tables, where they agree."""
    found: Dict[str, Set[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("| `") and len(cells) > 2:
            for name in re.findall(r"`(\w+)`", cells[0]):
                found.setdefault(name, set()).add(cells[-1])
    return {name: own.pop() for name, own in found.items() if len(own) == 1}


def meaning_in_config(text: str) -> str:
    """A meaning in terms of config files, in which None is null."""
    without_links = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return plain(re.sub(r"\bNone\b", "null", without_links))


def resolved_hints(build: Any) -> Dict[str, Any]:
    """The types of a function without aliases, as far as they can be resolved."""
    try:
        return get_type_hints(build)
    except NameError:  # a name that only type checkers import
        return {}


def short_type(annotation: Any) -> str:
    """An annotation without module names; models of token vectors by one word."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)
    text = re.sub(r"Model\[List\[Doc\], List\[Floats2d\]\]", "tok2vec", text)
    text = re.sub(r"Optional\[(.*)\]", r"\1 or null", text)
    return re.sub(r"Literal\[(.*)\]", lambda match: match[1].replace("'", '"'), text)


def factory_table() -> str:
    """The factories: architecture, page, and the settings in which they differ."""
    rows = []
    for name, config in factory_configs().items():
        architecture = config["model"]["@architectures"]
        page = page_of(architecture)
        title = code(architecture)
        shown = f"[{title}](../{page.name})" if page else title
        rows.append([code(name), shown, code(config_value(config["output"]))])
    return table(["factory", "architecture", "default `output`"], rows)


def settings_table() -> str:
    """Settings of the components, from the doc-strings of their classes."""
    from spacy_spanner.pipeline.component import SpanTablePipe
    from spacy_spanner.relations.component import RelationPipe

    configs = factory_configs()
    entities = [own for own in configs.values() if "entities" not in own]
    relations = [own for own in configs.values() if "entities" in own]
    return "\n\n".join(
        [
            "## Settings of entity components",
            component_settings(SpanTablePipe, entities),
            "## Settings of the relation component",
            component_settings(RelationPipe, relations),
        ]
    )


def component_settings(pipe: type, configs: List[Dict[str, Any]]) -> str:
    """The settings of one class; all defaults where its factories differ."""
    from spacy_spanner.pipeline.settings import settings_of

    names, meanings = {"model", *settings_of(pipe)}, {}  # type: Set[str], Dict[str, str]
    for cls in reversed(pipe.__mro__):  # those of a subclass last
        _, own = split_options(getattr(vars(cls).get("__init__"), "__doc__", "") or "", names)
        meanings.update(own)
    rows = []
    for name in configs[0]:
        if name == "model":
            shown = ""
        elif name == "scorer":
            shown = code(configs[0][name]["@scorers"])
        else:
            values = dict.fromkeys(config_value(config[name]) for config in configs)
            shown = " or ".join(map(code, values))
        rows.append([code(name), shown, meaning_in_config(meanings.get(name, ""))])
    return table(["setting", "default", "meaning"], rows)


def factory_configs() -> Dict[str, Dict[str, Any]]:
    """The default config of each factory."""
    import spacy
    from spacy.language import Language

    spacy.blank("en")  # loads the factories of all packages
    names = entry_points("spacy_factories")
    return {name: Language.get_factory_meta(name).default_config or {} for name in names}
