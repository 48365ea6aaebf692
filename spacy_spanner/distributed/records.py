"""Cut files into shards, ranges of records that are annotated and written whole; read them again.

Only Parquet is read by pyarrow. Its CSV reader does not report the offset of a record, and its JSON reader
rejects a whole block for one bad line.
"""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import zlib
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from types import MappingProxyType
from typing import (
    IO,
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import srsly
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokens import Doc, DocBin
from srsly.msgpack import Unpacker

from ..corpus.docs import DOC_ID
from .inputs import LINE_FORMATS, InputFile, Shard

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document may be longer than 128 KB

# What readers raise for files that are not what they should be.
DAMAGE = (OSError, ValueError, LookupError, TypeError, AssertionError, zlib.error)
BATCH = 256  # rows that are read from Parquet at a time
# The number of a record, and its fields or the reason why there are none.
Found = Tuple[int, Union[Dict[str, Any], str]]


def cut_files(files: Sequence[InputFile], size: int) -> List[Shard]:
    """All shards. They depend on the files and the size alone, and none spans two files."""
    shards = []
    for number, file in enumerate(files):
        for block, (first, count, start) in enumerate(cut_file(file, size)):
            shards.append(Shard(f"{number:05d}-{block:06d}", file, first, count, start))
    return shards


def cut_file(file: InputFile, size: int) -> Iterator[Tuple[int, int, int]]:
    """First record, number of records and start of each shard."""
    if file.format not in LINE_FORMATS:
        total = count_rows(file)
        for row in range(0, total, size):
            yield row + 1, min(size, total - row), row
        return
    with open(file.path, "rb") as stream:
        first, start, count = 1, 0, 0
        for begin in record_starts(stream, file.format):
            if count == size:
                yield first, count, start
                first, count = first + count, 0
            start = begin if count == 0 else start
            count += 1
        if count:
            yield first, count, start


def record_starts(stream: IO[bytes], format: str) -> Iterator[int]:
    """The byte each record begins at: a line, or in CSV all lines of a quoted text."""
    if format != "csv":
        position = 0
        for line in stream:
            yield position
            position += len(line)
        return
    lines = CountedLines(stream)
    reader = csv.reader(lines)
    next(reader, None)  # the names of the columns
    begin = lines.position
    for _ in reader:
        yield begin
        begin = lines.position


class CountedLines:
    """Decoded lines of a stream, and how many bytes they took. Bytes that are not UTF-8 become
    surrogates, which the reader of records refuses one by one."""

    def __init__(self, stream: IO[bytes]):
        self.stream = stream
        self.position = stream.tell()

    def __iter__(self) -> Iterator[str]:
        for line in self.stream:
            at_start = self.position == 0
            self.position += len(line)
            yield line.decode("utf-8-sig" if at_start else "utf-8", errors="surrogateescape")


class InputRecord(NamedTuple):
    """One document to be, or the reason why it cannot be one."""

    number: int
    text: str = ""
    words: Optional[List[str]] = None  # where the file has tokens, they are kept
    spaces: Optional[List[bool]] = None
    meta: Mapping[str, Any] = MappingProxyType({})
    reason: Optional[str] = None

    def size(self) -> int:
        """About how many characters it has."""
        return len(self.text) if self.words is None else sum(map(len, self.words))

    def make_doc(self, nlp: Language) -> Doc:
        """A document that is not annotated yet."""
        if self.words is None:
            return nlp.make_doc(self.text)
        return Doc(nlp.vocab, words=self.words, spaces=self.spaces)


def read_records(shard: Shard, *, text_field: str) -> Iterator[InputRecord]:
    """The records of a shard in order; a bad one has a `reason` and stops nothing."""
    if shard.file.format == "spacy":
        yield from read_spacy(shard)
    elif shard.file.format == "text":
        for number, line in lines_of(shard):
            yield checked_record(number, {"text": line}, "text")
    else:
        readers = {"jsonl": read_jsonl, "csv": read_csv, "parquet": read_parquet}
        for number, found in readers[shard.file.format](shard):
            yield checked_record(number, found, text_field)


def checked_record(number: int, found: Union[Dict[str, Any], str], text_field: str) -> InputRecord:
    """The record, if it has a text and the rest of it can be written as JSON."""
    if isinstance(found, str):
        return InputRecord(number, reason=found)
    if text_field not in found:
        names = ", ".join(map(repr, found)) or "none"
        return InputRecord(number, reason=f"no field {text_field!r}; its fields: {names}")
    text = found[text_field]
    if not isinstance(text, str):
        kind = type(text).__name__
        return InputRecord(number, reason=f"field {text_field!r} must be a text, found {kind}")
    meta = {name: value for name, value in found.items() if name != text_field}
    try:
        text.encode("utf-8")
        if meta:
            meta = json.loads(json.dumps(meta, allow_nan=False, default=str))
            json.dumps(meta, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return InputRecord(number, reason="not UTF-8, or half a surrogate pair")
    except ValueError as error:
        return InputRecord(number, reason=f"its other fields cannot be kept: {error}")
    return InputRecord(number, text, meta=meta)


def lines_of(shard: Shard) -> Iterator[Tuple[int, str]]:
    """The lines of a shard with their numbers."""
    with open(shard.file.path, "rb") as stream:
        stream.seek(shard.start)
        for number, line in enumerate(islice(CountedLines(stream), shard.count), shard.first):
            yield number, line.rstrip("\r\n")


def read_jsonl(shard: Shard) -> Iterator[Found]:
    """Empty lines are counted and left out."""
    for number, line in lines_of(shard):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            found = f"not JSON: {error}"
        else:
            if not isinstance(found, dict):
                found = f"expected an object, found {type(found).__name__}"
        yield number, found


def read_csv(shard: Shard) -> Iterator[Found]:
    """Rows under the names of the first one; empty lines are counted and left out."""
    with open(shard.file.path, "rb") as stream:
        names = next(csv.reader(CountedLines(stream)))
        stream.seek(shard.start)
        rows = csv.reader(CountedLines(stream))
        for number, row in enumerate(islice(rows, shard.count), shard.first):
            if not row:  # an empty line
                continue
            if len(row) == len(names):
                yield number, dict(zip(names, row))
            else:
                yield number, f"expected {len(names)} columns, found {len(row)}"


def read_parquet(shard: Shard) -> Iterator[Found]:
    """Rows in small batches, so that those before a damaged page are not lost with it."""
    import pyarrow.parquet

    number, stop = shard.start, shard.start + shard.count
    try:
        file = pyarrow.parquet.ParquetFile(shard.file.path)
    except DAMAGE as error:
        yield number + 1, damage(error)
        return
    with file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        for group, (begin, size) in enumerate(zip([0, *accumulate(sizes)], sizes)):
            last = min(begin + size, stop)
            if begin >= stop or last <= number:
                continue
            try:
                for batch in file.iter_batches(BATCH, row_groups=[group]):
                    skipped = min(number - begin, batch.num_rows)
                    for row in batch.slice(skipped, last - number).to_pylist():
                        number += 1
                        yield number, row
                    begin += batch.num_rows
            except DAMAGE as error:
                reason = damage(error)
                yield from ((lost, reason) for lost in range(number + 1, last + 1))
                number = last


def damage(error: Exception) -> str:
    """The defect of a file. A failing disk or network is not one."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    return f"the file is damaged: {str(error).splitlines()[0] if str(error) else type(error)}"


def count_rows(file: InputFile) -> int:
    """Documents of a .spacy file, rows of a Parquet file. What cannot be read counts as one more."""
    if file.format == "spacy":
        docs, reason = load_docs(file.path, file.fingerprint()["changed"])
        return len(docs) + bool(reason)
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_metadata(file.path).num_rows
    except DAMAGE as error:
        damage(error)
        return 1


@lru_cache(maxsize=1)  # shards mostly follow one another
def load_docs(path: str, changed: int) -> Tuple[DocBin, Optional[str]]:
    """A .spacy file and what is wrong with it, if anything is; of a damaged one, what can be read."""
    content = Path(path).read_bytes()
    try:
        return DocBin().from_bytes(content), None
    except DAMAGE as error:
        reason = damage(error)
    with contextlib.suppress(*DAMAGE):
        return DocBin().from_bytes(salvage(content)), reason
    return DocBin(), reason


def salvage(content: bytes) -> bytes:
    """The entries of a .spacy file before the place where it is damaged, as a file of their own. The
    entries come in a fixed order: where the strings are whole, so are all tokens."""
    stream, plain = zlib.decompressobj(), bytearray()
    with contextlib.suppress(zlib.error):
        for start in range(0, len(content), 1024):
            plain += stream.decompress(content[start : start + 1024])
    unpacker = Unpacker(raw=False, max_buffer_size=len(plain) + 1)
    unpacker.feed(bytes(plain))
    entries: Dict[str, Any] = {"cats": []}
    with contextlib.suppress(Exception):  # the entries before a damaged one are complete
        for _ in range(unpacker.read_map_header()):
            name = unpacker.unpack()
            entries[name] = unpacker.unpack()
    return zlib.compress(srsly.msgpack_dumps(entries))


def read_spacy(shard: Shard) -> Iterator[InputRecord]:
    """The tokens of the documents and their id; the annotation that is there is not taken over."""
    docs, reason = load_docs(shard.file.path, shard.file.fingerprint()["changed"])
    strings = StringStore(docs.strings)
    for i in range(shard.start, shard.start + shard.count):
        if i == len(docs):
            yield InputRecord(i + 1, reason=reason)
            return
        words = [strings[orth] for orth in docs.tokens[i][:, 0]]
        user_data = docs.user_data[i] if i < len(docs.user_data) else None
        doc_id = srsly.msgpack_loads(user_data).get(DOC_ID) if user_data else None
        yield InputRecord(
            i + 1,
            words=words,
            spaces=docs.spaces[i][:, 0].tolist(),
            meta={DOC_ID: doc_id} if isinstance(doc_id, (str, int)) else {},
        )
