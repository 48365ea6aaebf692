"""Tag sequences to spans: IOB1, IOB2, BIOES and BILOU read by one rule, that of conlleval."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from .record import Place, RawSpan, checked_label

BEGINS = frozenset("BSU")  # always open a span
ENDS = frozenset("ESLU")  # always close a span
PREFIXES = frozenset("BIESLU")


def split_tag(tag: str) -> Optional[Tuple[str, str]]:
    """Prefix and label, `("O", "")` outside, None where the tag is of no known scheme."""
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    if prefix in PREFIXES and dash and label:
        return prefix, label
    return None


def checked_tag(place: Place, tag: str) -> str:
    split = split_tag(tag)
    if split is None:
        place.fail(
            f"tag {tag!r} is of no known scheme: expected O or one of B- I- E- S- L- U- and a label; "
            "is this the column or field of the tags?"
        )
    if split[0] != "O":
        checked_label(place, split[1], f"tag {tag!r}")
    return tag


def tags_to_spans(tags: Sequence[str]) -> List[RawSpan]:
    """Spans of a sequence of valid tags.

    Ill-formed sequences are read as conlleval reads them: a span opens at B (S, U), and at any
    other tag which does not continue the span before it, that is after O, after another label or
    after a closing tag. This rule gives the intended spans under IOB1 as well as IOB2, so the
    scheme need not be known.
    """
    spans: List[RawSpan] = []
    start, open_label = 0, ""
    for i, tag in enumerate([*tags, "O"]):
        split = split_tag(tag)
        if split is None:
            raise ValueError(tag)
        prefix, label = split
        if open_label and (prefix in BEGINS or label != open_label):
            spans.append((start, i, open_label))
            open_label = ""
        if label and not open_label:
            start, open_label = i, label
        if prefix in ENDS:
            spans.append((start, i + 1, open_label))
            open_label = ""
    return spans
