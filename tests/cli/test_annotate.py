"""`spacy spanner annotate` as a user types it."""

import json

import pytest
import torch
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401

from ..distributed.small import contents, save_pipeline, write_jsonl
from ..systems import TEXTS


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return save_pipeline(tmp_path_factory.mktemp("pipeline") / "model")


def run(*args, **options):
    result = CliRunner().invoke(app, ["spanner", "annotate", *map(str, args)], **options)
    assert not isinstance(result.exception, Exception), result.exception
    return result.exit_code, " ".join(result.output.split())


def test_annotate_and_go_on(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 5)
    with path.open("a") as file:
        file.write("{\n")
    args = (path, "-m", pipeline, "-o", tmp_path / "out", "--shard-size", 2, "-b", 2)
    code, text = run(*args)
    assert code == 0
    for part in ("5 documents", "words/s", "1 records were rejected"):
        assert part in text
    expected = contents(tmp_path / "out")
    next((tmp_path / "out").glob("part-*")).unlink()
    code, text = run(*args, "--threads", 1)
    assert code == 0 and "2 of 3 shards were already there" in text
    assert contents(tmp_path / "out") == expected


def test_options_reach_the_result(pipeline, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"body": text, "n": 1}) + "\n" for text in TEXTS))
    args = ("--text-field", "body", "--source", "ents", "--relations", "--format", "jsonl")
    code, text = run(path, "-m", pipeline, "-o", tmp_path / "out", *args)
    assert code == 0 and "SW22" not in text
    code, text = run(path, "-m", pipeline, "-o", tmp_path / "none", *args, "--source", "nowhere")
    assert code == 0 and "SW22" in text and "nothing to nowhere," in text
    (part,) = contents(tmp_path / "out").values()
    rows = [json.loads(line) for line in part.splitlines()]
    assert [row["text"] for row in rows] == TEXTS
    assert {entity["source"] for row in rows for entity in row["entities"]} == {"ents"}
    assert all(row["relations"] == [] and row["meta"] == {"n": 1} for row in rows)
    assert all(entity["score"] > 0.5 for row in rows for entity in row["entities"])


def test_standard_input(pipeline, tmp_path):
    given = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    args = ("-", "-m", pipeline, "-o", tmp_path / "out", "--input-format", "jsonl")
    code, text = run(*args, input=given)
    assert code == 0 and "4 documents" in text


def test_failures_are_told_without_a_traceback(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 2)
    (tmp_path / "file").write_text("")
    for args, told in [
        ((tmp_path / "none", "-m", pipeline, "-o", tmp_path / "x"), "no file to annotate"),
        ((path, "-m", "none", "-o", tmp_path / "y"), "neither the folder nor the package"),
        ((path, "-m", pipeline, "-o", tmp_path / "file" / "z"), "cannot be written"),
    ]:
        code, text = run(*args)
        assert code == 1 and told in text
    if not torch.cuda.is_available():
        code, text = run(path, "-m", pipeline, "-o", tmp_path / "gpu", "--gpu-id", 0)
        assert code == 1 and "GPU" in text
