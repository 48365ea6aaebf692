"""Who runs the workers: this process, a pool of processes, Ray Data or Spark.

Each engine takes the shards that are left and yields what became of them, in any order.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import sys
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Dict, Generator, Iterator, List, Optional, Tuple

from ..corpus.record import CorpusError
from ..errors import Errors
from .inputs import Shard, display_name
from .pool import end_with_driver, run_in_pool
from .worker import ShardResult, Worker, WorkerSettings

THREADS = "OMP_NUM_THREADS"  # OpenBLAS and MKL read it too
ATTEMPTS = 4  # of Spark at a shard, as on a cluster
TASKS_OF_A_JOB = 8  # of Spark, for each worker
Results = Generator[ShardResult, None, None]


@dataclass(frozen=True)
class Workers:
    """Where workers run.

    count: Processes, Ray actors or Spark partitions at a time.
    address: Of a Ray cluster or a Spark master; None starts one on this machine.
    """

    count: int = 1
    address: Optional[str] = None


def run_local(shards: List[Shard], settings: WorkerSettings, workers: Workers) -> Results:
    """In this process, or in a pool of them that each load the pipeline."""
    if workers.count == 1:
        yield from Worker(settings).run(shards)
        return
    try:
        settings = one_thread(settings)
        with threads_of_processes(settings.threads):
            yield from run_in_pool(Worker, settings, shards, count=workers.count)
    except (EOFError, ConnectionError) as error:
        raise CorpusError(Errors.S054.format(path=display_name(settings.output))) from error


@contextlib.contextmanager
def starting(engine: str) -> Iterator[None]:
    """Engines that do not start say so in many ways, each a trace of its own."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise CorpusError(Errors.S127.format(engine=engine, reason=reason)) from error


@contextlib.contextmanager
def threads_of_processes(count: int) -> Iterator[None]:
    """Number of threads of numpy in processes that are started in this context: numpy reads it when
    it is imported."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = str(count)
    try:
        yield
    finally:
        del os.environ[THREADS]
        if before is not None:
            os.environ[THREADS] = before


def one_thread(settings: WorkerSettings) -> WorkerSettings:
    """Workers side by side use one thread each, unless set otherwise: more would only compete."""
    return replace(settings, threads=settings.threads or 1)


class RayWorker:
    """An actor of Ray Data. The pipeline never travels: each actor loads it by its path.

    driver: Host and process of the command; Ray may let actors finish their shards without it.
    """

    def __init__(self, settings: WorkerSettings, driver: Tuple[str, int]):
        end_with_driver(*driver)
        self.worker = Worker(settings)

    def __call__(self, batch: Dict[str, Any]) -> Dict[str, List[Any]]:
        results = [self.worker(Shard.from_dict(json.loads(str(text)))) for text in batch["shard"]]
        return {name: list(values) for name, values in zip(ShardResult._fields, zip(*results))}


def run_ray(shards: List[Shard], settings: WorkerSettings, workers: Workers) -> Results:
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
        options: Dict[str, Any] = {} if workers.address else {"include_dashboard": False}
        address = workers.address or "local"
        if not workers.address:
            # Ray's workers would yield to all other processes: on a busy machine they hardly start.
            os.environ.setdefault("RAY_worker_niceness", "0")
        with starting("Ray"):
            ray.init(address, log_to_driver=False, logging_level=logging.WARNING, **options)
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    ray.data.DataContext.get_current().enable_progress_bars = False
    on_gpu = settings.gpu_id >= 0
    # Ray shows each actor the device it may use, and no other.
    settings = replace(one_thread(settings), gpu_id=0 if on_gpu else -1)
    rows = [{"shard": json.dumps(asdict(shard))} for shard in shards]
    # A block of its own for each shard: it is what an actor gets, and what is repeated.
    data = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        RayWorker,
        fn_constructor_args=[settings, (socket.gethostname(), os.getpid())],
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(workers.count, len(shards))),
        num_cpus=1,
        num_gpus=1 if on_gpu else 0,
    )
    for row in data.iter_rows():
        yield ShardResult(**{name: row[name] for name in ShardResult._fields})


@lru_cache(maxsize=1)
def worker_of(settings: WorkerSettings) -> Worker:
    """The one worker of this process: Spark asks for it in every task."""
    return Worker(settings)


def run_spark(shards: List[Shard], settings: WorkerSettings, workers: Workers) -> Results:
    """A task for each shard; Spark repeats the tasks it loses."""
    try:
        from pyspark import SparkConf, SparkContext
    except ImportError as error:
        raise CorpusError(Errors.S055.format(engine="Spark", extra="spark")) from error

    def annotate(text: str) -> Tuple[Any, ...]:
        return tuple(worker_of(settings)(Shard.from_dict(json.loads(text))))

    settings = one_thread(settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Without a number of attempts a master on this machine repeats nothing.
    master = workers.address or f"local[{workers.count}, {ATTEMPTS}]"
    conf = SparkConf().setMaster(master).setAppName("spacy spanner annotate")
    conf.set("spark.ui.showConsoleProgress", "false")
    if not workers.address:
        conf.set("spark.ui.enabled", "false")
    with starting("Spark"):
        context = SparkContext.getOrCreate(conf)
    # Results come when all tasks of a job are done: several jobs show progress, and stop early.
    step = TASKS_OF_A_JOB * workers.count
    for first in range(0, len(shards), step):
        texts = [json.dumps(asdict(shard)) for shard in shards[first : first + step]]
        for fields in context.parallelize(texts, numSlices=len(texts)).map(annotate).collect():
            yield ShardResult(*fields)


ENGINES = {"local": run_local, "ray": run_ray, "spark": run_spark}
