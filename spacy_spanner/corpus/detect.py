"""Detection of formats from the content of files, and the reader of each format."""

from __future__ import annotations

import zlib
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from ..errors import Errors
from .brat import read_brat
from .columns import (
    CONLLU_ID,
    GLOBAL_COLUMNS,
    read_conll,
    read_conllu,
    read_germeval,
    split_columns,
)
from .json_source import json_items
from .label_studio import is_flat, is_task, read_label_studio
from .objects import SPAN_KEYS, is_pair, read_objects
from .record import CorpusError, ReadOptions, Record
from .relation_files import ADE_LINE, read_ade, read_scierc, read_triples
from .source import numbered_lines, read_bytes
from .stored import read_stored
from .tagged import find_names, is_tagged, read_tagged
from .tags import split_tag

Reader = Callable[[Path, ReadOptions], Iterator[Record]]
READERS: Dict[str, Reader] = {
    "jsonl": read_objects,
    "prodigy": read_objects,
    "doccano": read_objects,
    "spacy2": read_objects,
    "spert": read_objects,
    "triples": read_triples,
    "scierc": read_scierc,
    "ade": read_ade,
    "label_studio": read_label_studio,
    "huggingface": read_tagged,
    "conll": read_conll,
    "conllu": read_conllu,
    "germeval": read_germeval,
    "brat": read_brat,
    "spacy": read_stored,
}
N_ITEMS = 100  # of a JSON file: the first ones may lack the fields that identify the format
N_LINES = 20
N_BYTES = 4096  # enough for zlib to give something out


def format_of(path: Path, format: str) -> str:
    """The format that was named, else the one the file shows."""
    if format != "auto" and format not in READERS:
        formats = ", ".join(["auto", *READERS])
        raise CorpusError(Errors.S104.format(option="format", value=format, choices=formats))
    if format == "auto":
        return detect_format(path)
    if path.is_dir() and format != "brat":
        reason = f"this is a folder; expected a file in format {format}"
        raise CorpusError(Errors.S029.format(path=path, reason=reason))
    return format


def detect_format(path: Path) -> str:
    if path.is_dir() or is_brat(path):
        return "brat"
    head = read_bytes(path, N_BYTES)
    if not head:
        raise CorpusError(Errors.S029.format(path=path, reason="the file is empty"))
    if is_stored(head):
        return "spacy"
    lines = [line for _, line in islice(numbered_lines(path), N_LINES) if line.strip()]
    first = lines[0].lstrip()[:1] if lines else ""
    format = json_format(path) if first and first in "{[" else column_format(lines)
    if format is None:
        start = lines[0] if lines else ""
        reason = f"unknown format, the file begins with {start!r:.60}"
        raise CorpusError(Errors.S021.format(path=path, reason=reason, formats=", ".join(READERS)))
    return format


def is_brat(path: Path) -> bool:
    """One of two files of a name: only their names show that they belong together."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".txt"):
        stem = name.removesuffix(".txt")
        return any(path.with_name(stem + end).is_file() for end in (".ann", ".ann.gz"))
    return name.endswith(".ann")


def is_stored(head: bytes) -> bool:
    """A `.spacy` file is compressed with zlib."""
    try:
        return head[:1] == b"x" and bool(zlib.decompressobj().decompress(head))
    except zlib.error:
        return False


def json_format(path: Path) -> Optional[str]:
    for _, item in islice(json_items(path), N_ITEMS):
        format = "spacy2" if is_pair(item) else None
        if isinstance(item, dict):
            format = object_format(item)
        if format is not None:
            return format
    return None


def object_format(item: Dict[str, Any]) -> Optional[str]:
    row = item["row"] if isinstance(item.get("row"), dict) else item
    spans = next((item[key] for key in SPAN_KEYS if isinstance(item.get(key), list)), None)
    names = {name for span in spans or [] if isinstance(span, dict) for name in span}
    if is_task(item) or is_flat(item):
        return "label_studio"
    if is_tagged(row):
        return "huggingface"
    if "answer" in item or "_task_hash" in item:
        return "prodigy"
    if any(key in item for key in ("triple_list", "relation_list", "spo_details")):
        return "triples"
    if "sentences" in item and "ner" in item:
        return "scierc"
    if "tokens" in item and "type" in names:
        return "spert"
    if "labels" in item or "label" in item or "start_offset" in names:
        return "doccano"
    if spans is not None:
        return "prodigy" if "spans" in item else "jsonl"
    return "huggingface" if find_names(item) is not None else None


def column_format(lines: List[str]) -> Optional[str]:
    rows = [line for line in lines if not line.startswith("#")]
    if rows and ADE_LINE.match(rows[0].strip()):
        return "ade"
    if any(GLOBAL_COLUMNS.match(line) for line in lines):
        return "conllu"
    columns = rows[0].split("\t") if rows else []
    tags = [split_tag(column) for column in columns[2:]]
    if len(columns) == 10 and CONLLU_ID.match(columns[0]) and tags[-1] is None:
        return "conllu"
    if len(columns) == 4 and columns[0].isdigit() and None not in tags:
        return "germeval"
    if rows and len(split_columns(rows[0])) > 1:
        return "conll"
    return None
