"""The commands that quickstart prints are those for the files, and they run."""

import json
from pathlib import Path

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_spanner.cli import quickstart

from ..commands import parse

DEMO = Path(__file__).parent.parent.parent / "assets" / "demo"
FEW = ["--training.max_steps", "4", "--training.eval_frequency", "4"]


def run(*args, **options):
    result = CliRunner().invoke(app, list(map(str, args)), **options)
    assert not isinstance(result.exception, Exception), result.exception
    return result


def printed(*args, **options):
    result = run("spanner", "quickstart", *args, **options)
    assert result.exit_code == 0, result.output
    return [line for line in result.stdout.splitlines() if line.startswith("python")]


@pytest.fixture
def files(tmp_path):
    """Two files whose names need quotes."""
    made = []
    for name, size in (("train", 60), ("dev", 20)):
        path = tmp_path / f"my {name}.jsonl"
        lines = (DEMO / f"{name}.jsonl").read_text(encoding="utf8").splitlines()
        path.write_text("\n".join(lines[:size]), encoding="utf8")
        made.append(path)
    return made


@pytest.mark.parametrize("kind", ["--nested", pytest.param("--flat", marks=pytest.mark.slow)])
def test_commands_run(tmp_path, monkeypatch, files, kind):
    monkeypatch.chdir(tmp_path)
    lines = printed("--train", files[0].name, "--dev", files[1].name, kind)
    names = [parse(line)[-1] for line in lines]
    assert names == ["convert", "convert", "check", "config", "train", "evaluate", "annotate"]
    for line, name in zip(lines, names, strict=True):
        words = quickstart.shlex.split(line)[3:]
        result = run(*words, *(FEW if name == "train" else []))
        assert result.exit_code == 0, (line, result.output)
    [shard] = [path for path in (tmp_path / "annotated").glob("*.jsonl")]
    assert len([json.loads(line) for line in shard.read_text().splitlines()]) == 20


def test_options_reach_the_commands(files):
    args = ("--train", files[0], "--dev", files[1], "--flat", "--gpu", "--lang", "de")
    lines = printed(*args, "--texts", "my texts")
    assert all(parse(line) for line in lines)
    text = "\n".join(lines)
    assert "config auto --corpus corpus/train.spacy --encoder huggingface --output ents" in text
    assert text.count("--gpu-id 0") == 3 and "annotate 'my texts'" in text


def test_questions_are_asked_where_there_is_a_terminal(monkeypatch, files):
    monkeypatch.setattr(quickstart, "can_ask", lambda: True)
    asked = printed(input=f"{files[0]}\n{files[1]}\nde\nn\n")
    assert asked == printed("--train", files[0], "--dev", files[1], "--lang", "de", "--flat")
    asked = printed("--dev", files[1], input=f"{files[0]}\n\n\n")
    assert asked == printed("--train", files[0], "--dev", files[1], "--lang", "en", "--nested")


def test_errors(files):
    cases = [
        ([], "S181"),
        (["--train", files[0]], "--dev"),
        (["--train", "none", "--dev", files[1]], "S182"),
        (["--train", files[0], "--dev", files[1], "--lang", "qqq"], "qqq"),
    ]
    for args, why in cases:
        result = run("spanner", "quickstart", *args)
        assert result.exit_code == 1 and why in result.output
