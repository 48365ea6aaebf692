"""Words in one line, from left to right, with the places of the entities among them.

A page without scripts cannot measure text, so widths are estimated.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Dict, List, NamedTuple, Sequence, Tuple

from .drawing import BIDI, direction
from .marks import SpanMark, caption

WORD_SIZE, LABEL_SIZE = 16, 11  # of letters, in pixels
BLANK, PADDING = 6, 8  # pixels between words, and around the label of an entity
NARROW, BROAD = set("fijlrtI.,;:'|!()[]- "), set("mwMW@%—…")
LEFT_OUT = "…"  # the text continues
Extent = Tuple[float, float]  # left end and width


class WordLine(NamedTuple):
    """Words at their places."""

    words: List[str]  # as read
    places: Dict[int, Extent]  # of each word, from left to right
    entities: List[List[int]]  # the words of each entity
    width: float

    def stretches(self, entity: int) -> List[Extent]:
        """The places of neighbouring words of an entity; several if text of the other direction tears
        them apart."""
        members = set(self.entities[entity])
        found: List[Extent] = []
        previous = False
        for i, (left, width) in self.places.items():
            if i in members and previous:
                found[-1] = (found[-1][0], left + width - found[-1][0])
            elif i in members:
                found.append((left, width))
            previous = i in members
        return found


def lay_words(text: str, begin: int, end: int, entities: Sequence[SpanMark]) -> WordLine:
    """The words of a stretch of text. Those of an entity are wide enough for its label."""
    pieces = cut_pieces(text, begin, end, entities)
    members = [piece_numbers(pieces, mark) for mark in entities]
    words = [text[a:b] for a, b in pieces]
    if text[:begin].strip():
        words[0] = f"{LEFT_OUT} {words[0]}"
    if text[end:].strip():
        words[-1] += f" {LEFT_OUT}"
    widths = [text_width(word, WORD_SIZE) for word in words]
    for n in sorted(range(len(entities)), key=lambda n: len(members[n])):
        numbers, label = members[n], text_width(caption(entities[n]), LABEL_SIZE)
        lacking = label + PADDING - sum(widths[i] for i in numbers)
        for i in numbers:
            widths[i] += max(lacking, 0) / len(numbers)
    order = visual_order(words, turned=direction(text) == "rtl")
    places, left = {}, 0.0
    for i, following in zip(order, [*order[1:], order[-1]], strict=True):
        places[i] = (left, widths[i])
        left += widths[i] + (BLANK if blank_between(pieces, i, following) else 1)
    return WordLine(words, places, members, left)


def cut_pieces(
    text: str, begin: int, end: int, entities: Sequence[SpanMark]
) -> List[Tuple[int, int]]:
    """Words, cut where an entity begins or ends."""
    cuts = {begin, end, *(at for mark in entities for at in mark[:2])}
    for i in range(begin + 1, end):
        if text[i].isspace() or text[i - 1].isspace():
            cuts.add(i)
    found = [(a, b) for a, b in pairwise(sorted(cuts)) if not text[a:b].isspace()]
    return found or [(begin, end)]


def piece_numbers(pieces: Sequence[Tuple[int, int]], mark: SpanMark) -> List[int]:
    """The pieces of an entity; of one that is only white space, the next or last piece."""
    touched = [i for i, (a, b) in enumerate(pieces) if a < mark.end and b > mark.start]
    return touched or [
        next((i for i, (_, b) in enumerate(pieces) if b > mark.start), len(pieces) - 1)
    ]


def blank_between(pieces: Sequence[Tuple[int, int]], one: int, other: int) -> bool:
    first, second = sorted((one, other))
    return second > first + 1 or pieces[second][0] > pieces[first][1]


def text_width(text: str, size: float) -> float:
    """About the width of a text in letters of that size, rather too much than too little."""
    total = 0.0
    for char in text:
        if unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        if unicodedata.east_asian_width(char) in "WF":
            total += 1.02
        elif char in NARROW:
            total += 0.38
        else:
            total += 0.95 if char in BROAD else 0.72 if char.isupper() else 0.6
    return total * size


def visual_order(words: Sequence[str], *, turned: bool) -> List[int]:
    """The words from left to right. Runs of words against the direction of the text are reversed in
    it; words without letters belong to the run if they lie within."""
    base = "rtl" if turned else "ltr"
    directions = [
        next((BIDI[b] for b in map(unicodedata.bidirectional, w) if b in BIDI), "") for w in words
    ]
    order: List[int] = []
    i = 0
    while i < len(words):
        last = i
        if directions[i] not in (base, ""):
            for j in range(i, len(words)):
                if directions[j] == base:
                    break
                last = j if directions[j] else last
        order += range(last, i - 1, -1)
        i = last + 1
    return order[::-1] if turned else order
