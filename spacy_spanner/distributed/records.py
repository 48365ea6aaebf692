"""The records of a shard, good and bad."""

from __future__ import annotations

import csv
import json
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..corpus.docs import DOC_ID
from .shards import CountedLines, Shard

# The number of a record, and its fields or the reason why there are none.
Found = Tuple[int, Union[Dict[str, Any], str]]


class Record(NamedTuple):
    """One document to be, or the reason why it cannot be one."""

    number: int
    text: str = ""
    words: Optional[List[str]] = None  # where the file has tokens, they are kept
    spaces: Optional[List[bool]] = None
    meta: Mapping[str, Any] = MappingProxyType({})
    reason: Optional[str] = None

    def make_doc(self, nlp: Language) -> Doc:
        if self.words is None:
            return nlp.make_doc(self.text)
        return Doc(nlp.vocab, words=self.words, spaces=self.spaces)


def read_records(shard: Shard, vocab: Vocab, *, text_field: str) -> Iterator[Record]:
    """The records of a shard in order; a bad one has a `reason` and stops nothing."""
    if shard.file.format == "spacy":
        yield from read_spacy(shard, vocab)
    elif shard.file.format == "text":
        for number, line in lines_of(shard):
            yield checked_record(number, {"text": line}, "text")
    else:
        readers = {"jsonl": read_jsonl, "csv": read_csv, "parquet": read_parquet}
        for number, found in readers[shard.file.format](shard):
            yield checked_record(number, found, text_field)


def checked_record(number: int, found: Union[Dict[str, Any], str], text_field: str) -> Record:
    """The record, if it has a text and the rest of it can be written as JSON."""
    if isinstance(found, str):
        return Record(number, reason=found)
    if text_field not in found:
        names = ", ".join(map(repr, found)) or "none"
        return Record(number, reason=f"no field {text_field!r}; its fields: {names}")
    text = found[text_field]
    if not isinstance(text, str):
        kind = type(text).__name__
        return Record(number, reason=f"field {text_field!r} must be a text, found {kind}")
    meta = {name: value for name, value in found.items() if name != text_field}
    try:
        meta = json.loads(json.dumps(meta, allow_nan=False, default=str))
        json.dumps([text, meta], ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return Record(number, reason="not UTF-8, or half a surrogate pair")
    except ValueError as error:
        return Record(number, reason=f"its other fields cannot be kept: {error}")
    return Record(number, text, meta=meta)


def lines_of(shard: Shard) -> Iterator[Tuple[int, str]]:
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
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(shard.file.path) as file:
        begin, stop = 0, shard.start + shard.count
        for group in range(file.num_row_groups):
            end = begin + file.metadata.row_group(group).num_rows
            if begin < stop and shard.start < end:
                table = file.read_row_group(group)
                low, high = max(shard.start, begin) - begin, min(stop, end) - begin
                for i, found in enumerate(table.slice(low, high - low).to_pylist()):
                    yield begin + low + i + 1, found
            begin = end


@lru_cache(maxsize=1)
def load_docs(path: str, changed: int) -> DocBin:
    """The last file that was read: its shards mostly follow one another."""
    return DocBin().from_disk(path)


def read_spacy(shard: Shard, vocab: Vocab) -> Iterator[Record]:
    """The tokens of the documents and their id; the annotation that is there is not taken over."""
    docs = load_docs(shard.file.path, shard.file.fingerprint()["changed"])
    for string in docs.strings:
        vocab.strings.add(string)
    for i in range(shard.start, shard.start + shard.count):
        words = [vocab.strings[orth] for orth in docs.tokens[i][:, 0]]
        user_data = srsly.msgpack_loads(docs.user_data[i]) if i < len(docs.user_data) else {}
        doc_id = user_data.get(DOC_ID)
        yield Record(
            i + 1,
            words=words,
            spaces=docs.spaces[i][:, 0].tolist(),
            meta={DOC_ID: doc_id} if isinstance(doc_id, (str, int)) else {},
        )
