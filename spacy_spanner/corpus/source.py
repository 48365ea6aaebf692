"""Files as bytes and numbered lines, compressed with gzip or not, detected by content."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, Iterator, Tuple, cast

from ..errors import Errors
from .record import CorpusError, Place

GZIP = b"\x1f\x8b"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
BOM = "\ufeff"


def open_source(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


def read_bytes(path: Path, limit: int = -1) -> bytes:
    """The content of a file, or its beginning."""
    with open_source(path) as file:
        try:
            return file.read(limit)
        except BROKEN_GZIP as error:
            reason = f"the gzip file is damaged or truncated ({error})"
            raise CorpusError(Errors.S029.format(path=path, reason=reason)) from error


def numbered_lines(path: Path) -> Iterator[Tuple[Place, str]]:
    """The lines of a UTF-8 file without their ends, with their places."""
    number = 0
    with open_source(path) as file:
        try:
            for number, raw in enumerate(file, start=1):
                place = Place(path, number)
                yield place, decoded(place, raw).rstrip("\r\n")
        except BROKEN_GZIP as error:
            Place(path, number + 1).fail(f"the gzip file is damaged or truncated ({error})")


def decoded(place: Place, raw: bytes) -> str:
    """One line. Only the first may begin with a byte-order mark, which is removed."""
    line = decode(place, raw)
    if line.startswith(BOM):
        if place.line > 1:
            place.fail("a byte-order mark inside the file; remove it (from concatenated files?)")
        line = line[1:]
    return line


def decode(place: Place, raw: bytes) -> str:
    """Bytes from `place` on as UTF-8."""
    if place.line == 1 and raw[:2] in UTF16:
        place.fail("the file is UTF-16; save it as UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = place.line + raw.count(b"\n", 0, error.start)
        reason = f"not UTF-8 ({error.reason} at byte {error.start}); save the file as UTF-8"
        Place(place.path, line).fail(reason)
    if "\0" in text:
        line = place.line + text.count("\n", 0, text.index("\0"))
        Place(place.path, line).fail("a NUL character; this is not a UTF-8 text file")
    return text


def base_name(path: Path) -> str:
    """The name of a file without its ending, nor that of gzip."""
    name = path.name.removesuffix(".gz")
    return Path(name).stem
