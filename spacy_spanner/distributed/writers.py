"""Files that are there as a whole or not at all, in each output format."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
from pathlib import Path
from typing import Any, Callable, Dict, List

from spacy.tokens import Doc, DocBin

from ..errors import Errors, OutputError
from .annotation import Row

FILE, RECORD, META = "file", "record", "meta"  # entries of `doc.user_data` in .spacy output
SUFFIXES = {"jsonl": ".jsonl", "parquet": ".parquet", "spacy": ".spacy"}


def write_whole(target: Path, content: bytes) -> None:
    """Write beside the target, then rename. Names differ between processes and machines, so that
    two that write the same shard cannot meet."""
    part = target.with_name(f".{target.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:  # no space, no right, no such place
        with contextlib.suppress(OSError):
            part.unlink()
        reason = f"{target.name}: {error.strerror}"
        raise OutputError(Errors.S056.format(path=target.parent, reason=reason)) from error


def json_lines(rows: List[Row]) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    return "".join(lines).encode("utf-8")


def rows_to_jsonl(rows: List[Row], docs: List[Doc]) -> bytes:
    return json_lines(rows)


def rows_to_parquet(rows: List[Row], docs: List[Doc]) -> bytes:
    """One table; `meta` is JSON, as its fields differ from file to file."""
    import pyarrow
    import pyarrow.parquet

    place = [("start", pyarrow.int32()), ("end", pyarrow.int32()), ("label", pyarrow.string())]
    score = ("score", pyarrow.float32())
    entity = pyarrow.struct([*place, score, ("source", pyarrow.string())])
    ends = [("head", pyarrow.struct(place)), ("tail", pyarrow.struct(place))]
    relation = pyarrow.struct([*ends, ("label", pyarrow.string()), score])
    schema = pyarrow.schema(
        [
            ("file", pyarrow.string()),
            ("record", pyarrow.int64()),
            ("text", pyarrow.string()),
            ("entities", pyarrow.list_(entity)),
            ("relations", pyarrow.list_(relation)),
            ("meta", pyarrow.string()),
        ]
    )
    plain = [{**row, "meta": json.dumps(row["meta"], ensure_ascii=False)} for row in rows]
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(plain, schema=schema), buffer)
    return buffer.getvalue()


def docs_to_spacy(rows: List[Row], docs: List[Doc]) -> bytes:
    """The documents with all the pipeline wrote, but for what cannot be stored."""
    doc_bin = DocBin(store_user_data=True)
    for row, doc in zip(rows, docs):
        kept = {key: value for key, value in doc.user_data.items() if isinstance(key, str)}
        doc.user_data = {**kept, FILE: row["file"], RECORD: row["record"], META: row["meta"]}
        doc_bin.add(doc)
    return doc_bin.to_bytes()


Writer = Callable[[List[Row], List[Doc]], bytes]
WRITERS: Dict[str, Writer] = {
    "jsonl": rows_to_jsonl,
    "parquet": rows_to_parquet,
    "spacy": docs_to_spacy,
}


def to_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8")
