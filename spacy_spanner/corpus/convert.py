"""Files of any known format to `.spacy` files, all of them or none."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence

import spacy
from spacy.tokens import DocBin
from tqdm import tqdm

from ..errors import Errors
from .brat import read_brat
from .build import Summary, build_doc
from .columns import read_conll, read_germeval
from .join import join_docs
from .jsons import read_jsonl, read_spert
from .record import CorpusError, Record, numbered_lines
from .tags import split_tag

Reader = Callable[[Path], Iterator[Record]]
READERS: Dict[str, Reader] = {
    "jsonl": read_jsonl,
    "conll": read_conll,
    "germeval": read_germeval,
    "brat": read_brat,
    "spert": read_spert,
}
SUFFIX = ".spacy"


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
    token_column: int = 0,
    tag_columns: Sequence[int] = (-1,),
    join: bool = False,
    progress: bool = False,
) -> List[Converted]:
    """Read all inputs, then write all outputs.

    output: A name in .spacy takes all inputs; anything else is a folder with one file per input.
    alignment_mode: What to do with a character span that ends within a token: "strict" drops it,
        "contract" takes the tokens it holds whole, "expand" those it touches. All are counted.
    token_column, tag_columns: For CoNLL columns, counted from 0, or from -1 at the end; nested
        spans have a tag column for each level.
    join: Make one document of all sentences of an output file that share a document id.
    """
    build = partial(
        build_doc, nlp=spacy.blank(lang), spans_key=spans_key, alignment_mode=alignment_mode
    )
    columns = partial(read_conll, token_column=token_column, tag_columns=tag_columns)
    results: List[Converted] = []
    contents: Dict[Path, bytes] = {}
    for target, paths in plan(inputs, output).items():
        doc_bin, summary = DocBin(store_user_data=True), Summary()
        formats = [format_of(path, format) for path in paths]
        readers = [columns if name == "conll" else READERS[name] for name in formats]
        records = read_all(paths, readers, progress=progress)
        docs = (build(record, summary=summary) for record in records)
        for doc in join_docs(docs) if join else docs:
            doc_bin.add(doc)
        if not summary.docs:
            raise CorpusError(Errors.S028.format(path=", ".join(map(str, paths))))
        summary.docs = len(doc_bin)
        contents[target] = doc_bin.to_bytes()
        results.append(Converted(target, formats, summary))
    write_all(contents)
    return results


def read_all(
    paths: Sequence[Path], readers: Sequence[Reader], *, progress: bool
) -> Iterator[Record]:
    hide = None if progress else True  # None: a bar only where somebody is looking
    for path, reader in zip(paths, readers, strict=True):
        yield from tqdm(reader(path), desc=path.name, unit=" docs", disable=hide, delay=1)


def plan(inputs: Sequence[Path], output: Path) -> Dict[Path, List[Path]]:
    """Which inputs go into which file."""
    if output.suffix == SUFFIX:
        return {output: list(inputs)}
    if output.is_file():
        reason = "the last argument is the output: a folder, or a file in .spacy"
        raise CorpusError(Errors.S029.format(path=output, reason=reason))
    targets: Dict[Path, List[Path]] = {}
    for path in inputs:
        target = output / ((path.name if path.is_dir() else path.stem) + SUFFIX)
        if target in targets:
            first = targets[target][0]
            raise CorpusError(Errors.S022.format(first=first, second=path, target=target))
        targets[target] = [path]
    return targets


def write_all(contents: Dict[Path, bytes]) -> None:
    """Write beside each target first: a failure leaves neither half a file nor half the files."""
    parts = {target: target.with_name(f".{target.name}.{os.getpid()}") for target in contents}
    try:
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            parts[target].write_bytes(content)
        for target, part in parts.items():
            os.replace(part, target)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def format_of(path: Path, format: str) -> str:
    if format == "auto":
        return detect_format(path)
    if path.is_dir() and format != "brat":
        reason = f"this is a folder; expected a file in format {format}"
        raise CorpusError(Errors.S029.format(path=path, reason=reason))
    return format


def detect_format(path: Path) -> str:
    """By kind of file and ending, else by the first lines."""
    if path.is_dir() or path.suffix == ".ann":
        return "brat"
    if path.suffix == ".txt" and path.with_suffix(".ann").is_file():
        return "brat"
    lines = (line for _, line in numbered_lines(path) if line.strip())
    first = next(lines, "")
    if first.lstrip().startswith("{"):
        return "jsonl"
    if first.lstrip().startswith("["):
        return "spert"
    columns = first.split("\t")
    if columns[0] == "#" and len(columns) < 4:
        columns = next(lines, "").split("\t")
    tags = [split_tag(column) for column in columns[2:]]
    if len(columns) == 4 and columns[0].isdigit() and None not in tags:
        return "germeval"
    if len(first.split()) > 1:
        return "conll"
    reason = f"cannot tell its format from its first line {first!r:.60}"
    raise CorpusError(Errors.S021.format(path=path, reason=reason, formats=", ".join(READERS)))
