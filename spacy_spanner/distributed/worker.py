"""A worker: loads the pipeline once, then reads, annotates and writes shard after shard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus.docs import scored_spans
from ..errors import OutputError
from ..relations import doc_relations
from ..span_scores import SpanKey, span_key
from .inputs import Shard
from .output import WRITERS, Row, json_lines, part_name, write_shard
from .records import InputRecord, read_records

ENTS = "ents"  # the source that stands for `doc.ents`
DIGITS = 4  # of a score: what lies beyond depends on the number of threads


@dataclass(frozen=True)
class WorkerSettings:
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


class ShardResult(NamedTuple):
    """What became of a shard. `failure` says why it, and the run, had to stop."""

    name: str
    docs: int = 0
    words: int = 0
    rejects: int = 0
    failure: str = ""


class Annotated(NamedTuple):
    """A record with its document, or without one and with the reason why."""

    record: InputRecord
    doc: Optional[Doc]
    reason: Optional[str] = None


class Annotator:
    """Runs a pipeline over records. What fails is reported, and stops nothing."""

    def __init__(self, nlp: Language, *, batch_size: int):
        self.nlp = nlp
        self.batch_size = batch_size
        self._errors: List[Exception] = []
        nlp.set_error_handler(self._note_error)  # type: ignore[arg-type]  # it may return

    def _note_error(self, name: str, pipe: Any, docs: List[Doc], error: Exception) -> None:
        self._errors.append(error)

    def __call__(self, records: Iterable[InputRecord]) -> Iterator[Annotated]:
        """Batches are cut here, so that a result does not depend on the engine or on restarts."""
        for batch in minibatch(records, self.batch_size):
            yield from self._annotate(batch)

    def _annotate(self, batch: List[InputRecord]) -> List[Annotated]:
        results = [self._start(record) for record in batch]
        docs = [result.doc for result in results if result.doc is not None]
        self._errors.clear()
        found = iter(list(self.nlp.pipe(docs, batch_size=self.batch_size)))
        if not self._errors:
            return [r if r.doc is None else r._replace(doc=next(found)) for r in results]
        if len(batch) > 1:  # spaCy drops the whole batch of a component that failed
            return [result for record in batch for result in self._annotate([record])]
        error = self._errors[0]
        return [Annotated(batch[0], None, f"{type(error).__name__}: {error}")]

    def _start(self, record: InputRecord) -> Annotated:
        if record.reason is not None:
            return Annotated(record, None, record.reason)
        try:
            return Annotated(record, record.make_doc(self.nlp))
        except ValueError as error:  # longer than `nlp.max_length`
            return Annotated(record, None, str(error))


class Worker:
    """The same on every engine, so that the results are."""

    def __init__(self, settings: WorkerSettings):
        import spacy
        import torch

        if settings.threads:
            torch.set_num_threads(settings.threads)
        if settings.gpu_id >= 0:
            spacy.require_gpu(settings.gpu_id)
        self.settings = settings
        self.annotator = Annotator(spacy.load(settings.model), batch_size=settings.batch_size)
        self.ents_keys = ents_keys(self.annotator.nlp)

    def __call__(self, shard: Shard) -> ShardResult:
        """Annotate a shard and write it, unless it is there already, as it is when an engine asks
        again because it lost the answer."""
        folder, format = Path(self.settings.output), self.settings.format
        if (folder / part_name(shard.name, format)).exists():
            return ShardResult(shard.name)
        with self.annotator.nlp.memory_zone():  # the strings of a billion documents fit nowhere
            content, rejects, result = self._annotate(shard)
        try:
            write_shard(folder, shard.name, content=content, rejects=rejects, format=format)
        except OutputError as error:  # given as a result: engines bury exceptions in their own
            return ShardResult(shard.name, failure=str(error))
        return result

    def _annotate(self, shard: Shard) -> Tuple[bytes, bytes, ShardResult]:
        settings, file = self.settings, shard.file.name
        rows: List[Row] = []
        docs: List[Doc] = []
        rejects: List[Row] = []
        words = 0
        records = read_records(shard, self.annotator.nlp.vocab, text_field=settings.text_field)
        for record, doc, reason in self.annotator(records):
            row: Row = {"file": file, "record": record.number}
            if doc is None:
                rejects.append({**row, "reason": reason})
                continue
            words += len(doc)
            row["text"] = doc.text
            row["entities"] = entity_rows(doc, settings.sources, ents_keys=self.ents_keys)
            if settings.relations:
                row["relations"] = relation_rows(doc)
            rows.append({**row, "meta": dict(record.meta)})
            if settings.format == "spacy":
                docs.append(doc)
        content = WRITERS[settings.format](rows, docs)
        result = ShardResult(shard.name, len(rows), words, len(rejects))
        return content, json_lines(rejects), result


def ents_keys(nlp: Language) -> List[str]:
    """Span groups in which components repeat `doc.ents` to give confidences."""
    settings = [getattr(pipe, "cfg", {}) for _, pipe in nlp.pipeline]
    return [cfg["ents_key"] for cfg in settings if isinstance(cfg, dict) and "ents_key" in cfg]


def entity_rows(
    doc: Doc, sources: Collection[str] = (), *, ents_keys: Collection[str] = ()
) -> List[Row]:
    """The spans of `doc.ents` and of all span groups, or of those named in `sources`. Offsets are in
    characters, ends exclusive.

    ents_keys: Groups that repeat `doc.ents`; they are left out unless they are asked for.
    """
    wanted = set(sources) or {ENTS, *doc.spans} - (set(ents_keys) - {ENTS})
    rows = []
    for source in [ENTS, *sorted(set(doc.spans) - {ENTS})]:
        if source in wanted:
            output = "ents" if source == ENTS else "spans"
            found = scored_spans(doc, output=output, spans_key=source) or {}
            for key, score in found.items():
                rows.append({**span_fields(key), "score": rounded(score), "source": source})
    return rows


def relation_rows(doc: Doc) -> List[Row]:
    """The relations of a document, with the offsets of both ends."""
    return [
        {
            "head": span_fields(span_key(relation.head)),
            "tail": span_fields(span_key(relation.tail)),
            "label": relation.label,
            "score": rounded(relation.score),
        }
        for relation in doc_relations(doc)
    ]


def span_fields(key: SpanKey) -> Row:
    """A span in plain values."""
    return dict(zip(("start", "end", "label"), key))


def rounded(score: Any) -> Optional[float]:
    """None where there is no score."""
    return None if score is None else round(float(score), DIGITS)
