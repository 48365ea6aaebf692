"""Which files there are to annotate, in which format, and whether they are still the same."""

from __future__ import annotations

import filecmp
import glob
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, List, Sequence

from ..corpus.record import CorpusError
from ..errors import Errors

STDIN = "-"
FORMATS = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".spacy": "spacy",
}
LINE_FORMATS = ("text", "jsonl", "csv")  # those that standard input can have


@dataclass(frozen=True)
class InputFile:
    """A file to annotate. `name` is what the user called it; results and rejects show it."""

    name: str
    path: str
    format: str

    def fingerprint(self) -> Dict[str, Any]:
        """A value that changes with the file; a checksum would cost as much as a run."""
        stat = os.stat(self.path)
        return {"name": self.name, "size": stat.st_size, "changed": stat.st_mtime_ns}


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

    @classmethod
    def from_dict(cls, fields: Dict[str, Any]) -> Shard:
        """The inverse of `dataclasses.asdict`."""
        return cls(**{**fields, "file": InputFile(**fields["file"])})


def display_name(path: Any) -> str:
    """A file name as text. Bytes of it that are not UTF-8 are written as escapes."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def find_inputs(
    inputs: Sequence[str], *, format: str, output: Path, stdin: IO[bytes]
) -> List[InputFile]:
    """The files meant by paths, folders, patterns and `-`, each once and in a fixed order.

    format: "auto" goes by the ending of a name; anything else holds for all files.
    output: Its folder is never read, except for the copy of standard input that is put there.
    """
    found: Dict[str, InputFile] = {}
    for given in inputs:
        if given == STDIN:
            kind = "text" if format == "auto" else format
            files = [InputFile(STDIN, str(keep_stdin(stdin, output, kind).resolve()), kind)]
        else:
            files = [
                InputFile(display_name(path), str(path.resolve()), format_of(path, format))
                for path in expand(given, output.resolve())
            ]
        for file in files:
            found.setdefault(file.path, file)
    return list(found.values())


def expand(given: str, output: Path) -> List[Path]:
    """The files of one argument; of a folder, all files below it of a known format."""
    path = Path(given)
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.suffix in FORMATS and p.is_file())
    elif path.is_file():
        paths = [path]
    else:
        paths = sorted(Path(p) for p in glob.glob(given, recursive=True) if Path(p).is_file())
    paths = [p for p in paths if output not in p.resolve().parents]
    if not paths:
        reason = "no file to annotate found there"
        raise CorpusError(Errors.S029.format(path=display_name(given), reason=reason))
    return paths


def format_of(path: Path, format: str) -> str:
    """The format of a file: the given one or, for "auto", that of its ending."""
    if format != "auto":
        return format
    if path.suffix not in FORMATS:
        reason = f"unknown ending {path.suffix!r}"
        known = ", ".join(sorted(set(FORMATS.values())))
        name = display_name(path)
        raise CorpusError(Errors.S050.format(path=name, reason=reason, formats=known))
    return FORMATS[path.suffix]


def keep_stdin(stdin: IO[bytes], output: Path, format: str) -> Path:
    """A copy of standard input, as shards are read again after a stop. When a run is resumed, the
    input must come again and be the same."""
    if format not in LINE_FORMATS:
        reason = f"standard input cannot be in format {format}"
        raise CorpusError(Errors.S050.format(path="-", reason=reason, formats=LINE_FORMATS))
    folder = output / "stdin"
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / "records", folder / f".records.{os.getpid()}"
    try:
        with part.open("wb") as file:
            shutil.copyfileobj(stdin, file)
        if not target.exists():
            os.replace(part, target)
        elif not filecmp.cmp(part, target, shallow=False):
            what = "standard input"
            raise CorpusError(Errors.S051.format(path=display_name(output), what=what))
    finally:
        part.unlink(missing_ok=True)
    return target
