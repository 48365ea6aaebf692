"""Hooks of MkDocs: parts of pages that are made from the code.

`<!-- generated: name -->` on a page is replaced by what the function of that name gives.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Callable, Dict

from scripts.site.commands import command_reference
from scripts.site.messages import error_reference, warning_reference
from scripts.site.reference import architecture_reference, factory_table, settings_table

MARK = re.compile(r"<!-- generated: (\w+) -->")
ROOT = Path(__file__).parent.parent.parent


def changelog() -> str:
    """The changelog, which stands outside the folder of the pages."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf8")


GENERATORS: Dict[str, Callable[[], str]] = {
    "architectures": architecture_reference,
    "changelog": changelog,
    "commands": command_reference,
    "errors": error_reference,
    "factories": factory_table,
    "settings": settings_table,
    "warnings": warning_reference,
}


@cache
def generated(name: str) -> str:
    """The Markdown of one generated part."""
    return GENERATORS[name]()


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Fill in the generated parts of a page."""
    return MARK.sub(lambda match: generated(match[1]), markdown)
