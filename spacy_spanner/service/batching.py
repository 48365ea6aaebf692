"""Texts of many requests through the pipeline together: one thread works, requests wait for it.

While the model is busy, texts collect; then all of them that fit are one batch. Only where it is idle
does a first text wait for others, and never longer than `Limits.wait`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Deque, Dict, List, NamedTuple, Optional

from spacy.language import Language

from ..distributed.records import InputRecord
from ..distributed.worker import Annotator, entity_rows, ents_keys, relation_rows
from .metrics import Metrics

BATCH_WORDS = 4000
Result = Dict[str, Any]  # "entities" and "relations", or "error"


@dataclass(frozen=True)
class Limits:
    """Limits beyond which requests are refused.

    wait: Seconds that a text waits for others, at most.
    read: Seconds that a client may take to send its request.
    """

    characters: int = 100_000  # of a text
    texts: int = 256  # of a request
    body: int = 4_000_000  # bytes of a request
    queue: int = 2_000  # texts that wait
    batch: int = 64  # texts that go through the pipeline together
    wait: float = 0.005
    read: float = 10.0


class QueueFull(Exception):
    """More texts wait than may."""


class Waiting(NamedTuple):
    """A text of a request that has been accepted."""

    text: str
    result: asyncio.Future[Result]
    since: float


class Batcher:
    """Runs the pipeline for all requests. `run` is the loop; it ends after `stop` when nothing waits."""

    def __init__(self, nlp: Language, limits: Limits, metrics: Metrics):
        self.annotator = Annotator(nlp, batch_words=BATCH_WORDS, batches_ahead=0)
        self.ents_keys = ents_keys(nlp)
        self.limits = limits
        self.metrics = metrics
        self.waiting: Deque[Waiting] = deque()
        self.has_work = asyncio.Event()
        self.is_stopping = False
        self.thread = ThreadPoolExecutor(1)
        self._loop: Optional[asyncio.Task] = None

    def start(self) -> None:
        self._loop = asyncio.create_task(self.run())

    async def stop(self) -> None:
        """Everything that was accepted is answered first."""
        self.is_stopping = True
        self.has_work.set()
        if self._loop is not None:
            await self._loop
        self.thread.shutdown()

    async def annotate(self, texts: List[str]) -> List[Result]:
        """All texts of a request, or none if there is no room for them."""
        if len(self.waiting) + len(texts) > self.limits.queue:
            raise QueueFull
        loop, now = asyncio.get_running_loop(), time.monotonic()
        items = [Waiting(text, loop.create_future(), now) for text in texts]
        self.waiting.extend(items)
        self.metrics.texts.inc(len(items))
        self.metrics.waiting.set(len(self.waiting))
        self.has_work.set()
        try:
            return await asyncio.gather(*(item.result for item in items))
        finally:
            for item in items:
                item.result.cancel()  # the client has hung up; nothing where there is a result

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.has_work.wait()
            if not self.waiting and self.is_stopping:
                return
            if self.waiting:
                await self.let_others_come()
            batch = self.take()
            if batch:
                texts = [item.text for item in batch]
                results = await loop.run_in_executor(self.thread, self.annotated, texts)
                for item, result in zip(batch, results, strict=True):
                    if not item.result.done():
                        item.result.set_result(result)

    async def let_others_come(self) -> None:
        left = self.waiting[0].since + self.limits.wait - time.monotonic()
        if len(self.waiting) < self.limits.batch and left > 0 and not self.is_stopping:
            await asyncio.sleep(left)

    def take(self) -> List[Waiting]:
        """The next batch, without texts whose client has hung up."""
        batch: List[Waiting] = []
        while self.waiting and len(batch) < self.limits.batch:
            item = self.waiting.popleft()
            if not item.result.done():
                batch.append(item)
        self.metrics.waiting.set(len(self.waiting))
        if not self.waiting and not self.is_stopping:
            self.has_work.clear()
        return batch

    def annotated(self, texts: List[str]) -> List[Result]:
        """In the thread of the model. Whatever fails, every text gets an answer."""
        before = time.perf_counter()
        try:
            with self.annotator.zone():
                records = [InputRecord(number, text) for number, text in enumerate(texts)]
                found = self.annotator(records)
                self.metrics.words.inc(sum(len(r.doc) for r in found if r.doc is not None))
                results: List[Result] = [
                    {"error": result.reason}
                    if result.doc is None
                    else {
                        "entities": entity_rows(result.doc, ents_keys=self.ents_keys),
                        "relations": relation_rows(result.doc),
                    }
                    for result in found
                ]
                del found  # before the zone ends
        except Exception as error:
            results = [{"error": f"{type(error).__name__}: {error}"} for _ in texts]
        self.metrics.batches.observe(len(texts))
        self.metrics.seconds_of_model.inc(time.perf_counter() - before)
        return results
