"""SIGKILL at any moment of an annotation: no record is lost, none is there twice."""

import importlib.util
import json
import os
import random
import signal
import time
from collections import Counter

import pytest

from spacy_spanner.distributed.engines import Workers

from ..distributed.shards import rows, run
from ..distributed.small import contents, left_over, save_pipeline, write_jsonl
from ..distributed.test_annotation_stops import in_child

pytestmark = pytest.mark.soak
N_RECORDS = 120
PATIENCE = 300  # seconds until a shard is written; engines take long to start on a busy machine
ENGINES = {
    "one process": {},
    "two processes": {"workers": Workers(2)},
    "ray": {"engine": "ray", "workers": Workers(2)},
    "spark": {"engine": "spark", "workers": Workers(2)},
}


def quietly(options, *args):
    """As `run`, in a process of its own."""
    os.setsid()
    run(*args, shard_size=4, **options)
    os._exit(0)


def wait_for(process, out, goal):
    """Until there are so many shards, or the run has ended."""
    end = time.monotonic() + PATIENCE
    while process.is_alive() and len(contents(out)) < goal:
        assert time.monotonic() < end, "a run stands still"
        time.sleep(0.001)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A pipeline, records, and what a run without faults makes of them."""
    folder = tmp_path_factory.mktemp("kills")
    pipeline = save_pipeline(folder / "pipeline")
    path = write_jsonl(folder / "records.jsonl", N_RECORDS)
    run([path], pipeline, folder / "clean", shard_size=4)
    return pipeline, path, contents(folder / "clean")


@pytest.mark.parametrize("name", ENGINES)
def test_kills__lose_and_double_nothing(soak, clean, tmp_path, name):
    options = ENGINES[name]
    module = {"ray": "ray", "spark": "pyspark"}.get(name)
    if module and importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}")
    pipeline, path, expected = clean
    generator = random.Random(time.time_ns())
    for number in soak.rounds():
        out = tmp_path / str(number)
        while True:
            process = in_child(quietly, options, [path], pipeline, out)
            delay = generator.choice([0.02, 0.2, 1.0]) * generator.random()
            if generator.random() < 0.7 and len(contents(out)) < len(expected):
                wait_for(process, out, len(contents(out)) + generator.randrange(0, 5))
            process.join(delay)
            if not process.is_alive():
                break
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            soak.counts["kills"] += 1
            found = contents(out)
            assert found.items() <= expected.items()
        assert process.exitcode == 0
        ids = Counter(row["record"] for row in rows(out))
        soak.counts["runs"] += 1
        soak.counts["records"] += N_RECORDS
        soak.counts["lost"] += N_RECORDS - len(ids)
        soak.counts["doubled"] += sum(ids.values()) - len(ids)
        assert contents(out) == expected and not left_over(out)
        assert json.loads((out / "manifest.json").read_text("utf8"))
        assert soak.counts["lost"] == soak.counts["doubled"] == 0
