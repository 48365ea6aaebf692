"""A trained bundle is read in three ways by the benchmark."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from benchmarks import __main__ as commands
from benchmarks import accuracy
from benchmarks.accuracy import Run
from benchmarks.results import read_lines
from benchmarks.systems import SYSTEMS

from .systems import make_examples, make_nlp, train


def test_readings_differ_in_the_head_that_answers_alone():
    for name, system in SYSTEMS.items():
        for other in system.readings:
            assert SYSTEMS[other].overlay == system.overlay, name
            assert set(SYSTEMS[other].model) == set(system.model) == {"decode_from"}


@pytest.mark.parametrize("name", ["bl_seq_ner", "bl_span_ner"])
def test_weights_are_read_as_another_row_reads_them(tmp_path, name, monkeypatch):
    nlp = make_nlp("bundled_ner", model={"decode_from": "both"}, output="both")
    examples = make_examples(nlp)
    train(nlp, examples, steps=20)
    docs = [example.reference for example in examples]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    nlp.config["corpora"]["dev"]["path"] = str(tmp_path / "dev.spacy")
    nlp.to_disk(tmp_path / "model")
    read = []

    def scored(own, docs, *, brief):
        read.append(own.get_pipe("bundled_ner"))
        return {"f": 1.0}

    monkeypatch.setattr(accuracy, "score", scored)
    found = accuracy.read_again(tmp_path / "model", name, docs, brief=True)
    [pipe] = read
    assert pipe.threshold == 0.0
    head = SYSTEMS[name].model["decode_from"]
    assert spacy.load(tmp_path / "model").get_pipe("bundled_ner").threshold == 0.5
    assert found["f"] == 1.0 and found["fitted"]["f"] > 0
    assert pipe.model.shims[0]._model.decode_from == head


def test_all_readings_of_a_run_are_kept(tmp_path, monkeypatch):
    run = Run("demo", "lstm", "bl_both", 0.003, 0, 10)
    records = [{"system": name, "f": 1.0} for name in ("bl_both", "bl_seq_ner")]
    monkeypatch.setattr(commands, "execute", lambda *args, **kwargs: records)
    printed = []
    monkeypatch.setattr("builtins.print", printed.append)
    commands.one(json.dumps(vars(run)), data=tmp_path, vectors=None, transformer=None, minutes=1.0)
    assert [json.loads(line)["system"] for line in printed] == ["bl_both", "bl_seq_ner"]
    assert all(json.loads(line)["commit"] for line in printed)


def test_runs_are_measured_again_and_with_other_rates_by_options(tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"

    class Done:
        returncode = 0

        def __init__(self, words):
            run = json.loads(words[4])
            own = {**run, "f": 1.0}
            self.stdout = f"a line of a library\n{json.dumps(own)}\n" + json.dumps(
                {**own, "system": "bl_seq_ner"}
            )

    monkeypatch.setattr(commands.subprocess, "run", lambda words, **kwargs: Done(words))
    options = dict(
        datasets="demo", systems="bl_both", encoder="lstm", seeds="0,1", steps=7, workers=1
    )
    options |= dict(data=tmp_path, vectors=None, transformer=None, minutes=1.0, brief=True)
    for again in (False, False, True):
        commands.accuracy(**options, rates=".004", again=again, results=results)
    runs = read_lines(results)
    assert {run["learn_rate"] for run in runs} == {0.004}
    # Two seeds in two readings, at first and when asked for again.
    assert len(runs) == 8 and {run["system"] for run in runs} == {"bl_both", "bl_seq_ner"}
