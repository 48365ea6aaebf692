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
STEPS = ("convert", "check", "config", "train", "evaluate")
FEW = "--training.max_steps 2 --training.eval_frequency 2"


def readme_commands():
    """The commands under "Train your own" by name, without comments."""
    block = README.read_text(encoding="utf8").split("## Train your own")[1].split("```")[1]
    lines = re.findall(r"^python -m spacy (.+)$", block, flags=re.M)
    commands = [shlex.split(line, comments=True) for line in lines]
    return {words[words[0] == "spanner"]: words for words in commands}


def run(words):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{words}\n{result.output}\n{result.exception}"


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_from_file_to_pipeline(tmp_path, monkeypatch, sample):
    monkeypatch.chdir(tmp_path)
    ending = "".join(Path(sample.file).suffixes)
    places = {}
    for part in ("train", "dev"):
        places[f"{part}.jsonl"] = put(sample, tmp_path, name=part + ending).name
    more = {"convert": sample.arguments, "train": FEW.split()}
    for step in STEPS:
        words = [places.get(word, word) for word in readme_commands()[step]]
        run([*words, *more.get(step, ())])
    nlp = spacy.load("training/model-best")
    head = nlp.get_pipe(nlp.pipe_names[-1])
    assert set(head.labels) == {"PER", "ORG", "LOC"}
    assert head.writes_ents or "sc" in nlp("Mara Holt joined.").spans
