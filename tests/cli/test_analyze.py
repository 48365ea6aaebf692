"""`analyze` and `thresholds` as a user types them."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from ..systems import make_examples, make_nlp, train
from .test_commands import GOLD, PRED, TEXT, make_doc, run, write

TRAIN = "Trent University is in Trent (Italy)."


@pytest.fixture
def files(tmp_path):
    pred = make_doc(PRED, scores=[0.97, 0.5, 1.0])
    gold = [make_doc(GOLD), make_doc([("More", "PER")], text="More of <it>")]
    return {
        "pred": write(tmp_path / "pred.spacy", pred, make_doc([], text="More of <it>")),
        "gold": write(tmp_path / "gold.spacy", *gold),
        "other": write(tmp_path / "other.spacy", *gold),
        "train": write(tmp_path / "train.spacy", make_doc([("Trent", "LOC")], text=TRAIN)),
    }


def test_analyze_alone(tmp_path, files):
    code, text = run("analyze", files["pred"], files["gold"], "--json", tmp_path / "a" / "r.json")
    assert code == 0 and "all 2 3 1 66.7 40.0 50.0" in text and "Compared: doc.spans['sc']" in text
    assert (
        "Ann left [Trent] University" in text and "A&B 1.00, type error; gold: Trent (LOC)" in text
    )
    report = json.loads((tmp_path / "a" / "r.json").read_text())
    assert report["corpus"] == {
        "documents": 2,
        "tokens": 16,
        "entities": 5,
        "oov_density": None,
    }
    [part] = report["systems"]
    assert part["overall"]["hits"] == 2 and part["errors"]["type"] == 1
    assert part["errors"]["type_rate"] == 0.25 and report["comparison"] is None
    assert "label_consistency" not in part["buckets"]


def test_training_data_without_what_is_compared_is_refused(tmp_path, files):
    flat = write(tmp_path / "flat.spacy", make_doc(PRED[:2], ents=True))
    code, text = run("analyze", files["pred"], files["gold"], "--train", flat)
    assert code == 1 and "S252" in text


def test_analyze_with_all_options(tmp_path, files):
    pytest.importorskip("matplotlib")
    page, report_path = tmp_path / "page.html", tmp_path / "r.json"
    args = ("--train", files["train"], "--compare", files["other"], "--buckets", "quartiles")
    more = ("--resamples", "20", "--errors", "1", "--json", report_path, "--page", page)
    code, text = run("analyze", files["pred"], files["gold"], *args, *more)
    assert code == 0 and "pred minus other" in text and "F -50.00" in text
    report = json.loads(report_path.read_text())
    comparison = report["comparison"]
    assert comparison["f_score"]["value"] == -0.5 and comparison["f_score"]["resamples"] == 20
    assert comparison["labels"]["PER"] == pytest.approx(2 / 3 - 1)
    assert comparison["errors"] == {"boundary_rate": 0.0, "type_rate": 0.25}
    assert report["corpus"]["oov_density"] > 0
    html = page.read_text(encoding="utf-8")
    for part in ("pred against other", "Differences", "Vocabulary", "A&amp;B", "<svg"):
        assert part in html
    assert html.count("<li>") == 1  # the other system has no errors
    assert "://" not in html and "<script" not in html and "#0102" not in html
    ids = [piece.split('"')[0] for piece in html.split(' id="')[1:]]
    assert ids and len(ids) == len(set(ids))


def test_scores_by_length_of_document(tmp_path):
    def short_and_long(*, right):
        docs = []
        for text in (TEXT, f"{TEXT} {'word ' * 40}"):
            doc = make_doc(GOLD if right or text == TEXT else GOLD[:1], text=text)
            for token in doc:
                token.is_sent_start = token.i in (0, 8)
            docs.append(doc)
        return docs

    gold = write(tmp_path / "gold.spacy", *short_and_long(right=True))
    pred = write(tmp_path / "pred.spacy", *short_and_long(right=False))
    args = ("--compare", gold, "--json", tmp_path / "r.json", "--resamples", "5")
    code, text = run("analyze", pred, gold, *args)
    assert code == 0 and "Spans, by tokens ≤ 32 1 4 0 0 100.0 100.0 100.0 " in text
    assert "33-64 1 1 3 0 100.0 25.0 40.0 Spans, by sentences 2 2 5 3 0" in text
    assert "Bucket Docs pred gold Difference" in text and "33-64 1 40.0 100.0 -60.0" in text
    report = json.loads((tmp_path / "r.json").read_text())
    lengths = report["systems"][0]["document_length"]
    assert [(own["interval"], own["f"]) for own in lengths["tokens"]["spans"]] == [
        ("≤ 32", 1.0),
        ("33-64", 0.4),
    ]
    assert report["comparison"]["document_length"]["tokens"]["spans"] == [0.0, -0.6]


def test_page_of_one_system_without_confidences(tmp_path, files):
    pytest.importorskip("matplotlib")
    bare = write(tmp_path / "bare.spacy", make_doc(PRED), make_doc([], text="More of <it>"))
    code, _ = run("analyze", bare, files["gold"], "--page", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert code == 0 and "Recall by length of entity" in html and "Calibration" not in html
    assert "Differences" not in html


def test_page_needs_the_extra(tmp_path, files, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, text = run("analyze", files["pred"], files["gold"], "--page", tmp_path / "page.html")
    assert code == 1 and "spacy-spanner[plots]" in text


def test_analyze_ents_and_missing_gold(tmp_path, files):
    flat = write(tmp_path / "flat.spacy", make_doc(PRED[:2], ents=True))
    code, text = run("analyze", flat, flat)
    assert code == 0 and "all 2 0 0 100.0" in text
    code, text = run("analyze", files["pred"], files["gold"], "--output", "ents")
    assert code == 1 and "no entities" in text
    code, text = run(
        "analyze", files["pred"], files["gold"], "--spans-key", "no", "--output", "spans"
    )
    assert code == 1 and "Existing keys: sc" in text
    assert run("analyze", tmp_path / "no_model", files["gold"])[0] == 1
    empty = write(tmp_path / "empty.spacy", make_doc([]), make_doc([], text="More of <it>"))
    code, text = run("analyze", files["pred"], empty)
    assert code == 1 and "doc.spans['sc'] is annotated, but holds no spans in any of the 2" in text
    empty = write(tmp_path / "empty.spacy", make_doc([], ents=True))
    code, text = run("analyze", flat, empty, "--output", "ents")
    assert code == 1 and "doc.ents is annotated, but holds no spans in any of the 1" in text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A pipeline that has only begun to learn, and the data it learns from."""
    folder = tmp_path_factory.mktemp("thresholds")
    nlp = make_nlp("global_pointer")
    examples = make_examples(nlp)
    train(nlp, examples, steps=8)
    nlp.to_disk(folder / "model")
    DocBin(docs=[eg.reference for eg in examples]).to_disk(folder / "dev.spacy")
    return folder


def spans_f(path):
    nlp = spacy.load(path)
    return nlp.evaluate(make_examples(nlp))["spans_sc_f"]


def test_thresholds(model, tmp_path):
    before = (model / "model" / "config.cfg").read_text()
    args = ("thresholds", model / "model", model / "dev.spacy")
    code, text = run(*args)
    assert code == 0 and "Nothing was changed" in text
    assert (model / "model" / "config.cfg").read_text() == before
    options = ("--per-label", "--temperature", "--min-gold", "1", "--write", tmp_path / "new")
    code, text = run(*args, *options, "--pipe", "global_pointer")
    assert code == 0 and "LOC" in text
    first, second = spans_f(model / "model"), spans_f(tmp_path / "new")
    assert second >= first and f" {100 * second:.2f} " in text
    config = (tmp_path / "new" / "config.cfg").read_text()
    assert "temperature = 1.0\n" not in config
    code, _ = run("thresholds", tmp_path / "new", model / "dev.spacy", "--in-place")
    assert code == 0 and spans_f(tmp_path / "new") >= second


def test_thresholds_says_what_is_wrong(model, tmp_path):
    dev = model / "dev.spacy"
    code, text = run("thresholds", model / "model", dev, "--pipe", "ner")
    assert code == 1 and "global_pointer" in text
    spacy.blank("en").to_disk(tmp_path / "blank")
    code, text = run("thresholds", tmp_path / "blank", dev)
    assert code == 1 and "none" in text
    empty = write(tmp_path / "empty.spacy", spacy.blank("en").make_doc("Nothing"))
    code, text = run("thresholds", model / "model", empty)
    assert code == 1 and "no gold" in text
    empty = write(tmp_path / "empty.spacy", make_doc([]))
    code, text = run("thresholds", model / "model", empty)
    assert code == 1 and "doc.spans['sc'] is annotated, but holds no spans" in text
    args = ("--in-place", "--write", tmp_path / "x")
    assert run("thresholds", model / "model", dev, *args)[0] == 2


def test_analyze_with_several_baselines_and_own_buckets(tmp_path, files):
    pytest.importorskip("matplotlib")
    page, path = tmp_path / "page.html", tmp_path / "r.json"
    third = write(tmp_path / "third.spacy", make_doc([]), make_doc([], text="More of <it>"))
    args = ("--compare", files["other"], "-c", third, "--buckets", "length=1,2,3,4,5,6-")
    code, text = run("analyze", files["pred"], files["gold"], *args, "--json", path, "--page", page)
    assert code == 0 and "pred minus other" in text and "pred minus third" in text
    report = json.loads(path.read_text())
    assert [own["name"] for own in report["comparisons"]] == ["other", "third"]
    assert report["comparison"] == report["comparisons"][0]
    assert len(report["comparisons"][1]["buckets"]["entity_length"]) == 6
    html = page.read_text(encoding="utf-8")
    assert "Differences from other" in html and "Differences from third" in html
    assert html.count('class="three"') > 0 and "var(--three)" in html


def test_too_many_baselines_and_wrong_buckets_are_refused(files):
    many = [part for _ in range(6) for part in ("-c", files["other"])]
    code, text = run("analyze", files["pred"], files["gold"], *many)
    assert code == 1 and "S163" in text
    code, text = run("analyze", files["pred"], files["gold"], "--buckets", "length=2-")
    assert code == 1 and "S162" in text
