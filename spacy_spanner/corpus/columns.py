"""Column formats: CoNLL (a tag column for each level of nesting), CoNLL-U and GermEval 2014."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

from ..errors import Errors, Warnings
from .record import CorpusError, Place, RawSpan, ReadOptions, Record
from .source import base_name, numbered_lines
from .tags import checked_tag, split_tag, tags_to_spans

BLANKS = re.compile(r"[ \t]+")
DOCSTART = "-DOCSTART-"
CONLLU_COLUMNS = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]
GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
CONLLU_ID = re.compile(r"\d+([-.]\d+)?$")
NEW_DOCUMENT = re.compile(r"#\s*newdoc(\s+id\s*=\s*(.+))?")
N_SENTENCES = 20  # looked at to see whether the words are words
TAG_KEYS = ("NER", "NE", "Entity")  # in MISC, or the end of the name of a column


@dataclass
class Sentence:
    """The lines of a sentence as they come in: words, and a list of tags for each level."""

    words: List[str] = field(default_factory=list)
    levels: List[List[str]] = field(default_factory=list)
    first: Optional[Place] = None

    def add(self, place: Place, word: str, tags: Sequence[str]) -> None:
        self.first = self.first or place
        self.levels = self.levels or [[] for _ in tags]
        self.words.append(word)
        for level, tag in zip(self.levels, tags, strict=True):
            level.append(checked_tag(place, tag))

    def flush(self, doc_id: Optional[str]) -> Iterator[Record]:
        """The document, if there is one; then the sentence is empty again. The spans of all levels go into
        one list, so that they may nest."""
        if self.first is not None:
            spans: List[RawSpan] = [s for tags in self.levels for s in tags_to_spans(tags)]
            yield Record(self.first, words=self.words, spans=spans, doc_id=doc_id)
        self.words, self.levels, self.first = [], [], None


def split_columns(line: str) -> List[str]:
    """Columns separated by tabs where there are any, else by spaces."""
    stripped = line.rstrip(" \t")
    return stripped.split("\t") if "\t" in stripped else BLANKS.split(stripped.lstrip(" "))


def read_conll(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One document a sentence, with a warning where the words only count the lines of a sentence."""
    records = conll_sentences(path, options)
    first = list(islice(records, N_SENTENCES))
    if are_numbers([record.words or [] for record in first]):
        values = {"path": path, "column": options.token_column, "n": len(first)}
        first[0].warning = Warnings.SW28.format(**values)
    yield from first
    yield from records


def are_numbers(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether the words of each sentence are 1, 2, 3 and so on, and not just a 1."""
    longest = max(map(len, sentences), default=0)
    numbers = [str(number) for number in range(1, longest + 1)]
    return longest > 1 and all(words == numbers[: len(words)] for words in sentences)


def conll_sentences(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One document a sentence. Blank lines separate sentences; -DOCSTART- lines separate documents, whose
    running number becomes the document id. Lines like `# id = 7` before a sentence are skipped."""
    sentence = Sentence()
    n_docs = 0
    for place, line in numbered_lines(path):
        columns = split_columns(line)
        if columns == [""] or columns[0] == DOCSTART:
            yield from sentence.flush(f"{base_name(path)}-{n_docs}" if n_docs else None)
            n_docs += columns[0] == DOCSTART
            continue
        comment = columns[0].startswith("#") and split_tag(columns[-1]) is None
        if sentence.first is None and comment:
            continue
        word = pick(place, columns, options.token_column, "token")
        tags = [pick(place, columns, column, "tag") for column in options.tag_columns]
        sentence.add(place, word, tags)
    yield from sentence.flush(f"{base_name(path)}-{n_docs}" if n_docs else None)


def pick(place: Place, columns: Sequence[str], column: int, what: str) -> str:
    """One column of a line, counted from 0, or from -1 at the end."""
    if len(columns) < 2:
        place.fail(f"expected a token and a tag in columns, found only {columns[0]!r:.80}")
    if not -len(columns) <= column < len(columns):
        place.fail(
            f"there is no column {column} for the {what}: the line has {len(columns)}; "
            f"see --{what}-column"
        )
    if not columns[column]:
        place.fail(f"the {what} in column {column} is empty")
    return columns[column]


def read_germeval(path: Path, options: ReadOptions) -> Iterator[Record]:
    """Lines of index, token, outer tag, inner tag. A line `#<tab>source` names the document."""
    sentence = Sentence()
    source: Optional[str] = None
    for place, line in numbered_lines(path):
        columns = line.split("\t")
        if not line.strip() or columns[0] == "#":
            yield from sentence.flush(source)
            if columns[0] == "#":
                source = "\t".join(columns[1:]).strip() or None
            continue
        if len(columns) != 4 or not columns[0].isdigit() or not columns[1]:
            place.fail(
                "expected four columns separated by tabs (index, token, outer tag, inner tag), "
                f"found {columns!r:.120}"
            )
        sentence.add(place, columns[1], [tag.strip() for tag in columns[2:]])
    yield from sentence.flush(source)


def read_conllu(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One document a sentence. The tags are in MISC (`NER=B-PER`) or in a column of their own that
    `# global.columns` names; a word without one is outside. Lines of multi-word tokens and of empty
    nodes are passed over, as their words are in lines of their own or in none."""
    sentence = Sentence()
    names = CONLLU_COLUMNS
    doc_id: Optional[str] = None
    fields: Sequence[str] = options.tag_fields
    for place, line in numbered_lines(path):
        if not line.strip():
            yield from sentence.flush(doc_id)
            continue
        if line.startswith("#"):
            header, document = GLOBAL_COLUMNS.match(line), NEW_DOCUMENT.match(line)
            names = header[1].split() if header else names
            doc_id = document[2] if document else doc_id
            continue
        columns = line.split("\t")
        if len(columns) != len(names) or not CONLLU_ID.match(columns[0]):
            place.fail(
                f"expected {len(names)} columns separated by tabs ({', '.join(names)}), "
                f"found {columns!r:.120}"
            )
        if not columns[0].isdigit():
            continue
        row = dict(zip(names, columns, strict=True))
        if not row.get("FORM"):
            place.fail("the FORM of this word is empty")
        fields = fields or find_tag_field(row)
        sentence.add(place, row["FORM"], [tag_of(row, name) for name in fields] or ["O"])
    yield from sentence.flush(doc_id)
    if not fields:
        reason = f"no entity tags: no {', '.join(TAG_KEYS)} in MISC and no such column"
        raise CorpusError(Errors.S102.format(path=path, reason=reason))


def find_tag_field(row: Dict[str, str]) -> List[str]:
    """The column or key of MISC that has the tags, as soon as a word shows one."""
    columns = [name for name in row if name.upper().split(":")[-1] in ("NER", "NE", "ENTITY")]
    return columns[:1] or [name for name in TAG_KEYS if name in misc(row)][:1]


def misc(row: Dict[str, str]) -> Dict[str, str]:
    pairs = (part.partition("=") for part in row.get("MISC", "_").split("|"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def tag_of(row: Dict[str, str], name: str) -> str:
    tag = row[name] if name in row else misc(row).get(name, "O")
    return "O" if tag in ("_", "*", "") else tag
