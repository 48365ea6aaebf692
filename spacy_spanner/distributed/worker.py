"""A worker: loads the pipeline once, then reads, annotates and writes shard after shard."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import (
    Any,
    Callable,
    Collection,
    ContextManager,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
)

from spacy.language import Language
from spacy.tokens import Doc

from ..acceleration import (
    remember_codecs,
    settled_objects,
    use_fastest_encoder,
    use_fastest_layers,
    use_fastest_ops,
)
from ..corpus.docs import scored_spans
from ..errors import OutputError
from ..relations import doc_relations
from ..span_scores import SpanKey, span_key
from .ahead import ahead
from .inputs import Shard
from .output import WRITERS, Row, json_lines, part_name, write_shard
from .records import InputRecord, read_records

ENTS = "ents"  # the name of `doc.ents` as a source
FIRST_TEXTS = 8  # on which two encoders are compared
NEW_WORDS = 100_000  # that a vocabulary may grow by: some ten MB
DIGITS = 4  # of a score: what lies beyond depends on the number of threads


@dataclass(frozen=True)
class WorkerSettings:
    """All a worker has to know.

    output: The folder of the run; every worker must reach it, and the inputs, by the same path.
    sources: Where entities are taken from: "ents" and keys of span groups; empty for all.
    batch_words: Words of the documents that go through the pipeline together, if there are several.
    gpu_id: Device number, or -1 for the CPU.
    threads: Threads of torch in each worker; 0 leaves them as they are.
    fast_transformer: Let our encoder run the transformer of spacy-transformers where that is safe.
    """

    model: str
    output: str
    format: str
    text_field: str
    sources: Tuple[str, ...]
    relations: bool
    batch_words: int
    gpu_id: int = -1
    threads: int = 0
    fast_transformer: bool = True


class ShardResult(NamedTuple):
    """What became of a shard. `failure` says why it, and the run, had to stop; `products` what
    computed matrix products, `encoder` what ran a transformer of spacy-transformers; `sources` which of
    the wanted ones the documents have, one a line."""

    name: str
    docs: int = 0
    words: int = 0
    rejects: int = 0
    failure: str = ""
    products: str = ""
    encoder: str = ""
    sources: str = ""


class Annotated(NamedTuple):
    """A record with its document, or without one and with the reason why."""

    record: InputRecord
    doc: Optional[Doc]
    reason: Optional[str] = None


class Annotator:
    """Runs a pipeline over records. What fails is reported, and stops nothing.

    batches_ahead: That a thread of their own tokenizes before the model needs them.
    """

    def __init__(self, nlp: Language, *, batch_words: int, batches_ahead: int = 2):
        self.nlp = nlp
        self.batch_words = batch_words
        self.batches_ahead = batches_ahead
        self.most_words = len(nlp.vocab) + NEW_WORDS
        self._errors: List[Exception] = []
        nlp.default_error_handler = self._note_error  # type: ignore[assignment]  # it may return
        for _, pipe in nlp.pipeline:
            # spaCy's `ner` and `parser` cannot keep one (3.8.18): what they raise is caught.
            with suppress(AttributeError):
                pipe.set_error_handler(self._note_error)  # type: ignore[attr-defined]

    def _note_error(self, name: str, pipe: Any, docs: List[Doc], error: Exception) -> None:
        self._errors.append(error)

    def zone(self) -> ContextManager[Any]:
        """For what is done with some documents. The strings of a billion documents fit nowhere: in a
        memory zone they are freed with them. But what the tokenizer meets in a zone it does not
        remember, so it meets the frequent words before there is one."""
        is_full = len(self.nlp.vocab) > self.most_words
        return self.nlp.memory_zone() if is_full else nullcontext()

    def __call__(self, records: Iterable[InputRecord]) -> List[Annotated]:
        """All of them, in the order of their numbers. Batches depend on the records alone, so that a
        result does not depend on the engine or on restarts."""
        batches = ahead(self._batches(records), self.batches_ahead)
        results = [result for batch in batches for result in self._annotate(batch)]
        return sorted(results, key=lambda result: result.record.number)

    def _batches(self, records: Iterable[InputRecord]) -> Iterator[List[Annotated]]:
        """Documents of similar length together, not annotated yet: that saves padding."""
        batch: List[Annotated] = []
        n_words = 0
        for record in sorted(records, key=InputRecord.size):
            result = self._start(record)
            n_own = 0 if result.doc is None else len(result.doc)
            if batch and n_words + n_own > self.batch_words:
                yield batch
                batch, n_words = [], 0
            batch.append(result)
            n_words += n_own
        yield batch

    def _annotate(self, batch: List[Annotated]) -> List[Annotated]:
        docs = [result.doc for result in batch if result.doc is not None]
        self._errors.clear()
        try:
            found = iter(list(self.nlp.pipe(docs, batch_size=max(1, len(docs)))))
        except Exception as error:  # of a component that knows no handler
            self._errors.append(error)
        if not self._errors:
            return [r if r.doc is None else r._replace(doc=next(found)) for r in batch]
        if len(batch) > 1:  # spaCy drops the whole batch of a component that failed
            return [result for r in batch for result in self._annotate([self._start(r.record)])]
        first = self._errors[0]
        return [Annotated(batch[0].record, None, f"{type(first).__name__}: {first}")]

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
        self.products = use_fastest_ops()
        remember_codecs()
        nlp = spacy.load(settings.model)
        use_fastest_layers(nlp)
        self.annotator = Annotator(nlp, batch_words=settings.batch_words)
        self.ents_keys = ents_keys(nlp)
        self.encoder = None if settings.fast_transformer else ""  # None: not chosen yet

    def __call__(self, shard: Shard) -> ShardResult:
        """Annotate a shard and write it."""
        (result,) = self.run([shard])
        return result

    def run(self, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Annotate shard after shard. Meanwhile the next one is read and the last one written."""
        written: Optional[Future[ShardResult]] = None
        with settled_objects(), ThreadPoolExecutor(1) as writer:
            for write in map(self._annotate, ahead(map(self._read, shards), 1)):
                if written is not None:
                    yield written.result()
                written = writer.submit(write)
            if written is not None:
                yield written.result()

    def _read(self, shard: Shard) -> Tuple[Shard, Optional[List[InputRecord]]]:
        """No records if the shard is there already, as it is when an engine asks again because it
        lost the answer."""
        folder, format = Path(self.settings.output), self.settings.format
        if (folder / part_name(shard.name, format)).exists():
            return shard, None
        return shard, list(read_records(shard, text_field=self.settings.text_field))

    def _annotate(
        self, shard_read: Tuple[Shard, Optional[List[InputRecord]]]
    ) -> Callable[[], ShardResult]:
        """Annotate the records of a shard; the returned function writes the result."""
        shard, records = shard_read
        if records is None:
            return partial(ShardResult, shard.name)
        if self.encoder is None:
            self._choose_encoder(records)
        with self.annotator.zone():
            content, rejects, result = self._rows(shard, records)
        return partial(self._write, content, rejects, result)

    def _choose_encoder(self, records: List[InputRecord]) -> None:
        texts = [record.text for record in records if record.text][:FIRST_TEXTS]
        before = self.annotator.nlp
        nlp, self.encoder = use_fastest_encoder(before, texts)
        if nlp is not before:
            self.annotator = Annotator(nlp, batch_words=self.settings.batch_words)

    def _write(self, content: bytes, rejects: bytes, result: ShardResult) -> ShardResult:
        folder, format = Path(self.settings.output), self.settings.format
        try:
            write_shard(folder, result.name, content=content, rejects=rejects, format=format)
        except OutputError as error:  # given as a result: engines bury exceptions in their own
            return ShardResult(result.name, failure=str(error))
        return result

    def _rows(self, shard: Shard, records: List[InputRecord]) -> Tuple[bytes, bytes, ShardResult]:
        settings, file = self.settings, shard.file.name
        rows: List[Row] = []
        docs: List[Doc] = []
        rejects: List[Row] = []
        words = 0
        sources = set()
        for record, doc, reason in self.annotator(records):
            row: Row = {"file": file, "record": record.number}
            if doc is None:
                rejects.append({**row, "reason": reason})
                continue
            words += len(doc)
            if settings.sources:
                sources |= {*doc.spans, *([ENTS] if doc.has_annotation("ENT_IOB") else [])}
            row["text"] = record.text if record.words is None else doc.text
            row["entities"] = entity_rows(doc, settings.sources, ents_keys=self.ents_keys)
            if settings.relations:
                row["relations"] = relation_rows(doc)
            rows.append({**row, "meta": dict(record.meta)})
            if settings.format == "spacy":
                docs.append(doc)
        content = WRITERS[settings.format](rows, docs)
        result = ShardResult(
            shard.name,
            len(rows),
            words,
            len(rejects),
            products=self.products,
            encoder=self.encoder or "",
            sources="\n".join(sources.intersection(settings.sources)),
        )
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
    # Whether a document without entities is annotated is not asked: that looks at every token.
    for source in [*([ENTS] if doc.ents else []), *sorted(set(doc.spans) - {ENTS})]:
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
