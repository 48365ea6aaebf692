"""`spacy spanner benchmark`: figures as a table, JSON and a page."""

import json

import pytest
import spacy
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401
from spacy_spanner.timing.measure import summary

RUNNER = CliRunner()


@pytest.fixture
def pipeline(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "one")
    return str(tmp_path / "one")


def run(*args):
    return RUNNER.invoke(app, ["spanner", "benchmark", *map(str, args)])


def test_pipelines_are_measured_in_turn(pipeline, tmp_path):
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": f"Ann saw {i} <b>."}) + "\n" for i in range(9)))
    files = ["--json", tmp_path / "a.json", "--page", tmp_path / "a.html"]
    result = run(pipeline, pipeline, "--texts", texts, "--rounds", 2, "--limit", 5, *files)
    assert result.exit_code == 0, result.output
    assert "sentencizer" in result.output and "p99" in result.output
    found = json.loads((tmp_path / "a.json").read_text())
    assert [own["pipeline"] for own in found] == [pipeline, pipeline]
    for own in found:
        assert own["words"] == 5 * 7 and own["words_per_second"] > 0 and own["memory_mb"] > 10
        assert list(own["components"]) == ["tokenizer", "sentencizer"]
        assert own["latency_ms"]["p50"] <= own["latency_ms"]["p95"] <= own["latency_ms"]["p99"]
        assert own["start_seconds"]["all"] > own["start_seconds"]["load"] > 0
    page = (tmp_path / "a.html").read_text()
    assert "sentencizer" in page and "words/s" in page


def test_what_cannot_be_measured_is_named(pipeline, tmp_path):
    (tmp_path / "a.txt").write_text("One text.\n")
    result = run("no_such_pipeline", "--texts", tmp_path / "a.txt")
    assert result.exit_code == 1 and "[S210] no_such_pipeline" in " ".join(result.output.split())
    (tmp_path / "b.txt").write_text("\n")
    result = run(pipeline, "--texts", tmp_path / "b.txt")
    assert result.exit_code == 1 and "[S028]" in result.output
    for name, line in (("c", '{"texts": "a"}'), ("d", "{")):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "a"}\n' + line + "\n")
        result = run(pipeline, "--texts", tmp_path / f"{name}.jsonl")
        assert result.exit_code == 1 and result.output.count("[S140]") == 1


def test_figures_are_medians_over_rounds_and_quantiles_over_all_texts():
    rounds = [
        {"words": 60, "components": {"a": a, "b": 1.0}, "latency": [a, 2 * a], "memory": 100 * a}
        for a in (1.0, 2.0, 6.0)
    ]
    start = {"products": "numpy", "seconds": {"import": 1.0, "load": 0.5, "first": 0.25}}
    found = summary("p", start, rounds)
    assert found["words_per_second"] == 60 / 3
    assert found["components"]["a"] == {"share": 2 / 3, "words_per_second": 30}
    assert found["latency_ms"]["p50"] == 3000 and found["memory_mb"] == 600
    assert found["start_seconds"]["all"] == 1.75
