"""The files of a run: each is complete or absent, and has its length and checksum stored."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import socket
from pathlib import Path
from typing import Any, Callable, Dict, List

from spacy.tokens import Doc, DocBin

from ..errors import Errors, OutputError
from .inputs import display_name

Row = Dict[str, Any]

FILE, RECORD, META = "file", "record", "meta"  # entries of `doc.user_data` in .spacy output
SUFFIXES = {"jsonl": ".jsonl", "parquet": ".parquet", "spacy": ".spacy"}


def part_name(shard: str, format: str) -> str:
    """The result file of a shard."""
    return f"part-{shard}{SUFFIXES[format]}"


def write_shard(folder: Path, shard: str, *, content: bytes, rejects: bytes, format: str) -> None:
    """Write the files of a shard, the result last: from then on the shard is finished. Length and
    checksum come first, so that there is never a result without them."""
    files = {part_name(shard, format): content}
    if rejects:
        files = {f"rejects/part-{shard}.jsonl": rejects, **files}
    sums = {name: checksum(data) for name, data in files.items()}
    write_whole(folder / "manifest" / f"{shard}.json", to_json(sums))
    for name, data in files.items():
        write_whole(folder / name, data)


def is_whole(folder: Path, shard: str) -> bool:
    """Are the files of a shard there as they were written?"""
    try:
        sums = json.loads((folder / "manifest" / f"{shard}.json").read_bytes())
        return all(checksum((folder / name).read_bytes()) == known for name, known in sums.items())
    except (FileNotFoundError, ValueError, AttributeError):
        return False


def checksum(data: bytes) -> Dict[str, Any]:
    """Length and checksum of a file, to notice changes."""
    return {"length": len(data), "sha256": hashlib.sha256(data).hexdigest()}


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
        reason = f"{target.name}: {error.strerror}"
        folder = display_name(target.parent)
        raise OutputError(Errors.S056.format(path=folder, reason=reason)) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove what workers that were stopped left half-written."""
    for place in (folder, folder / "manifest", folder / "rejects"):
        for path in (*place.glob(".part-*"), *place.glob(".*.json.*")):
            path.unlink(missing_ok=True)


def to_json(value: Any) -> bytes:
    """As ASCII: names of files may hold bytes that are not UTF-8."""
    return (json.dumps(value, indent=2) + "\n").encode("ascii")


def json_lines(rows: List[Row]) -> bytes:
    """One object a line, in UTF-8."""
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    return "".join(lines).encode("utf-8")


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


WRITERS: Dict[str, Callable[[List[Row], List[Doc]], bytes]] = {
    "jsonl": lambda rows, docs: json_lines(rows),
    "parquet": rows_to_parquet,
    "spacy": docs_to_spacy,
}
