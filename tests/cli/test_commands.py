"""The commands as a user types them, through spaCy's own app."""

import json
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import DocBin, SpanGroup
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401
from spacy_spanner.relations import get_relations
from spacy_spanner.training_config import join_config, names

NLP = spacy.blank("en")
TEXT = "Ann left Trent University (Italy) <now>."
GOLD = [("Ann", "PER"), ("Trent University", "ORG"), ("Trent", "LOC"), ("Italy", "LOC")]
PRED = [("Ann", "PER"), ("Trent University", "ORG"), ("Trent", "A&B")]


def make_doc(spans, *, scores=None, ents=False, text=TEXT):
    doc = NLP.make_doc(text)
    found = []
    for part, label in spans:
        start = text.index(part)
        found.append(doc.char_span(start, start + len(part), label=label))
    if ents:
        doc.set_ents(found, default="outside")
        return doc
    attrs = {} if scores is None else {"scores": numpy.array(scores, dtype="float32")}
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=found, attrs=attrs)
    doc.user_data["doc"] = "letter 1"
    return doc


def write(path, *docs):
    DocBin(store_user_data=True, docs=docs).to_disk(path)
    return path


def run(*args):
    result = CliRunner().invoke(app, ["spanner", *map(str, args)])
    assert not isinstance(result.exception, Exception), result.exception
    return result.exit_code, " ".join(result.output.split())  # lines are wrapped anywhere


@pytest.fixture
def files(tmp_path):
    pred = make_doc(PRED, scores=[0.97, 0.5, 1.0])
    return write(tmp_path / "pred.spacy", pred), write(tmp_path / "gold.spacy", make_doc(GOLD))


def test_help_lists_commands_and_loads_nothing_heavy():
    code = (
        "import sys, spacy.cli, spacy_spanner.cli\n"
        "print(*(m for m in sys.modules if m.startswith(('spacy_spanner.', 'pandas', 'ray.'))))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split()) - {"spacy_spanner.errors", "spacy_spanner.acceleration"}
    assert all(module.startswith("spacy_spanner.cli") for module in loaded)
    exit_code, text = run("--help")
    assert exit_code == 0
    assert all(f" {command} " in text for command in ("convert", "check", "render"))


def test_convert(tmp_path):
    item = {
        "text": TEXT,
        "entities": [[0, 3, "PER"], [9, 25, "ORG"], [9, 25, "ORG"], [0, 2, "X"]],
        "relations": [[0, 1, "left"], [3, 1, "lost"]],
    }
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps(item))
    args = ("--spans-key", "mine", "--format", "jsonl", "--lang", "en")
    code, text = run("convert", source, tmp_path / "out", *args)
    assert code == 0
    for part in (
        "Spans 2 ",
        "PER 1, ORG 1",
        "1 were",
        "'An' (0 to 2)",
        "1 relations",
        "1 rep",
    ):
        assert part in text, text
    [doc] = DocBin().from_disk(tmp_path / "out" / "a.spacy").get_docs(NLP.vocab)
    assert [span.text for span in doc.spans["mine"]] == ["Ann", "Trent University"]
    assert [relation.label for relation in get_relations(doc)] == ["left"]
    code, text = run("convert", source, tmp_path / "a.spacy", "--alignment-mode", "expand")
    assert code == 0 and "0 were" in text


def test_convert_names_columns_that_look_wrong(tmp_path):
    (tmp_path / "a.conll").write_text("1 Ann B-PER\n2 left O\n")
    code, text = run("convert", tmp_path / "a.conll", tmp_path / "out")
    assert code == 0 and "[SW28]" in text and "--token-column" in text
    code, text = run("convert", tmp_path / "a.conll", tmp_path / "out", "--token-column", "1")
    assert code == 0 and "[SW28]" not in text


def test_convert_brat_names_what_was_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("Ann has left")
    (tmp_path / "a.ann").write_text("T1\tPER 0 3;8 12\tAnn left\n")
    code, text = run("convert", tmp_path / "a.ann", tmp_path / "out")
    assert code == 0 and "1 discontinuous spans were left out" in text


def test_convert_columns(tmp_path):
    source = tmp_path / "a.conll"
    source.write_text("1 Ann B-PER x\n")
    args = ("--token-column", "1", "--tag-column", "2")
    assert run("convert", source, tmp_path, *args)[0] == 0
    [doc] = DocBin().from_disk(tmp_path / "a.spacy").get_docs(NLP.vocab)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Ann", "PER")]


def test_convert_fails_with_place_and_reason(tmp_path):
    source = tmp_path / "a.conll"
    source.write_text("Ann B-PER\nleft Q\n")
    code, text = run("convert", source, tmp_path / "out")
    assert code == 1 and "line 2" in text and "'Q'" in text
    assert not (tmp_path / "out").exists()
    source.write_text("Ann B-PER\n")
    code, text = run("convert", source, tmp_path / "out", "--lang", "qqq")
    assert code == 1 and "qqq" in text


def test_check(tmp_path, files):
    pred, gold = files
    report = tmp_path / "report.json"
    args = ("--max-width", "1", "--window", "8", "--overlap", "2", "--json", report)
    code, text = run("check", gold, "--dev", pred, *args)
    assert code == 0
    assert "LOC" in text and "holds 75.00 %" in text and "Labels only in dev: A&B" in text
    values = json.loads(report.read_text())
    assert values["train"]["spans"] == 4 and values["dev"]["spans"] == 3
    assert values["train"]["too_wide"] == 1 and values["settings"]["window"] == 8
    assert any("exact duplicates" in warning for warning in values["warnings"])


def test_check_warns_of_longer_texts(tmp_path, files):
    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps({"text": "word " * 500}) + "\n")
    code, text = run("check", files[1], "--like", texts)
    assert code == 0 and "against 500" in " ".join(text.split()) and "JoinedCorpus" in text
    texts.write_text(json.dumps({"text": "a short one"}) + "\n")
    assert "JoinedCorpus" not in run("check", files[1], "--like", texts)[1]
    texts.write_text('{"words": []}\n')
    code, text = run("check", files[1], "--like", texts)
    assert code == 1 and "line 1" in text


def test_check_without_gold_names_the_keys(files):
    code, text = run("check", files[0], "--spans-key", "other")
    assert code == 1 and "Existing keys: sc" in text
    code, text = run("check", files[0], "--output", "ents")
    assert code == 1 and "no entities" in text


def test_check_takes_settings_from_config(tmp_path, files):
    config = tmp_path / "config.cfg"
    config.write_text(
        '[nlp]\npipeline = ["x"]\n[components]\n[components.x]\nspans_key = "nokey"\n'
        '[components.x.model]\n@architectures = "spacy-spanner.SpanNER.v1"\nmax_width = 1\n'
    )
    assert run("check", files[1], "--config", config)[0] == 1
    code, text = run("check", files[1], "--config", config, "--spans-key", "sc")
    assert code == 0 and "max_width = 1 holds 75.00 %" in text
    assert run("check", files[1], "--window", "4", "--overlap", "4")[0] == 2


@pytest.mark.parametrize("encoder", names("encoders"))
def test_check_takes_settings_of_the_head_over_every_encoder(tmp_path, files, encoder):
    """Some encoders are architectures of ours, too."""
    config = tmp_path / "config.cfg"
    join_config("span_ner", encoder, output="spans", max_width=1).to_disk(config)
    code, text = run("check", files[1], "--config", config)
    assert code == 0 and "max_width = 1 holds 75.00 %" in text
    join_config("ner", encoder).to_disk(config)
    code, text = run("check", files[1], "--config", config)
    assert code == 1 and "S026" in text
    nonsense = config.read_text().replace("spacy.TransitionBased", "spacy-spanner.Nonsense")
    config.write_text(nonsense)
    code, text = run("check", files[1], "--config", config)
    assert code == 1 and "S029" in text and "Nonsense" in text


def test_render_predictions_beside_gold(tmp_path, files):
    page = tmp_path / "deep" / "page.html"
    code, text = run("render", *files, "-o", page, "--title", "My <page>")
    assert code == 0 and "1 documents" in text
    html = page.read_text(encoding="utf-8")
    for part in (
        "✓ PER .97",
        "✓ ORG .50",
        "✗ A&amp;B 1.00",
        "○ LOC",
        "My &lt;page&gt;",
        "letter 1",
    ):
        assert part in html
    for kind, count in (("tp", 2), ("fn", 2), ("fp", 1)):
        assert f'<div class="card {kind}"><b>{count}</b>' in html
    assert "://" not in html and "<script" not in html and "\ue000" not in html


def test_a_span_group_that_was_named_is_not_replaced_by_entities(tmp_path):
    """In gold, or in predictions where there is none. One that gold has need not be in predictions."""
    doc = make_doc(GOLD[:2])
    doc.set_ents(list(doc.spans["sc"]), default="outside")
    gold, page = write(tmp_path / "gold.spacy", doc), ("-o", tmp_path / "page.html")
    flat = write(tmp_path / "flat.spacy", make_doc(PRED[:2], ents=True))
    cases = {
        ("analyze", flat, gold): (str(gold), "sc"),
        ("analyze", gold, gold, "--compare", flat): (str(gold), "sc"),
        ("render", gold, gold, *page): (str(gold), "sc"),
        ("render", flat, *page): (str(flat), "none"),
    }
    for command, (path, keys) in cases.items():
        code, text = run(*command, "--spans-key", "foo")
        assert code == 1 and "S023" in text and f"Existing keys: {keys}." in text
        assert path.split("/")[-1] in text and not (tmp_path / "page.html").exists()
        assert run(*command, "--spans-key", "foo", "--output", "ents")[0] == 0
        assert run(*command)[0] == 0
        (tmp_path / "page.html").unlink(missing_ok=True)
    for command in (("analyze", gold, gold, "--compare", flat), ("render", flat, gold, *page)):
        assert run(*command, "--spans-key", "sc")[0] == 0


def test_render_without_gold_and_with_ents(tmp_path):
    flat = write(tmp_path / "flat.spacy", make_doc(PRED[:2], ents=True))
    nested = write(tmp_path / "nested.spacy", make_doc(GOLD), make_doc(GOLD, text=TEXT + " More."))
    page = tmp_path / "page.html"
    code, text = run("render", nested, "-o", page, "--limit", "1")
    html = page.read_text(encoding="utf-8")
    notice = "There are more documents than the first 1, which are all that was read (--limit)."
    assert code == 0 and notice in text and notice in html
    assert html.count("<article") == 1 and "<b>4</b><span>spans" in html
    assert run("render", flat, "-o", page)[0] == 0
    assert "<b>2</b><span>spans" in page.read_text(encoding="utf-8")
    assert "that was read" not in page.read_text(encoding="utf-8")
    code, text = run("render", nested, nested, "-o", page, "--output", "ents")
    assert code == 0 and "Gold is not shown" in text
    code, text = run("render", flat, "-o", page, "--output", "spans", "--spans-key", "none")
    assert code == 0 and "No spans to show under 'none': no document has this group" in text
    empty = make_doc([])
    empty.spans["ents"] = []
    code, text = run("render", write(tmp_path / "empty.spacy", empty), "-o", page)
    assert code == 0 and "the group 'sc' is empty in all documents. Other span groups: ents" in text
    code, text = run("render", tmp_path / "empty.spacy", "-o", page, "--output", "ents")
    assert code == 0 and "`doc.ents` is empty in all documents" in text


def test_render_only_errors_on_several_pages(tmp_path, files, monkeypatch):
    golds = [make_doc(GOLD, text=f"{TEXT} {i}") for i in range(6)]
    preds = [make_doc(PRED if i % 2 else GOLD, text=f"{TEXT} {i}") for i in range(6)]
    files = write(tmp_path / "a.spacy", *preds), write(tmp_path / "b.spacy", *golds)
    monkeypatch.setattr("spacy_spanner.analysis.articles.PAGE", 3_000)
    args = ("render", *files, "-o", tmp_path / "page.html", "--only-errors", "--limit", "0")
    code, text = run(*args)
    assert code == 0 and "Wrote 3 documents" in text and "1 more pages" in text, text
    names = sorted(path.name for path in tmp_path.glob("*.html"))
    assert names == ["page-2.html", "page.html"]
    code, text = run("render", files[0], "-o", tmp_path / "none.html", "--only-errors")
    assert code == 1 and "S180" in text and not (tmp_path / "none.html").exists()


def test_render_a_pipeline(tmp_path, files):
    nlp = spacy.blank("en")
    nlp.add_pipe("span_ruler", config={"spans_key": "sc"}).add_patterns(
        [{"label": "PER", "pattern": "Ann"}]
    )
    nlp.to_disk(tmp_path / "model")
    lines = tmp_path / "lines.txt"
    lines.write_bytes("\ufeffAnn came.\r\n\r\nBob came.\u2028Home.\r\n".encode())
    page = tmp_path / "page.html"
    code, _ = run("render", tmp_path / "model", files[1], lines, "Ann again", "-o", page)
    html = page.read_text(encoding="utf-8")
    assert code == 0 and html.count("<article") == 4
    assert '<div class="card tp"><b>1</b>' in html and '<div class="card fn"><b>3</b>' in html
    assert "\ufeff" not in html
    other = tmp_path / "texts.jsonl"
    other.write_text('{"text": "Ann came."}')
    code, text = run("render", tmp_path / "model", other, "-o", page)
    assert code == 1 and "S251" in text
    folder = tmp_path / "gold"
    folder.mkdir()
    write(folder / "gold.spacy", make_doc(GOLD))
    assert run("render", tmp_path / "model", folder, "Ann " * 5000, "-o", page)[0] == 0
    assert '<div class="card tp"><b>1</b>' in page.read_text(encoding="utf-8")
    assert run("render", tmp_path / "model", "-o", page)[0] == 2
    assert run("render", tmp_path / "no_model", "text", "-o", page)[0] == 1


def test_render_refuses_what_does_not_belong_together(tmp_path, files):
    other = write(tmp_path / "other.spacy", make_doc([], text="Something else"))
    longer = write(tmp_path / "longer.spacy", make_doc(GOLD), make_doc(GOLD))
    cases = [
        ((files[0], other), "differ in text at document 1"),
        ((files[0], longer), "ends after 1 documents"),
        ((longer, files[1]), "ends after 1 documents"),
        ((files[0], files[1], other), "only one .spacy file of gold"),
        ((files[0], "text"), "only one .spacy file of gold"),
    ]
    for args, why in cases:
        code, text = run("render", *args, "-o", tmp_path / "page.html")
        assert code == 1 and why in text
    assert run("render", tmp_path / "missing.spacy")[0] == 2
    assert not (tmp_path / "page.html").exists()
