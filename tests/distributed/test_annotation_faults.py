"""Annotation in shards: damaged files, odd names, signals and two runs at once."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.distributed.manifest import locked

from ..systems import TEXTS
from .shards import rejects, rows, run
from .small import COMMAND, contents, descendants, is_alive, left_over, start, write_jsonl


def semaphores():
    return {path.name for path in Path("/dev/shm").glob("sem.mp-*")}


# Finished shards


@pytest.mark.parametrize(
    "change",
    [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data.replace(b"a", b"b")],
    ids=["emptied", "cut", "changed"],
)
def test_damaged_shards_are_done_again(pipeline, tmp_path, change):
    path, out = write_jsonl(tmp_path / "a.jsonl", 12), tmp_path / "out"
    with path.open("a") as file:
        file.write("{\n")
    run([path], pipeline, out)
    expected = contents(out)
    for name in ("part-00000-000001.jsonl", "rejects/part-00000-000002.jsonl"):
        (out / name).write_bytes(change((out / name).read_bytes()))
    totals = run([path], pipeline, out)
    assert (totals.damaged, totals.earlier) == (2, 1)
    assert contents(out) == expected
    assert run([path], pipeline, out).earlier == 3


def test_shards_without_a_checksum_are_done_again(pipeline, tmp_path):
    path, out = write_jsonl(tmp_path / "a.jsonl", 6), tmp_path / "out"
    run([path], pipeline, out)
    (out / "manifest" / "00000-000000.json").unlink()
    (out / "manifest" / "00000-000001.json").write_text("[")
    assert run([path], pipeline, out).damaged == 2


# Inputs


def docs_file(path, count=6):
    nlp = spacy.blank("en")
    docs = [nlp.make_doc(TEXTS[i % 4]) for i in range(count)]
    for i, doc in enumerate(docs):
        doc.user_data["doc"] = f"{os.urandom(64).hex()} {i}"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.mark.parametrize("kept,found", [(0.0, 0), (0.3, 0), (0.9, 6)])
def test_what_a_cut_spacy_file_still_holds_is_annotated(pipeline, tmp_path, kept, found):
    bad, good = docs_file(tmp_path / "a.spacy"), write_jsonl(tmp_path / "b.jsonl", 2)
    content = bad.read_bytes()
    bad.write_bytes(content[: int(kept * len(content))])
    totals = run([bad, good], pipeline, tmp_path / "out", shard_size=4)
    assert totals.docs == found + 2
    (reject,) = rejects(tmp_path / "out")
    assert reject["file"] == str(bad) and reject["record"] == found + 1
    assert "damaged" in reject["reason"]


def test_rows_before_a_damaged_page_are_annotated(pipeline, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path, good = tmp_path / "a.parquet", write_jsonl(tmp_path / "b.jsonl", 2)
    texts = [f"{TEXTS[i % 4]} {os.urandom(16).hex()}" for i in range(12)]
    options = {"row_group_size": 4, "compression": "gzip", "use_dictionary": False}
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), path, **options)
    column = pyarrow.parquet.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    middle = column.data_page_offset + column.total_compressed_size // 2
    content[middle : middle + 8] = bytes(8)
    path.write_bytes(content)
    run([path, good], pipeline, tmp_path / "page", shard_size=5)
    records = [
        r["record"] for r in rows(tmp_path / "page") if "text" in r and "Again" not in r["text"]
    ]
    assert records[:4] == [1, 2, 3, 4] and records[-4:] == [9, 10, 11, 12]
    assert sorted(records + [r["record"] for r in rejects(tmp_path / "page")]) == list(range(1, 13))
    path.write_bytes(content[:100])  # no footer: nothing can be read
    totals = run([path, good], pipeline, tmp_path / "footer")
    assert totals.docs == 2 and totals.rejects == 1
    assert "damaged" in rejects(tmp_path / "footer")[0]["reason"]


@pytest.mark.parametrize("format", ["jsonl", "spacy"])
def test_names_that_are_not_utf8(pipeline, tmp_path, format):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    os.mkdir(folder)
    write_jsonl(Path(folder) / os.fsdecode(b"caf\xe9.jsonl"), 3)
    out = Path(folder) / "out"
    for earlier in (0, 1):
        assert run([folder], pipeline, out, format=format).earlier == earlier
    if format == "jsonl":
        assert {Path(row["file"]).name for row in rows(out)} == {"caf\\xe9.jsonl"}
    with pytest.raises(CorpusError) as error:
        run([folder], pipeline, out, format=format, batch_words=30)
    assert str(error.value).encode()


# Two runs, signals


def test_a_second_run_in_the_folder_is_refused(pipeline, tmp_path):
    path, out = write_jsonl(tmp_path / "a.jsonl", 2), tmp_path / "out"
    with locked(out), pytest.raises(CorpusError, match=r"S120.*in use"):
        run([path], pipeline, out)
    assert run([path], pipeline, out).docs == 2


@pytest.mark.parametrize(
    "number,n_process",
    [
        (signal.SIGTERM, 2),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, 2, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.slow),
    ],
)
def test_signals_leave_no_process_and_no_semaphore(pipeline, tmp_path, number, n_process):
    path, out, before = write_jsonl(tmp_path / "a.jsonl", 4000), tmp_path / "out", semaphores()
    args = [*COMMAND, "annotate", path, "-m", pipeline, "-o", out, "--shard-size", 20]
    process = start(*args, "-n", n_process, start_new_session=True)
    while len(list(out.glob("part-*"))) < 3:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.02)
    children = descendants(process.pid)
    assert len(children) >= n_process - 1
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        os.kill(process.pid, number)
    text, _ = process.communicate(timeout=60)
    end = time.time() + 20
    while any(map(is_alive, children)) and time.time() < end:
        time.sleep(0.1)
    assert not any(map(is_alive, children))
    assert semaphores() <= before
    assert "Traceback" not in text and "leaked" not in text
    if number != signal.SIGKILL:
        shown = " ".join(text.split())
        assert process.returncode == 128 + number
        assert f"Stopped by {number.name}" in shown and "same command resumes" in shown
    finished = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert len(finished) < 200
    again = start(*args)
    text, _ = again.communicate(timeout=300)
    assert again.returncode == 0, text
    assert finished.items() <= {p: p.stat().st_mtime_ns for p in out.glob("part-*")}.items()
    assert not left_over(out)
    records = [row["record"] for row in rows(out)]
    assert records == list(range(1, 4001))
    assert json.loads((out / "manifest.json").read_text())["shards"]
