"""The reference of components and architectures, from the registered functions and doc-strings."""

from __future__ import annotations

import inspect
import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any, Dict, List, Optional

from .docstrings import split_options
from .pieces import code, config_value, plain, table

ROOT = Path(__file__).parent.parent.parent
SYSTEM_PAGES = ROOT / "docs"


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
    """A section for each registered architecture."""
    from spacy.util import registry

    names = entry_points("spacy_architectures")
    return "\n\n".join(
        architecture_section(name, registry.architectures.get(name)) for name in names
    )


def architecture_section(name: str, build: Any) -> str:
    """What an architecture is, and its options with defaults and meanings."""
    parameters = inspect.signature(build).parameters
    body, meanings = split_options(build.__doc__ or "", set(parameters))
    parts = [f"## {name}", body]
    page = page_of(name)
    if page is not None:
        parts.append(f"Explained in {link_to(page)}.")
    rows = []
    for own in parameters.values():
        repeated = own.kind is inspect.Parameter.VAR_POSITIONAL
        rows.append(
            [
                code("*" if repeated else own.name),
                code(short_type(own.annotation)),
                "" if own.default is own.empty else code(config_value(own.default)),
                plain(meanings.get(own.name, "")),
            ]
        )
    parts.append(table(["option", "type", "default", "meaning"], rows))
    return "\n\n".join(parts)


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
        rows.append(
            [
                code(name),
                code(architecture),
                code(config_value(config["output"])),
                link_to(page) if page else "",
            ]
        )
    return table(["factory", "architecture", "`output`", "page"], rows)


def settings_table() -> str:
    """Settings of the components, from the doc-strings of their classes."""
    from spacy_spanner.pipeline.component import SpanTablePipe
    from spacy_spanner.pipeline.relations import RelationPipe

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
    init = pipe.__init__  # type: ignore[misc]
    names = list(inspect.signature(init).parameters)
    _, meanings = split_options(init.__doc__ or "", names)
    rows = []
    for name in configs[0]:
        if name == "model":
            shown = ""
        elif name == "scorer":
            shown = code(configs[0][name]["@scorers"])
        else:
            values = dict.fromkeys(config_value(config[name]) for config in configs)
            shown = " or ".join(map(code, values))
        rows.append([code(name), shown, plain(meanings.get(name, ""))])
    return table(["setting", "default", "meaning"], rows)


def factory_configs() -> Dict[str, Dict[str, Any]]:
    """The default config of each factory."""
    import spacy
    from spacy.language import Language

    spacy.blank("en")  # loads the factories of all packages
    names = entry_points("spacy_factories")
    return {name: Language.get_factory_meta(name).default_config for name in names}
