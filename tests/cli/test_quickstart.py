"""The commands that quickstart prints are those for the files, and they run."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from spacy.cli._util import app
from spacy.tokens import DocBin
from spacy.vocab import Vocab
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


def test_a_shell_stops_at_the_first_error(tmp_path, files):
    """Here at the config, as where one exists; nothing is trained with an old one."""
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho $4\n[ "$4" != config ]\n')
    program.chmod(0o755)
    text = run("spanner", "quickstart", "--train", files[0], "--dev", files[1]).stdout
    shell = subprocess.run(
        ["sh"],
        input=f"{text}\necho $? behind",
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    assert shell.stdout.split() == ["convert", "convert", "check", "config", "1", "behind"]


@pytest.mark.parametrize("ents, spans", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("kind", ["--nested", "--flat"])
def test_spacy_files_are_used_where_they_are(tmp_path, monkeypatch, files, ents, spans, kind):
    """By commands that suit what is annotated in them."""
    monkeypatch.chdir(tmp_path)
    for file, name in zip(files, ("train", "dev"), strict=True):
        assert run("spanner", "convert", file, f"corpus/{name}.spacy").exit_code == 0
        docs = list(DocBin().from_disk(f"corpus/{name}.spacy").get_docs(Vocab()))
        for doc in docs:
            doc.set_ents(list(doc.ents) if ents else [], default="outside" if ents else "missing")
            doc.spans.pop("sc") if not spans else None
        DocBin(docs=docs).to_disk(f"corpus/{name}.spacy")
    corpora = [f"corpus/{name}.spacy" for name in ("train", "dev")]
    lines = printed("--train", corpora[0], "--dev", corpora[1], kind)
    names = [parse(line)[-1] for line in lines]
    assert names == ["check", "config", "train", "evaluate", "annotate"]
    assert " annotate corpus/dev.spacy " in lines[-1]
    for line in lines[:2]:
        result = run(*quickstart.shlex.split(line)[3:])
        assert result.exit_code == 0, (line, result.output)
    [one] = printed("--train", files[0], "--dev", corpora[1])[:1]
    assert parse(one)[-1] == "convert" and "corpus/train.spacy" in one


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
