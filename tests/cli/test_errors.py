"""What a user can cause ends in a message that says what to change, and with --debug in a trace."""

from importlib.util import find_spec

import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401
from spacy_spanner.cli.command import message_of
from spacy_spanner.errors import UserError
from spacy_spanner.training_config import complete, join_config

NOT_SPACY = "cannot be read as a .spacy file"
DATA = "--paths.train good.spacy --paths.dev good.spacy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A good corpus and every kind of bad one, a config and two pipelines."""
    path = tmp_path_factory.mktemp("errors")
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["Ann", "left"])
    DocBin(docs=[doc]).to_disk(path / "bare.spacy")
    doc.spans["sc"] = [Span(doc, 0, 1, label="PER")]
    DocBin(docs=[doc]).to_disk(path / "good.spacy")
    DocBin().to_disk(path / "empty.spacy")
    (path / "junk.spacy").write_bytes(b"junk")
    (path / "good.jsonl").write_text('{"text": "Ann left", "entities": [[0, 3, "PER"]]}')
    (path / "bad.cfg").write_text("[nlp\nx = 1")
    complete(join_config("global_pointer", "hash")).to_disk(path / "good.cfg")
    (path / "folder").mkdir()
    nlp.to_disk(path / "plain")
    return path


# the command, and what the message says
CASES = [
    ("convert good.jsonl out --lang qqq", "no language 'qqq'"),
    ("convert good.jsonl out --format word", "Choose: auto, jsonl"),
    ("convert good.jsonl out --tag-names O", "at least two tags"),
    ("convert good.jsonl good.jsonl", "the last argument is the output"),
    ("convert good.jsonl good.jsonl/x.spacy", "cannot be written: "),
    ("convert good.spacy good.spacy", "would be overwritten"),
    ("check empty.spacy", "no documents found"),
    ("check folder", "no documents found"),
    ("check bare.spacy", "nothing is annotated under spans_key 'sc'"),
    ("check junk.spacy", NOT_SPACY),
    ("check good.jsonl", NOT_SPACY),
    ("check good.spacy --config bad.cfg", "bad.cfg: Config validation error"),
    ("check good.spacy --json good.jsonl/x.json", "good.jsonl: "),
    ("config word", "There is no system 'word'. Choose: "),
    ("config global_pointer --lang qqq -o new.cfg", "no language 'qqq'"),
    ("config global_pointer -o good.cfg", "Use --force"),
    ("config global_pointer -o folder --force", "folder: Is a directory"),
    ("config global_pointer --max-width 0 -o new.cfg", "it must be positive"),
    ("train bad.cfg", "Config validation error"),
    ("train good.cfg", "Corpus path can't be None"),
    (
        f"train good.cfg {DATA} --components.globl_pointer.threshold 1",
        "did you mean 'global_pointer'",
    ),
    (f"train good.cfg {DATA} --training.max_stepz 1", "did you mean 'max_steps'"),
    (f"train good.cfg {DATA} --trainin.max_steps 1", "no section 'trainin'"),
    (f"train good.cfg {DATA} --components.global_pointer.threshold x", "global_pointer.threshold"),
    (f"train good.cfg {DATA} --word", "No such option"),
    (f"train good.cfg {DATA} --nlp.lang qqq", "language qqq"),
    (f"train good.cfg {DATA} -o good.jsonl", "good.jsonl: File exists"),
    (f"train good.cfg {DATA} -o folder/new --resume", "nothing to resume from"),
    ("train good.cfg --paths.train none.spacy --paths.dev good.spacy", "none.spacy: No such file"),
    ("train good.cfg --paths.train empty.spacy --paths.dev good.spacy", "Check --paths.train"),
    ("train good.cfg --paths.train good.spacy --paths.dev empty.spacy", "Check --paths.dev"),
    ("train good.cfg --paths.train bare.spacy --paths.dev good.spacy", "no gold spans"),
    ("train good.cfg --paths.train junk.spacy --paths.dev good.spacy", "Error loading DocBin data"),
    ("annotate good.jsonl -m none -o out", "neither the folder nor the package"),
    ("annotate good.jsonl -m folder -o out2", "meta.json"),
    ("annotate none.jsonl -m plain -o out", "no file to annotate"),
    ("annotate good.jsonl -m plain -o good.jsonl/out", "cannot be written"),
    ("analyze none good.spacy", "Can't find model 'none'"),
    ("analyze good.spacy empty.spacy", "do not hold the same documents"),
    ("analyze good.spacy junk.spacy", NOT_SPACY),
    ("analyze good.spacy good.spacy --train empty.spacy", "no documents found"),
    ("analyze good.spacy good.spacy --json good.jsonl/x.json", "good.jsonl: "),
    ("render none text", "Can't find model 'none'"),
    ("render empty.spacy", "no documents found"),
    ("render junk.spacy", NOT_SPACY),
    ("render good.spacy -o folder", "folder: Is a directory"),
    ("thresholds none good.spacy", "Can't find model 'none'"),
    (
        "thresholds plain good.spacy",
        "no component of spacy-spanner, whose thresholds could be tuned. Its components: none.",
    ),
]


def run(command):
    return CliRunner().invoke(app, ["spanner", *command.split()])


@pytest.mark.parametrize("command, why", CASES)
def test_one_message(folder, monkeypatch, command, why):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.*")}
    result = run(command)
    text = " ".join(result.output.split())
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.exception
    assert why in text and text.count("✘") == 1 and "Traceback" not in text
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.*")} == before


@pytest.mark.parametrize("command", [CASES[0][0], CASES[6][0], CASES[13][0], "train bad.cfg"])
def test_debug_keeps_the_trace(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    result = run(command + " --debug")
    assert isinstance(result.exception, (ValueError, UserError))


def test_errors_of_the_program_keep_their_trace(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("spacy_spanner.corpus.advice.advice", lambda *_: 1 / 0)
    assert isinstance(run("check good.spacy").exception, ZeroDivisionError)


def test_a_missing_extra_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def missing(config):
        raise ValueError("[E002] Can't find factory for 'transformer'")

    monkeypatch.setattr("spacy_spanner.training_config.complete", missing)
    monkeypatch.setattr(
        "spacy_spanner.cli.config.find_spec",
        lambda name: None if name == "spacy_transformers" else find_spec(name),
    )
    result = run("config global_pointer --encoder transformer -o new.cfg")
    assert result.exit_code == 1 and "pip install 'spacy-spanner[transformers]'" in " ".join(
        result.output.split()
    )


def test_a_full_disk_is_no_error_of_the_corpus(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    result = run("convert good.jsonl full")
    assert result.exit_code == 1 and "No space left on device" in " ".join(result.output.split())
    assert not list(folder.glob("full/*"))
    assert "Free some space" in message_of(OSError(28, "No space left on device"))
