"""A whole run of annotation: find the inputs, cut them, run the shards that are left."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Iterator, List, NamedTuple, Optional, Sequence

from tqdm import tqdm

from ..corpus.record import CorpusError
from ..errors import Errors, OutputError
from .engines import ENGINES, Workers
from .inputs import find_inputs
from .manifest import Plan, locked, plan_run
from .worker import ShardResult, WorkerSettings


class Totals(NamedTuple):
    """What a run did since it was last started; `earlier` shards were finished before, `damaged` ones
    had to be done again."""

    shards: int
    earlier: int
    damaged: int
    docs: int
    words: int
    rejects: int
    seconds: float
    products: str  # what computed matrix products
    encoder: str  # what ran a transformer of spacy-transformers
    no_sources: List[str]  # sources that were asked for and that no document has


def annotate_files(
    inputs: Sequence[str],
    settings: WorkerSettings,
    *,
    engine: str = "local",
    workers: Optional[Workers] = None,
    input_format: str = "auto",
    shard_size: int = 1000,
    stdin: Optional[IO[bytes]] = None,
    progress: bool = False,
) -> Totals:
    """Annotate all records of all inputs, each once, whatever happened to earlier attempts."""
    output = Path(settings.output)
    with locked(output):
        files = find_inputs(
            inputs, format=input_format, output=output, stdin=stdin or sys.stdin.buffer
        )
        formats = {settings.format, *(file.format for file in files)}
        if "parquet" in formats and find_spec("pyarrow") is None:
            raise CorpusError(Errors.S055.format(engine="PyArrow", extra="parquet"))
        plan = plan_run(settings, files, shard_size=shard_size)
        begin = time.perf_counter()
        results: List[ShardResult] = []
        if plan.todo:
            # closed at once if the run is interrupted, as it ends the workers
            with closing(ENGINES[engine](plan.todo, settings, workers or Workers())) as found:
                results = list(watch(found, plan, progress=progress))
    return Totals(
        shards=len(plan.shards),
        earlier=len(plan.shards) - len(plan.todo),
        damaged=plan.damaged,
        docs=sum(result.docs for result in results),
        words=sum(result.words for result in results),
        rejects=sum(result.rejects for result in results),
        seconds=time.perf_counter() - begin,
        products=", ".join(sorted({result.products for result in results} - {""})),
        encoder=", ".join(sorted({result.encoder for result in results} - {""})),
        no_sources=missing_sources(settings, results),
    )


def missing_sources(settings: WorkerSettings, results: Sequence[ShardResult]) -> List[str]:
    """Sources that were asked for and that no document of these shards has."""
    has = {source for result in results for source in result.sources.split("\n")}
    return sorted(set(settings.sources) - has) if any(result.words for result in results) else []


def watch(results: Iterator[ShardResult], plan: Plan, *, progress: bool) -> Iterator[ShardResult]:
    """Show how far the run is: records, and words a second since the start."""
    sizes = {shard.name: shard.count for shard in plan.shards}
    earlier = sum(sizes.values()) - sum(shard.count for shard in plan.todo)
    begin, words = time.perf_counter(), 0
    # None: a bar only on a terminal
    hide = None if progress else True
    with tqdm(total=sum(sizes.values()), initial=earlier, unit=" docs", disable=hide) as bar:
        for result in results:
            if result.failure:
                raise OutputError(result.failure)
            words += result.words
            bar.set_postfix_str(f"{words / (time.perf_counter() - begin):,.0f} words/s", False)
            bar.update(sizes[result.name])
            yield result
