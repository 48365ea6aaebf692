"""Who runs the workers: this process, a pool of processes, Ray Data or Spark.

Each engine takes the shards that are left and yields what became of them, in any order.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterator, List, Optional

from ..corpus.record import CorpusError
from ..errors import Errors
from .inputs import InputFile
from .shards import Shard
from .worker import Done, Settings, Worker, worker_of


@dataclass(frozen=True)
class Places:
    """Where workers run.

    workers: Processes, Ray actors or Spark partitions at a time.
    address: Of a Ray cluster or a Spark master; None starts one on this machine.
    """

    workers: int = 1
    address: Optional[str] = None


def run_local(shards: List[Shard], settings: Settings, places: Places) -> Iterator[Done]:
    """In this process, or in a pool of them that each load the pipeline."""
    if places.workers == 1:
        worker = Worker(settings)
        yield from map(worker, shards)
        return
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads
    count = min(places.workers, len(shards))
    with ProcessPoolExecutor(count, mp_context=context, initializer=end_with_parent) as pool:
        futures = [pool.submit(run_shard, one_thread(settings), shard) for shard in shards]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise CorpusError(Errors.S054.format(path=settings.output)) from error
        finally:
            for future in futures:
                future.cancel()


def one_thread(settings: Settings) -> Settings:
    """Workers side by side use one thread each, unless told otherwise: more would only compete."""
    return replace(settings, threads=settings.threads or 1)


def run_shard(settings: Settings, shard: Shard) -> Done:
    return worker_of(settings)(shard)


def end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def shard_to_json(shard: Shard) -> str:
    return json.dumps(asdict(shard))


def shard_from_json(text: str) -> Shard:
    fields = json.loads(text)
    return Shard(**{**fields, "file": InputFile(**fields["file"])})


class RayWorker:
    """An actor of Ray Data. The pipeline never travels: each actor loads it by its path."""

    def __init__(self, settings: Settings):
        self.worker = Worker(settings)

    def __call__(self, batch: Dict[str, Any]) -> Dict[str, List[Any]]:
        done = [self.worker(shard_from_json(str(text))) for text in batch["shard"]]
        return {name: list(values) for name, values in zip(Done._fields, zip(*done))}


def run_ray(shards: List[Shard], settings: Settings, places: Places) -> Iterator[Done]:
    """`map_batches` over the shards with a fixed number of actors. Ray starts a lost actor again and
    repeats its shard."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise CorpusError(Errors.S055.format(engine="Ray", extra="ray")) from error

    if not ray.is_initialized():
        # An existing cluster refuses settings of a new one; without an address Ray would join any
        # cluster it finds on this machine.
        own: Dict[str, Any] = {} if places.address else {"include_dashboard": False}
        address = places.address or "local"
        ray.init(address, log_to_driver=False, logging_level=logging.WARNING, **own)
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    ray.data.DataContext.get_current().enable_progress_bars = False
    on_gpu = settings.gpu_id >= 0
    # Ray shows each actor the device it may use, and no other.
    settings = replace(one_thread(settings), gpu_id=0 if on_gpu else -1)
    rows = [{"shard": shard_to_json(shard)} for shard in shards]
    # A block of its own for each shard: it is what an actor gets, and what is repeated.
    data = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        RayWorker,
        fn_constructor_args=[settings],
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(places.workers, len(shards))),
        num_cpus=1,
        num_gpus=1 if on_gpu else 0,
    )
    for row in data.iter_rows():
        yield Done(**{name: row[name] for name in Done._fields})


def run_spark(shards: List[Shard], settings: Settings, places: Places) -> Iterator[Done]:
    """`mapInArrow` over the shards, a partition each; Spark repeats the tasks it loses."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise CorpusError(Errors.S055.format(engine="Spark", extra="spark")) from error

    def annotate(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            shards = map(shard_from_json, batch.column("shard").to_pylist())
            done = [run_shard(settings, shard)._asdict() for shard in shards]
            yield pyarrow.RecordBatch.from_pylist(done)

    settings = one_thread(settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = places.address or f"local[{places.workers}]"
    spark = SparkSession.builder.master(master).appName("spacy spanner annotate").getOrCreate()
    rows = spark.sparkContext.parallelize(
        [(shard_to_json(shard),) for shard in shards], numSlices=len(shards)
    )
    data = spark.createDataFrame(rows, "shard string").mapInArrow(
        annotate, "name string, docs long, words long, rejects long, failure string"
    )
    for row in data.toLocalIterator():
        yield Done(**row.asDict())


ENGINES = {"local": run_local, "ray": run_ray, "spark": run_spark}
