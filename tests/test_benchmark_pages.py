"""The pages of the benchmark from made-up records, and what a record of a run carries."""

import json
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from benchmarks import __main__ as commands_of
from benchmarks import accuracy, data, quickstart, scoring
from benchmarks.calibration import calibration_scores
from benchmarks.document_page import document_lines
from benchmarks.quickstart_page import quickstart_section, short_quickstart
from benchmarks.readme import measured
from benchmarks.training_memory import measure as measure_training
from benchmarks.training_memory import training_memory_section
from spacy_spanner.cli import spanner

from .systems import make_examples, make_nlp, train
from .test_benchmark_heads import head_run, head_runs

ROOT = Path(__file__).parent.parent


def user_run(side, f, *, dataset="conll04", seed=0, words=1000, error=2.0, **more):
    return {
        "side": side,
        "dataset": dataset,
        "seed": seed,
        "vectors": False,
        "train_seconds": 300 if side == "ours" else 200,
        "words_per_second_default": words,
        "words_per_second_fastest": 2 * words,
        "f": f,
        "components": ["tok2vec", "bundled_ner" if side == "ours" else "ner"],
        "calibration_error": error,
        "calibration_chance": 2.5,
        "commit": "abc",
        "machine": "a machine",
        **more,
    }


def both_sides():
    return [
        user_run("spacy", 70.0, error=None),
        user_run("ours", 10.0),  # measured again below
        user_run("ours", 80.0, words=2000, optimize="efficiency"),
        user_run("ours", 84.0, words=2000, seed=1, error=4.0),
        user_run("spacy", 40.0, dataset="wnut17", error=None, vectors=True),
        user_run("ours", 42.0, dataset="wnut17", words=500),
        user_run("ours", 48.0, dataset="wnut17", words=500, vectors=True),
    ]


def test_what_a_user_gets():
    text = quickstart_section(both_sides())
    first = "| conll04 | 70.0 `ner` | 82.0 ± 2.8 `bundled_ner` | +12.0 |  | 3.0 ± 1.4 | 2.5 ± 0.0 "
    assert f"{first}| 200 | 300 | 1,000 | 2,000 | 2.00 | 2.00 |" in text
    assert "| wnut17 | 40.0 `ner` | 42.0 `bundled_ner` | +2.0 |" in text
    assert "| wnut17, GloVe | 40.0 `ner` | 48.0 `bundled_ner` | +8.0 |" in text
    # One row of each corpus counts: mean of 12 and 8, geometric mean of 2 and 1/2.
    assert "| mean of 2 corpora |  |  | +10.0 |  |  |  |  |  |  |  | 1.00 | 1.00 |" in text
    assert '"quickstart --data DATA --datasets conll04,wnut17 --seeds 0,1"' in text
    assert '"quickstart --data DATA --datasets wnut17 --seeds 0 --vectors VECTORS"' in text
    assert "--optimize accuracy" not in text and text.count("| corpus |") == 1


def test_runs_for_accuracy_have_a_table_of_their_own():
    ours = user_run("ours", 90.0, optimize="accuracy")
    text = quickstart_section([*both_sides(), ours])
    assert "+12.0" in text and "| mean of 2 corpora |  |  | +10.0 |" in text
    assert "| conll04 | 70.0 `ner` | 90.0 `bundled_ner` | +20.0 |" in text
    assert '--seeds 0 --sides ours --optimize accuracy"' in text and text.count("| corpus |") == 2
    assert short_quickstart([*both_sides(), ours]) == short_quickstart(both_sides())


@pytest.mark.parametrize(
    "side, row", [("spacy", "70.0 `ner` |  |"), ("ours", " | 70.0 `bundled_ner` |")]
)
def test_a_side_that_was_not_measured_stays_empty(side, row):
    alone = [user_run(side, 70.0)]
    text = quickstart_section(alone)
    assert f"| conll04 | {row}" in text and "| mean" not in text
    assert short_quickstart(alone) == [] and quickstart_section([]) == ""


def test_the_readme_has_the_heads_in_place_of_what_says_less():
    older = [
        head_run("demo", "ner", 50.0, encoder="hash"),
        head_run("demo", "seq_ner", 51.0, encoder="hash"),
        head_run("conll04", "ner", 52.0, encoder="transformer"),
        head_run("conll04", "seq_ner", 53.0, encoder="transformer"),
        head_run("germeval2014", "ner", 54.0, encoder="hash"),
        head_run("germeval2014", "seq_ner", 55.0, encoder="hash"),
    ]
    before = measured(older, [], [])
    assert "demo, `hash`" in before and "BiLSTM" not in before and "What a user" not in before
    text = measured([*older, *head_runs()], [], both_sides())
    assert "demo, `hash`" not in text and "demo, `lstm`" not in text
    assert "conll04, `transformer`" in text and "germeval2014, `hash`" in text
    assert "| `global_pointer` | **83.0 ± 1.4** | **69.0** | **74.0** | 1 of 2 |" in text
    assert "| conll04 | 70.0 `ner` | 82.0 ± 2.8 `bundled_ner` | +12.0 | 2.00 | 1.50 |" in text
    assert "| mean of 2 corpora |  |  | +10.0 | 1.00 | 1.50 |" in text


def test_pages_take_brief_records():
    forms = {"10": 1.0, "10 marked": 2.0, "80": 3.0, "80 marked": 4.0}
    full = {name: {"f": f} for name, f in forms.items()}
    brief = {name: {"f": f + 2} for name, f in forms.items() if "marked" in name}
    running = {"docs": 1, "tokens": 9, "rate": 1.0, "widest": 3}
    first = head_run("demo", "span_ner", 70.0, documents=full, running_text=running)
    other = head_run("demo", "span_ner", 72.0, seed=1, documents=brief)
    row = "| `span_ner` | 2 | 71.0 ± 1.4 | 1.0 | 3.0 ± 1.4 | 3.0 | 5.0 ± 1.4 |  |  |  |"
    for runs in ([first, other], [other, first]):
        text = "\n".join(document_lines(runs))
        assert row in text and "| `span_ner` | 1.00 | 3 |" in text


def scored_doc(nlp, spans, scores, key="sc"):
    doc = Doc(nlp.vocab, words=["a", "b", "c"])
    doc.spans[key] = [Span(doc, start, end, label=label) for start, end, label in spans]
    if scores:
        doc.spans[key].attrs["scores"] = numpy.array(scores, dtype="float32")
    return doc


def test_calibration_error_of_predicted_spans():
    nlp = spacy.blank("en")
    gold = Doc(nlp.vocab, words=["a", "b", "c"], spaces=[False, False, False])
    gold.spans["sc"] = [Span(gold, 0, 2, label="ORG"), Span(gold, 1, 2, label="LOC")]
    found = [(0, 2, "ORG"), (1, 2, "LOC"), (2, 3, "ORG"), (1, 2, "ORG")]
    # Two of four are right at .75: 25 points too sure.
    four = calibration_scores([gold], [scored_doc(nlp, found, [0.75] * 4)])
    # Of four at .75 the standard deviation is a quarter of the root of 3/4, and the mean distance .8 of it.
    assert four == {"calibration_error": 25.0, "calibration_chance": 17.27}
    assert calibration_scores([gold], [scored_doc(nlp, found, [])]) == {}
    flat = scored_doc(nlp, found[:1], [0.9], key="ents")
    flat.ents = list(flat.spans["ents"])
    assert calibration_scores([gold], [flat])["calibration_error"] == pytest.approx(10.0, abs=0.01)


def test_a_record_has_the_calibration_without_and_with_a_fit():
    nlp = make_nlp("global_pointer")
    examples = make_examples(nlp)
    train(nlp, examples, steps=4)
    docs = [example.reference for example in examples]
    scores = scoring.score(nlp, docs, brief=True)
    assert set(scores["documents"]) == {"10 marked", "80 marked"}
    assert set(scoring.score(nlp, docs)["documents"]) > set(scores["documents"])
    fitted = scoring.fitted_scores(nlp, docs)["fitted"]
    assert fitted["f"] >= scores["f"] and fitted["calibration_error"] is not None
    assert "calibration_error" in scores
    assert scoring.fitted_scores(spacy.blank("en"), docs) == {}


def test_each_half_is_scored_by_what_the_other_one_fits(monkeypatch):
    nlp = spacy.blank("en")
    docs = [scored_doc(nlp, [(0, 1, "ORG")], [0.9]) for _ in range(5)]
    seen, scored = [], []

    @contextmanager
    def fake(nlp, part):
        seen.append([docs.index(doc) for doc in part])
        yield f"fitted on {seen[-1]}"

    def predicted(pipeline, part):
        scored.append((pipeline, [docs.index(doc) for doc in part]))
        return part

    monkeypatch.setattr(scoring, "fitted", fake)
    monkeypatch.setattr(scoring, "predict", predicted)
    found = scoring.fitted_scores(nlp, docs)
    assert seen == [[0, 1, 2, 3, 4], [0, 2, 4], [1, 3]]
    assert scored[1:] == [(f"fitted on {seen[1]}", seen[2]), (f"fitted on {seen[2]}", seen[1])]
    assert found["fitted"]["f"] == found["held_out"]["f"] == 100.0


@pytest.mark.parametrize(
    "option, brief",
    [([], [False, True]), (["--brief"], [True, True]), (["--full"], [False, False])],
)
def test_seeds_after_the_first_are_brief(option, brief, monkeypatch, tmp_path):
    calls = []

    def fake(run, results, options, bar, *, again):
        calls.append("--brief" in options)
        return {"learn_rate": run.learn_rate, "f": 1.0}

    monkeypatch.setattr(commands_of, "measured", fake)
    words = ["accuracy", "--datasets", "wnut17", "--encoder", "tuned", "--systems", "min"]
    given = [*words, "--seeds", "0,1", "--results", str(tmp_path / "none.jsonl"), *option]
    done = CliRunner().invoke(commands_of.app, given)
    assert done.exit_code == 0, done.output
    assert calls == brief


def test_a_single_run_is_told_to_be_brief(monkeypatch):
    given = []
    monkeypatch.setattr(commands_of, "execute", lambda run, **more: given.append(more) or [])
    run = json.dumps(asdict(accuracy.Run("demo", "lstm", "ner", 0.003, 0, 10)))
    for option in ([], ["--brief"]):
        assert CliRunner().invoke(commands_of.app, ["one", run, *option]).exit_code == 0
    assert [own["brief"] for own in given] == [False, True]


def test_commands_of_both_sides(tmp_path):
    train_file, vectors = Path("train.spacy"), Path("vectors")
    theirs = quickstart.config_command("spacy", "genia", train_file, vectors, "accuracy")
    assert theirs == ["init", "config", "--lang", "en", "--pipeline", "spancat"]
    assert quickstart.config_command("spacy", "wnut17", train_file, None)[-1] == "ner"
    ours = quickstart.config_command("ours", "genia", train_file, vectors, "accuracy")
    assert ours[-5:] == ["--vectors", "vectors", "--optimize", "accuracy", "-o"]
    plain = quickstart.config_command("ours", "germeval2014", train_file, None)
    assert plain[3:] == ["--lang", "de", "--corpus", "train.spacy", "-o"]
    shown = CliRunner().invoke(spanner, ["config", "--help"], env={"COLUMNS": "200"}).output
    assert all(word in shown for word in ours if word.startswith("-"))


def test_a_user_s_run_is_recorded(monkeypatch, tmp_path):
    calls = []
    (tmp_path / "demo").mkdir()
    for part in ("train", "dev"):
        lines = (ROOT / "assets" / "demo" / f"{part}.jsonl").read_text(encoding="utf8").splitlines()
        (tmp_path / "demo" / f"{part}.jsonl").write_text("\n".join(lines[:9]), encoding="utf8")
    for module in (data, quickstart):
        monkeypatch.setattr(module, "CACHE", tmp_path / "made")
    monkeypatch.setattr(quickstart, "LIMIT", 7)
    monkeypatch.setattr(quickstart, "spacy_command", calls.append)
    monkeypatch.setattr(quickstart, "score", lambda best, dev, lang: {"f": 50.0})
    given = {"seed": 3, "data": tmp_path, "vectors": Path("v"), "optimize": "accuracy"}
    ours = quickstart.measure("ours", "demo", **given)
    assert (ours["vectors"], ours["optimize"], ours["seed"], ours["f"]) == (
        True,
        "accuracy",
        3,
        50.0,
    )
    theirs = quickstart.measure("spacy", "demo", **given)
    assert (theirs["vectors"], theirs["optimize"]) == (False, "efficiency")
    wrote, trained = calls[:2]
    assert wrote[:3] == ["spanner", "config", "auto"] and trained[:2] == ["train", wrote[-1]]
    [used] = [path for word, path in zip(trained, trained[1:]) if word == "--paths.train"]
    assert len(data.read_docs(Path(used), "en")) == 7 and trained[-1] == "3"


def test_what_a_user_gets_is_scored(monkeypatch, tmp_path):
    for name in ("require_cpu", "use_fastest_ops", "remember_codecs"):  # they last beyond a test
        monkeypatch.setattr(quickstart, name, lambda: None)
    monkeypatch.setattr(quickstart.torch, "set_num_threads", lambda number: None)
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "a b"}])
    nlp.to_disk(tmp_path / "model")
    doc = Doc(nlp.vocab, words=["a", "b", "c"])
    doc.spans["sc"] = [Span(doc, 0, 2, label="ORG"), Span(doc, 1, 2, label="LOC")]
    DocBin(docs=[doc]).to_disk(tmp_path / "dev.spacy")
    found = quickstart.score(tmp_path / "model", tmp_path / "dev.spacy", "en")
    assert (found["p"], found["r"], found["components"]) == (100.0, 50.0, ["entity_ruler"])
    assert "calibration_error" not in found and found["words_per_second_default"] > 0


def test_memory_of_training_epoch_by_epoch():
    assert training_memory_section([]) == ""
    made = {"dataset": "conll04", "encoder": "hash", "updates": 250, "commit": "abc"}
    records = [
        {**made, "system": "min", "last": [900, 1900], "most": [900, 1900]},
        {**made, "system": "min", "last": [500, 501], "most": [510, 1511]},
        {**made, "system": "hire", "last": [400], "most": [402]},
    ]
    text = training_memory_section(records)
    assert "| conll04, `hash` | `min` | 250 | 500 (510) | 501 (1,511) |" in text
    assert "| conll04, `hash` | `hire` | 250 | 400 (402) |  |" in text and "1,900" not in text


def test_memory_of_a_small_training_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.data.CACHE", tmp_path)
    monkeypatch.setattr("benchmarks.training_memory.use_fastest_ops", lambda: "numpy")
    options = {"dataset": "demo", "encoder": "hash", "epochs": 1, "data": Path("assets")}
    found = measure_training("global_pointer", **options)
    assert len(found["last"]) == 1 and found["most"][0] >= found["last"][0] > 50
