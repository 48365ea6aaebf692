"""The page to try a pipeline: a form, and the text with its nested entities. It has no scripts."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ..analysis.marks import PLAIN, MarkedDoc, RelationMark, mark_spans
from ..analysis.pages import documents_pages
from ..distributed.output import Row
from .batching import Limits, Result


def page(name: str, limits: Limits, text: str = "", result: Optional[Result] = None) -> str:
    """The form, and what was found in its text."""
    found = result or {}
    docs = [marked_text(text, found)] if "entities" in found else []
    pages = documents_pages(
        docs,
        title="Entities of a text",
        note=name,
        template="service.html",
        text=text,
        error=found.get("error"),
        max_characters=limits.characters,
    )
    return next(html for _, html in pages)


def marked_text(text: str, result: Result) -> MarkedDoc:
    """Entities that are in several sources are shown once."""
    spans = {(row["start"], row["end"], row["label"]): row["score"] for row in result["entities"]}
    return MarkedDoc(text, mark_spans(spans, None), "", False, mark_links(result))


def mark_links(result: Result) -> List[RelationMark]:
    def key(end: Row) -> Tuple[int, int, str]:
        return end["start"], end["end"], end["label"]

    return [
        RelationMark(key(row["head"]), key(row["tail"]), row["label"], PLAIN, row["score"])
        for row in result["relations"]
    ]
