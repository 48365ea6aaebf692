"""brat standoff: a .txt and an .ann file of one name, with T (span) and R (relation) lines."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from ..errors import Errors
from .record import (
    CorpusError,
    Place,
    RawRelation,
    RawSpan,
    ReadOptions,
    Record,
    checked_label,
    checked_text_span,
    looked_for_relations,
)
from .source import BOM, base_name, decode, numbered_lines, read_bytes

OFFSETS = re.compile(r"(\d+) (\d+)$")
FRAGMENTS = re.compile(r"\d+ \d+(;\d+ \d+)+$")
ARGUMENTS = re.compile(r"(\S+) ([^\s:]+):(\S+) ([^\s:]+):(\S+)$")
DISCONTINUOUS = "discontinuous spans"
TEXTS = (".txt", ".txt.gz")


def brat_pairs(path: Path) -> List[Tuple[Path, Path]]:
    """The text files below a folder, or the one named by either of its files, and their .ann."""
    if path.is_dir():
        texts = sorted(file for file in path.rglob("*.txt*") if file.name.endswith(TEXTS))
    else:
        texts = [beside(path, ".txt")]
    if not texts:
        reason = (
            "no .txt files in this folder; of formats other than brat, give the files themselves"
        )
        raise CorpusError(Errors.S029.format(path=path, reason=reason))
    pairs = [(text, beside(text, ".ann")) for text in texts]
    for text, annotation in pairs:
        missing = [file for file in (text, annotation) if not file.is_file()]
        if len(missing) == 2:
            reason = f"in format brat, {text.name} and {annotation.name} are read; neither is there"
            raise CorpusError(Errors.S029.format(path=path, reason=reason))
        if missing:
            other = annotation if missing == [text] else text
            reason = f"this file is missing beside {other.name}"
            raise CorpusError(Errors.S029.format(path=missing[0], reason=reason))
    return pairs


def beside(path: Path, suffix: str) -> Path:
    """The file of the same name with another ending, compressed or not."""
    plain = path.with_name(base_name(path) + suffix)
    packed = plain.with_name(plain.name + ".gz")
    return packed if packed.is_file() and not plain.is_file() else plain


def read_brat(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One document a text file. Discontinuous spans and relations to them, or to events, are left
    out and counted; lines of other kinds (events, attributes, notes) are counted too."""
    yield from looked_for_relations(starmap(read_pair, brat_pairs(path)))


def read_pair(text_path: Path, ann_path: Path) -> Record:
    # with its line ends as they are: brat's offsets count every character
    text, doc_id = decode(Place(text_path, 1), read_bytes(text_path)), base_name(text_path)
    if not text.startswith(BOM):
        return read_annotation(ann_path, text, doc_id)
    try:
        record = read_annotation(ann_path, text, doc_id)
    except CorpusError as error:  # not from brat, which also counts a byte-order mark; or wrong
        try:
            return read_annotation(ann_path, text[1:], doc_id)
        except CorpusError:
            raise error from None
    if any(start == 0 for start, _, _ in record.spans):  # a span of the mark: it was not counted
        return read_annotation(ann_path, text[1:], doc_id)
    spans = [(start - 1, end - 1, label) for start, end, label in record.spans]
    return replace(record, text=text[1:], spans=spans)


def read_annotation(path: Path, text: str, doc_id: str) -> Record:
    spans: List[RawSpan] = []
    positions: Dict[str, int] = {}  # T id -> position in spans, -1 where left out
    relation_lines: List[Tuple[Place, str]] = []
    skipped: Counter[str] = Counter()
    for place, line in numbered_lines(path):
        name, _, rest = line.partition("\t")
        if not line.strip():
            continue
        if name in positions:
            place.fail(f"{name} is defined twice")
        if name[0] == "T":
            label, _, offsets = rest.partition("\t")[0].partition(" ")
            offsets = without_line_ends(offsets, text)
            if ";" in offsets:
                positions[name] = -1
                skipped[DISCONTINUOUS] += 1
                continue
            positions[name] = len(spans)
            spans.append(text_bound(place, label, offsets, rest.partition("\t")[2], text))
        elif name[0] == "R":
            relation_lines.append((place, rest))
        elif name[0] in "EAMN#*":
            skipped[f"lines of kind {name[0]}"] += 1
        else:
            place.fail(
                f"expected a line that begins with T, R, E, A, M, N, # or *, found {line!r:.60}"
            )
    relations: List[RawRelation] = []
    for place, rest in relation_lines:  # after all spans: brat does not order its lines
        relations.extend(read_relation(place, rest, positions, skipped))
    found = relations if relation_lines else None
    return Record(Place(path, 1), None, text, spans, found, doc_id, dict(skipped))


def without_line_ends(offsets: str, text: str) -> str:
    """Offsets of one stretch where nothing but white space is between the fragments: brat cuts spans at
    the ends of lines."""
    if not FRAGMENTS.match(offsets):
        return offsets
    first, *cuts, last = re.split("[ ;]", offsets)
    gaps = zip(cuts[::2], cuts[1::2], strict=True)
    is_one = not any(text[int(end) : int(start)].strip() for end, start in gaps)
    return f"{first} {last}" if is_one else offsets


def text_bound(place: Place, label: str, offsets: str, covered: str, text: str) -> RawSpan:
    match = OFFSETS.match(offsets)
    if match is None:
        place.fail(f"expected 'T1<tab>Label start end<tab>text', found the offsets {offsets!r}")
    start, end = int(match[1]), int(match[2])
    return checked_text_span(place, start, end, label, text=text, covered=covered or None)


def read_relation(
    place: Place, rest: str, positions: Dict[str, int], skipped: Counter[str]
) -> Iterator[RawRelation]:
    match = ARGUMENTS.match(rest.strip())
    if match is None:
        place.fail(f"expected 'R1<tab>Label Arg1:T1 Arg2:T2', found {rest!r}")
    label, role, head, _, tail = match.groups()
    if role == "Arg2":  # roles of other names come in the order of the arguments
        head, tail = tail, head
    checked_label(place, label, f"relation {rest!r}")
    for name in (head, tail):
        if name[0] == "T" and name not in positions:
            place.fail(f"the relation names {name}, which is not in the file")
    if min(positions.get(head, -1), positions.get(tail, -1)) < 0:
        skipped["relations to events or discontinuous spans"] += 1
        return
    yield positions[head], positions[tail], label
