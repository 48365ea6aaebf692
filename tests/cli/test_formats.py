"""Every format from file to trained pipeline, with the commands of the README."""

import re
import shlex
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401

from ..corpus.formats import SAMPLES, name_of, put

README = Path(__file__).parent.parent.parent / "README.md"
STEPS = ("convert", "check", "train", "evaluate")  # `config` does not depend on the corpus
FEW = "--training.max_steps 2 --training.eval_frequency 2 --components.tok2vec.model.encode.depth 1"


def readme_commands():
    """The commands under "Train your own" by name, without comments."""
    block = README.read_text(encoding="utf8").split("## Train your own")[1].split("```")[1]
    lines = re.findall(r"^python -m spacy (.+)$", block, flags=re.M)
    commands = [shlex.split(line, comments=True) for line in lines]
    return {words[words[0] == "spanner"]: words for words in commands}


def run(words):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{words}\n{result.output}\n{result.exception}"


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "config.cfg"
    run([str(path) if w == "config.cfg" else w for w in readme_commands()["config"]])
    return path


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_from_file_to_pipeline(tmp_path, monkeypatch, config, sample):
    monkeypatch.chdir(tmp_path)
    ending = "".join(Path(sample.file).suffixes)
    places = {"config.cfg": str(config)}
    for part in ("train", "dev"):
        places[f"{part}.jsonl"] = put(sample, tmp_path, name=part + ending).name
    more = {"convert": sample.arguments, "train": FEW.split()}
    for step in STEPS:
        words = [places.get(word, word) for word in readme_commands()[step]]
        run([*words, *more.get(step, ())])
    nlp = spacy.load("training/model-best")
    assert set(nlp.get_pipe("global_pointer").labels) == {"PER", "ORG", "LOC"}
    assert "sc" in nlp("Mara Holt joined.").spans
