"""Cut files into shards: ranges of records that are annotated and written as a whole."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from typing import IO, Iterator, List, Sequence, Tuple

from spacy.tokens import DocBin

from .inputs import InputFile

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document may be longer than 128 KB


@dataclass(frozen=True)
class Shard:
    """`count` records of one file, from number `first` on (counted from 1).

    start: Where they begin: a byte in text, JSONL and CSV, a row in Parquet and .spacy.
    """

    name: str
    file: InputFile
    first: int
    count: int
    start: int


def cut_files(files: Sequence[InputFile], size: int) -> List[Shard]:
    """All shards. They depend on the files and the size alone, and none spans two files."""
    shards = []
    for number, file in enumerate(files):
        for block, (first, count, start) in enumerate(cut_file(file, size)):
            shards.append(Shard(f"{number:05d}-{block:06d}", file, first, count, start))
    return shards


def cut_file(file: InputFile, size: int) -> Iterator[Tuple[int, int, int]]:
    """First record, number of records and start of each shard."""
    if file.format in ("parquet", "spacy"):
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


def count_rows(file: InputFile) -> int:
    if file.format == "spacy":
        return len(DocBin().from_disk(file.path))
    import pyarrow.parquet

    return pyarrow.parquet.read_metadata(file.path).num_rows


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
