"""Annotation in shards: the same results after any stop."""

import io
import json
import multiprocessing
import os
import random
import resource
import signal
import time

import pytest
import spacy

from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.distributed.engines import Workers
from spacy_spanner.distributed.inputs import InputFile
from spacy_spanner.distributed.records import cut_files
from spacy_spanner.distributed.worker import Worker
from spacy_spanner.errors import OutputError

from ..systems import TEXTS
from .shards import make_settings, rows, run
from .small import COMMAND, contents, left_over, start, write_jsonl


def in_child(function, *args):
    """Run in a forked process, which can be killed and limited."""
    process = multiprocessing.get_context("fork").Process(target=function, args=args)
    process.start()
    return process


def test_killed_runs_end_with_the_same_bytes(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 200)
    run([path], pipeline, tmp_path / "clean")
    expected = contents(tmp_path / "clean")
    assert len(expected) == 40
    generator = random.Random(0)
    for _ in range(3):
        process = in_child(run, [path], pipeline, tmp_path / "out")
        kill_at_work(process.pid, tmp_path / "out", generator, process.is_alive)
        process.join()
        found = contents(tmp_path / "out")
        assert 0 < len(found) < len(expected) and found.items() <= expected.items()
    times = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("part-*")}
    totals = run([path], pipeline, tmp_path / "out")
    assert contents(tmp_path / "out") == expected and not left_over(tmp_path / "out")
    assert totals.earlier == len(times)
    kept = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("part-*")}
    assert times.items() <= kept.items()  # finished shards were not written again


def kill_at_work(pid, out, generator, is_alive):
    """SIGKILL when a few more shards are there than before, and a moment has passed."""
    goal = len(list(out.glob("part-*"))) + generator.randrange(1, 8)
    while len(list(out.glob("part-*"))) < goal:
        assert is_alive()
        time.sleep(0.002)
    time.sleep(generator.uniform(0, 0.02))
    assert is_alive()
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("n_process,kills", [(1, 20), (2, 5)])
def test_command_killed_again_and_again_gives_the_same_bytes(pipeline, tmp_path, n_process, kills):
    path = write_jsonl(tmp_path / "a.jsonl", 4000)
    args = [*COMMAND, "annotate", path, "-m", pipeline, "--shard-size", 20, "-b", 8]
    clean = start(*args, "-o", tmp_path / "clean")
    clean.communicate(timeout=300)
    assert clean.returncode == 0
    expected = contents(tmp_path / "clean")
    generator, counts, out = random.Random(n_process), [], tmp_path / "out"
    for _ in range(kills):
        process = start(*args, "-o", out, "-n", n_process)
        kill_at_work(process.pid, out, generator, lambda process=process: process.poll() is None)
        process.wait()
        process.stdout.close()
        counts.append(len(contents(out)))
    assert counts[-1] < len(expected) and len(set(counts)) == kills
    last = start(*args, "-o", out, "-n", n_process)
    text, _ = last.communicate(timeout=300)
    assert last.returncode == 0, text
    assert contents(out) == expected and not left_over(out)


def limited_run(limit, *args):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        run(*args)
    except OutputError as error:
        os._exit(3 if "S056" in str(error) and "cannot be written" in str(error) else 4)


def test_full_disk_leaves_no_broken_shard(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 20)
    with path.open("a") as file:
        file.write(json.dumps({"text": "Ada came. " * 2000}) + "\n")
    process = in_child(limited_run, 15000, [path], pipeline, tmp_path / "out")
    process.join()
    assert process.exitcode == 3
    assert len(contents(tmp_path / "out")) == 4 and not left_over(tmp_path / "out")
    run([path], pipeline, tmp_path / "clean")
    run([path], pipeline, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


def test_unwritable_place(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 2)
    (tmp_path / "file").write_text("")
    for output in ("file", "file/out"):
        with pytest.raises(OutputError, match="cannot be written"):
            run([path], pipeline, tmp_path / output)


def test_another_run_in_the_folder_is_refused(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 6)
    out = tmp_path / "out"
    run([path], pipeline, out)
    for change in ({"batch_words": 3}, {"shard_size": 6}, {"format": "spacy"}, {"sources": ("x",)}):
        with pytest.raises(CorpusError, match=f"S051.*{next(iter(change))}"):
            run([path], pipeline, out, **change)
    assert run([path], pipeline, out, threads=1).earlier == 2  # says nothing about the result
    expected = contents(out)
    write_jsonl(path, 7)
    with pytest.raises(CorpusError, match=r"S051.*inputs"):
        run([path], pipeline, out)
    assert contents(out) == expected
    (out / "manifest.json").write_text("{}")
    with pytest.raises(CorpusError, match="S053"):
        run([path], pipeline, out)
    (out / "manifest.json").unlink()
    with pytest.raises(CorpusError, match="S052"):
        run([path], pipeline, out)


def test_changed_or_missing_pipeline_is_refused(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 2)
    nlp = spacy.load(pipeline)
    nlp.to_disk(tmp_path / "model")
    run([path], tmp_path / "model", tmp_path / "out")
    nlp.to_disk(tmp_path / "model")
    with pytest.raises(CorpusError, match=r"S051.*pipeline"):
        run([path], tmp_path / "model", tmp_path / "out")
    with pytest.raises(CorpusError, match="neither"):
        run([path], "no_such_pipeline", tmp_path / "other")


def test_standard_input_is_kept_for_the_next_start(pipeline, tmp_path):
    text = "\n".join(TEXTS).encode()
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    run([path], pipeline, tmp_path / "file")
    run(["-"], pipeline, tmp_path / "out", stdin=io.BytesIO(text))
    found, expected = rows(tmp_path / "out"), rows(tmp_path / "file")
    assert [{**row, "file": str(path)} for row in found] == expected
    next((tmp_path / "out").glob("part-*")).unlink()
    assert run(["-"], pipeline, tmp_path / "out", stdin=io.BytesIO(text)).docs == 4
    with pytest.raises(CorpusError, match="standard input"):
        run(["-"], pipeline, tmp_path / "out", stdin=io.BytesIO(text + b"x"))
    with pytest.raises(CorpusError, match="S050"):
        run(["-"], pipeline, tmp_path / "x", stdin=io.BytesIO(), input_format="parquet")


def test_a_finished_shard_is_not_done_again(pipeline, tmp_path):
    """As when an engine repeats a task whose answer was lost."""
    path = write_jsonl(tmp_path / "a.jsonl", 3)
    run([path], pipeline, tmp_path / "out")
    shards = cut_files([InputFile(str(path), str(path), "jsonl")], 5)
    worker = Worker(make_settings(pipeline, tmp_path / "out"))
    assert [worker(shard).docs for shard in shards] == [0]


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 12)
    run([path], pipeline, tmp_path / "one")
    totals = run([path], pipeline, tmp_path / "two", workers=Workers(2))
    assert totals.docs == 12 and totals.words > 12
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
