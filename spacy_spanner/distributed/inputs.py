"""Which files there are to annotate, in which format, and whether they are still the same."""

from __future__ import annotations

import filecmp
import glob
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Sequence

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
        """What changes when the file does; reading all of it would cost as much as a run."""
        stat = os.stat(self.path)
        return {"name": self.name, "size": stat.st_size, "changed": stat.st_mtime_ns}


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
            names = [(STDIN, keep_stdin(stdin, output, "text" if format == "auto" else format))]
        else:
            names = [(str(path), path) for path in expand(given, output.resolve())]
        for name, path in names:
            kind = "text" if name == STDIN and format == "auto" else format_of(path, format)
            file = InputFile(name, str(path.resolve()), kind)
            found.setdefault(file.path, file)
    return list(found.values())


def expand(given: str, output: Path) -> Iterator[Path]:
    """The files of one argument; a folder stands for all files below it of a known format."""
    path = Path(given)
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.suffix in FORMATS and p.is_file())
    elif path.is_file():
        paths = [path]
    else:
        paths = sorted(Path(p) for p in glob.glob(given, recursive=True) if Path(p).is_file())
    paths = [p for p in paths if output not in p.resolve().parents]
    if not paths:
        raise CorpusError(Errors.S029.format(path=given, reason="no file to annotate found there"))
    yield from paths


def format_of(path: Path, format: str) -> str:
    if format != "auto":
        return format
    if path.suffix not in FORMATS:
        reason = f"unknown ending {path.suffix!r}"
        known = ", ".join(sorted(set(FORMATS.values())))
        raise CorpusError(Errors.S050.format(path=path, reason=reason, formats=known))
    return FORMATS[path.suffix]


def keep_stdin(stdin: IO[bytes], output: Path, format: str) -> Path:
    """A copy of standard input, as shards are read again after a stop. When a run goes on, the
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
            raise CorpusError(Errors.S051.format(path=output, what="standard input"))
    finally:
        part.unlink(missing_ok=True)
    return target
