"""A whole run of annotation: find the inputs, cut them, run the shards that are left."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Iterator, NamedTuple, Optional, Sequence

from tqdm import tqdm

from ..corpus.record import CorpusError
from ..errors import Errors, OutputError
from .engines import ENGINES, Places
from .inputs import find_inputs
from .run import Run, open_run
from .worker import Done, Settings


class Totals(NamedTuple):
    """What a run did since it was started last, and the shards it found done."""

    shards: int
    earlier: int
    docs: int
    words: int
    rejects: int
    seconds: float


def annotate(
    inputs: Sequence[str],
    settings: Settings,
    *,
    engine: str = "local",
    places: Optional[Places] = None,
    input_format: str = "auto",
    shard_size: int = 1000,
    stdin: Optional[IO[bytes]] = None,
    progress: bool = False,
) -> Totals:
    """Annotate all records of all inputs, each once, whatever happened to earlier attempts."""
    output = Path(settings.output)
    try:
        files = find_inputs(
            inputs, format=input_format, output=output, stdin=stdin or sys.stdin.buffer
        )
        formats = {settings.format, *(file.format for file in files)}
        if "parquet" in formats and find_spec("pyarrow") is None:
            raise CorpusError(Errors.S055.format(engine="PyArrow", extra="parquet"))
        run = open_run(settings, files, shard_size=shard_size)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise OutputError(Errors.S056.format(path=output, reason=error)) from error
    start = time.perf_counter()
    done = []
    if run.todo:
        results = ENGINES[engine](run.todo, settings, places or Places())
        done = list(watch(results, run, progress=progress))
    return Totals(
        shards=len(run.shards),
        earlier=len(run.shards) - len(run.todo),
        docs=sum(d.docs for d in done),
        words=sum(d.words for d in done),
        rejects=sum(d.rejects for d in done),
        seconds=time.perf_counter() - start,
    )


def watch(results: Iterator[Done], run: Run, *, progress: bool) -> Iterator[Done]:
    """Show how far the run is: records, and words a second since the start."""
    sizes = {shard.name: shard.count for shard in run.shards}
    earlier = sum(sizes.values()) - sum(shard.count for shard in run.todo)
    start, words = time.perf_counter(), 0
    # None: a bar only where somebody is looking
    hide = None if progress else True
    with tqdm(total=sum(sizes.values()), initial=earlier, unit=" docs", disable=hide) as bar:
        for done in results:
            if done.failure:
                raise OutputError(done.failure)
            words += done.words
            bar.set_postfix_str(f"{words / (time.perf_counter() - start):,.0f} words/s", False)
            bar.update(sizes[done.name])
            yield done
