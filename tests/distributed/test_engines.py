"""Ray and Spark: the same bytes as this process, whatever happens to a worker."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from importlib.util import find_spec

import pytest

from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.distributed.annotate import annotate_files
from spacy_spanner.distributed.engines import RayWorker
from spacy_spanner.distributed.inputs import InputFile, Shard
from spacy_spanner.distributed.records import cut_files

from .shards import make_settings, run
from .small import COMMAND, contents, descendants, is_alive, left_over, start, write_jsonl

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or not shutil.which("java"), reason="needs PySpark and Java"
)


def test_shards_travel_as_json(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 7)
    for shard in cut_files([InputFile("a", str(path), "jsonl")], 3):
        assert Shard.from_dict(json.loads(json.dumps(asdict(shard)))) == shard


def test_an_actor_is_the_same_worker(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 7)
    run([path], pipeline, tmp_path / "local")
    (tmp_path / "actor").mkdir()
    worker = RayWorker(make_settings(pipeline, tmp_path / "actor"), ("another machine", 1))
    shards = cut_files([InputFile(str(path), str(path), "jsonl")], 5)
    done = [worker({"shard": [json.dumps(asdict(shard))]}) for shard in shards]
    assert [batch["docs"] for batch in done] == [[5], [2]]
    assert contents(tmp_path / "actor") == contents(tmp_path / "local")


def test_a_worker_ends_with_its_driver():
    driver = subprocess.Popen(["sleep", "600"])
    code = (
        "import socket, time; from spacy_spanner.distributed.pool import end_with_driver; "
        "end_with_driver('another machine', 1); "
        f"end_with_driver(socket.gethostname(), {driver.pid}); print('ready', flush=True); "
        "time.sleep(600)"
    )
    worker = start(sys.executable, "-c", code)
    assert worker.stdout.readline() == "ready\n"
    driver.kill()
    driver.wait()
    assert worker.wait(timeout=60) == 1
    worker.stdout.close()


@pytest.mark.parametrize("engine,module", [("ray", "ray"), ("spark", "pyspark.sql")])
def test_missing_engines_are_reported(pipeline, tmp_path, monkeypatch, engine, module):
    monkeypatch.setitem(sys.modules, module, None)
    path = write_jsonl(tmp_path / "a.jsonl", 1)
    with pytest.raises(CorpusError, match=f"spacy-spanner\\[{engine}\\]"):
        annotate_files([str(path)], make_settings(pipeline, tmp_path / "out"), engine=engine)


def actors_of(pid):
    return sorted(p for p, command in descendants(pid).items() if command.startswith("ray::MapW"))


def annotate_by_ray(path, pipeline, output, *args):
    options = ("-m", pipeline, "-o", output, "--shard-size", 20, "-b", 4, "-e", "ray")
    return start(*COMMAND, "annotate", path, *options, *args)


@needs_ray
@pytest.mark.slow
def test_killed_actor_loses_and_doubles_nothing(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 6000)
    run([path], pipeline, tmp_path / "local", shard_size=20)
    out = tmp_path / "out"
    process = annotate_by_ray(path, pipeline, out, "--actors", 2)
    while len(contents(out)) < 10:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    actors = actors_of(process.pid)
    assert len(actors) == 2
    own = os.getpriority(os.PRIO_PROCESS, process.pid)
    assert {os.getpriority(os.PRIO_PROCESS, actor) for actor in actors} == {own}
    os.kill(actors[0], signal.SIGKILL)
    at_kill = len(contents(out))
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    assert 10 <= at_kill < 300
    assert contents(out) == contents(tmp_path / "local")


@needs_ray
@pytest.mark.slow
def test_killed_driver_leaves_no_worker(pipeline, tmp_path):
    path, out = write_jsonl(tmp_path / "a.jsonl", 6000), tmp_path / "out"
    process = annotate_by_ray(path, pipeline, out, "--actors", 2)
    while len(contents(out)) < 4:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    actors = actors_of(process.pid)
    assert len(actors) == 2
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.time() + 60
    while any(map(is_alive, actors)) and time.time() < end:
        time.sleep(0.2)
    assert not any(map(is_alive, actors))  # agents of Ray itself may take longer
    assert len(contents(out)) < 300


@needs_ray
@pytest.mark.slow
def test_two_nodes(pipeline, tmp_path):
    from ray.cluster_utils import Cluster

    path = write_jsonl(tmp_path / "a.jsonl", 400)
    run([path], pipeline, tmp_path / "local", shard_size=20)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        args = ("--actors", 2, "--address", cluster.address)
        process = annotate_by_ray(path, pipeline, tmp_path / "out", *args)
        text, _ = process.communicate(timeout=300)
    finally:
        cluster.shutdown()
    assert process.returncode == 0, text
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


@needs_ray
@pytest.mark.slow
def test_what_stops_an_actor_is_reported(pipeline, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rejects").write_text("in the way")
    process = annotate_by_ray(path, pipeline, tmp_path / "out")
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "cannot be written" in " ".join(text.split()) and "Traceback" not in text
    assert not contents(tmp_path / "out")


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")
def test_an_engine_that_does_not_start(pipeline, tmp_path, monkeypatch):
    from pyspark import SparkContext

    path = write_jsonl(tmp_path / "a.jsonl", 1)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CorpusError, match=r"S127.*Spark did not start: .*Java 17"):
        run([path], pipeline, tmp_path / "out", engine="spark")


def annotate_by_spark(path, pipeline, output):
    options = ("--shard-size", 20, "-b", 4, "-e", "spark", "--actors", 2)
    return start(*COMMAND, "annotate", path, "-m", pipeline, "-o", output, *options)


def spark_workers_of(pid):
    """Forks of Spark's daemons, which have the same command line."""
    daemons = {p for p, command in descendants(pid).items() if "pyspark.daemon" in command}
    return sorted({child for daemon in daemons for child in descendants(daemon)})


@needs_spark
@pytest.mark.slow
def test_killed_spark_worker_loses_and_doubles_nothing(pipeline, tmp_path):
    path, out = write_jsonl(tmp_path / "a.jsonl", 6000), tmp_path / "out"
    run([path], pipeline, tmp_path / "local", shard_size=20)
    process = annotate_by_spark(path, pipeline, out)
    while len(contents(out)) < 10:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    workers = spark_workers_of(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    assert 10 <= len(contents(out)) < 300
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    assert contents(out) == contents(tmp_path / "local")


@needs_spark
@pytest.mark.slow
def test_spark_gives_the_same_bytes(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 60)
    run([path], pipeline, tmp_path / "local")
    totals = run([path], pipeline, tmp_path / "out", engine="spark")
    assert totals.docs == 60
    assert contents(tmp_path / "out") == contents(tmp_path / "local")
    assert not left_over(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["shards"]
