"""Files of any known format to `.spacy` files, all of them or none."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import spacy
from spacy.tokens import Doc, DocBin
from spacy.util import get_lang_class
from tqdm import tqdm

from ..errors import Errors, OutputError
from .build import Summary, build_doc
from .detect import READERS, format_of
from .docs import SUFFIX
from .folds import split_folds
from .joining import join_by_id
from .record import CorpusError, ReadOptions
from .source import base_name

NO_TEXT = "documents without text"


class Converted(NamedTuple):
    target: Path
    formats: List[str]
    summary: Summary


def convert(
    inputs: Sequence[Path],
    output: Path,
    *,
    format: str = "auto",
    lang: str = "en",
    spans_key: str = "sc",
    alignment_mode: str = "strict",
    options: Optional[ReadOptions] = None,
    join: bool = False,
    folds: int = 0,
    progress: bool = False,
) -> List[Converted]:
    """Read all inputs, then write all outputs.

    output: A name in .spacy takes all inputs; anything else is a folder with one file per input.
    alignment_mode: What to do with a character span that ends within a token: "strict" drops it,
        "contract" takes the tokens it holds whole, "expand" those it touches. All are counted.
    options: Of the readers, for facts that the file does not contain.
    join: Make one document of all sentences of an output file that share a document id.
    folds: Write this many pairs of a training and a test file instead of each output file.
    """
    require_language(lang)
    options = replace(options or ReadOptions(), spans_key=spans_key)
    build = partial(
        build_doc, nlp=spacy.blank(lang), spans_key=spans_key, alignment_mode=alignment_mode
    )
    results: List[Converted] = []
    contents: Dict[Path, bytes] = {}
    for target, paths in plan(inputs, output).items():
        summary = Summary()
        formats = [format_of(path, format) for path in paths]
        if "spacy" in formats and target.exists():
            raise CorpusError(Errors.S106.format(target=target))
        read = read_documents(paths, formats, options, build, summary, progress=progress)
        docs = list(join_by_id(read) if join else read)
        if not summary.docs:
            raise CorpusError(no_documents(paths, summary))
        if folds > len(docs):
            raise CorpusError(Errors.S141.format(target=target, n_docs=len(docs), folds=folds))
        summary.docs = len(docs)
        contents.update(output_files(target, docs, folds))
        results.append(Converted(target, formats, summary))
    write_all(contents)
    return results


def output_files(target: Path, docs: List[Doc], folds: int) -> Dict[Path, bytes]:
    """One file, or for each fold two."""
    files = {target: docs}
    if folds:
        files = {
            target.with_name(f"{target.stem}-{number}-{part}{SUFFIX}"): chosen
            for number, fold in enumerate(split_folds(docs, folds))
            for part, chosen in zip(("train", "test"), fold, strict=True)
        }
    return {
        path: DocBin(docs=chosen, store_user_data=True).to_bytes() for path, chosen in files.items()
    }


def require_language(lang: str) -> None:
    try:
        get_lang_class(lang)
    except ImportError as error:
        raise CorpusError(Errors.S105.format(lang=lang)) from error


def no_documents(paths: Sequence[Path], summary: Summary) -> str:
    reasons = "; ".join(
        f"{count:,} {what} were left out" for what, count in summary.skipped.items()
    )
    names = ", ".join(map(str, paths))
    reason = "no documents found" + (f" ({reasons})" if reasons else "")
    return Errors.S029.format(path=names, reason=reason)


def read_documents(
    paths: Sequence[Path],
    formats: Sequence[str],
    options: ReadOptions,
    build: Callable[..., Doc],
    summary: Summary,
    *,
    progress: bool,
) -> Iterator[Doc]:
    """The documents of all files of one output; what is left out is counted."""
    hide = None if progress else True  # None: a bar only on a terminal
    for path, name in zip(paths, formats, strict=True):
        records = READERS[name](path, options)
        for record in tqdm(records, desc=path.name, unit=" docs", disable=hide, delay=1):
            if not record.is_document:
                summary.skipped.update(record.skipped)
            elif record.is_blank:
                summary.skipped[NO_TEXT] += 1
            else:
                yield build(record, summary=summary)


def plan(inputs: Sequence[Path], output: Path) -> Dict[Path, List[Path]]:
    """Which inputs go into which file."""
    if output.suffix == SUFFIX:
        return {output: list(inputs)}
    if output.is_file():
        reason = "the last argument is the output: a folder, or a file in .spacy"
        raise CorpusError(Errors.S029.format(path=output, reason=reason))
    targets: Dict[Path, List[Path]] = {}
    for path in inputs:
        name = folder_name(path) if path.is_dir() else base_name(path)
        target = output / (name + SUFFIX)
        if target in targets:
            first = targets[target][0]
            raise CorpusError(Errors.S022.format(first=first, second=path, target=target))
        targets[target] = [path]
    return targets


def folder_name(path: Path) -> str:
    """The name of a folder, also of `.` and `..`, which do not show it; the root has none."""
    return Path(os.path.abspath(path)).name or "root"


def write_all(contents: Dict[Path, bytes]) -> None:
    """Write beside each target first: a failure leaves neither half a file nor half the files."""
    parts = {target: target.with_name(f".{target.name}.{os.getpid()}") for target in contents}
    try:
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            parts[target].write_bytes(content)
        for target, part in parts.items():
            os.replace(part, target)
    except OSError as error:  # no space, no right, no such place
        names = ", ".join(map(str, contents))
        reason = error.strerror or error
        raise OutputError(Errors.S113.format(path=names, reason=reason)) from error
    finally:
        for part in parts.values():
            with suppress(OSError):  # where there is no such place, there is nothing to remove
                part.unlink(missing_ok=True)
