"""A worker: loads the pipeline once, then annotates and writes shard after shard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import List, NamedTuple, Tuple

from spacy.tokens import Doc

from ..errors import OutputError
from .annotation import Annotator, Row, make_row
from .records import read_records
from .shards import Shard
from .writers import SUFFIXES, WRITERS, json_lines, write_whole

REJECTS = "rejects"


@dataclass(frozen=True)
class Settings:
    """All a worker has to know.

    output: The folder of the run; every worker must reach it, and the inputs, by the same path.
    sources: Where entities are taken from: "ents" and keys of span groups; empty for all.
    gpu_id: Device number, or -1 for the CPU.
    threads: Threads of torch in each worker; 0 leaves them as they are.
    """

    model: str
    output: str
    format: str
    text_field: str
    sources: Tuple[str, ...]
    relations: bool
    batch_size: int
    gpu_id: int = -1
    threads: int = 0


class Done(NamedTuple):
    """What became of a shard. `failure` says why it, and the run, had to stop."""

    name: str
    docs: int = 0
    words: int = 0
    rejects: int = 0
    failure: str = ""


def part_path(output: str, name: str, format: str) -> Path:
    return Path(output) / f"part-{name}{SUFFIXES[format]}"


class Worker:
    """The same on every engine, so that the results are."""

    def __init__(self, settings: Settings):
        import spacy
        import torch

        if settings.threads:
            torch.set_num_threads(settings.threads)
        if settings.gpu_id >= 0:
            spacy.require_gpu(settings.gpu_id)
        self.settings = settings
        self.annotator = Annotator(spacy.load(settings.model), batch_size=settings.batch_size)

    def __call__(self, shard: Shard) -> Done:
        """Annotate a shard and write it, unless it is there already, as it is when an engine asks
        again because it lost the answer."""
        target = part_path(self.settings.output, shard.name, self.settings.format)
        if target.exists():
            return Done(shard.name)
        nlp = self.annotator.nlp
        with nlp.memory_zone():  # the strings of a billion documents do not fit in memory
            content, rejects, done = self._annotate(shard)
        try:
            if rejects:
                path = target.parent / REJECTS / f"part-{shard.name}.jsonl"
                write_whole(path, json_lines(rejects))
            write_whole(target, content)  # last: from here on the shard counts as done
        except OutputError as error:  # told as a result: engines bury exceptions in their own
            return Done(shard.name, failure=str(error))
        return done

    def _annotate(self, shard: Shard) -> Tuple[bytes, List[Row], Done]:
        settings, file = self.settings, shard.file.name
        rows: List[Row] = []
        docs: List[Doc] = []
        rejects: List[Row] = []
        words = 0
        records = read_records(shard, self.annotator.nlp.vocab, text_field=settings.text_field)
        for found in self.annotator(records):
            if found.doc is None:
                number = found.record.number
                rejects.append({"file": file, "record": number, "reason": found.reason})
                continue
            words += len(found.doc)
            row = make_row(file, found, sources=settings.sources, relations=settings.relations)
            rows.append(row)
            if settings.format == "spacy":
                docs.append(found.doc)
        content = WRITERS[settings.format](rows, docs)
        return content, rejects, Done(shard.name, len(rows), words, len(rejects))


@lru_cache(maxsize=1)
def worker_of(settings: Settings) -> Worker:
    """The one worker of this process."""
    return Worker(settings)
