"""Proposals by hand, from a trained pipeline, in the JSON, in the text and on the page."""

import json

import numpy
import pytest
import spacy
from spacy.tokens import DocBin

from spacy_spanner.analysis.proposals import describe_proposals, find_proposals, locate
from spacy_spanner.analysis.report import make_report
from spacy_spanner.analysis.systems import load_systems

from ..cli.test_commands import run
from ..systems import make_examples, make_nlp, train
from .cases import make_doc


def test_counts_by_hand():
    doc = make_doc("a b c d e f g h", [])
    # start and end as chosen, then as labelled
    table = numpy.array([[0, 1, 0, 1], [2, 5, 2, 6], [3, 6, 2, 6], [7, 8, 6, 8]])
    gold = numpy.array([[0, 0, 1, 0], [0, 4, 11, 0], [0, 4, 11, 1]])  # characters: a, c d e f
    pred = numpy.array([[0, 4, 11, 0], [0, 12, 15, 0]])  # c d e f, g h
    tokens = numpy.array([[0, 1], [2, 6], [2, 6]])
    own = describe_proposals(locate([doc], [table], tokens), gold, pred)
    assert (own["count"], own["per_gold"]) == (4, 4 / 3)
    assert own["covered"] == {"chosen": 0.5, "labelled": 1.0}
    # Two reported spans: one has two proposals, half each, the other one.
    assert own["moves"]["left"] == [0.25, 0.75, 0, 0, 0]
    assert own["moves"]["right"] == [0.75, 0.25, 0, 0, 0]
    # Three proposals are near gold: the first is right, the others have one side one token off.
    for side in ("left", "right"):
        assert own["distance"]["chosen"][side] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
        assert own["distance"]["labelled"][side] == [1, 0, 0, 0, 0]
    assert describe_proposals(None, gold, pred) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two pipelines that learned a little, and their data."""
    folder = tmp_path_factory.mktemp("proposals")
    for name in ("locate_and_label", "global_pointer"):
        nlp = make_nlp(name)
        examples = make_examples(nlp)
        train(nlp, examples, steps=20)
        nlp.to_disk(folder / name)
    DocBin(docs=[eg.reference for eg in examples]).to_disk(folder / "dev.spacy")
    return folder


def test_of_a_pipeline(folder):
    nlp = spacy.load(folder / "locate_and_label")
    docs = [*nlp.pipe([eg.text for eg in make_examples(nlp)]), nlp("")]
    tables = find_proposals(nlp, docs)
    pipe = nlp.get_pipe("locate_and_label")
    assert len(tables) == len(docs) and len(tables[-1]) == 0
    for doc, table in zip(docs, tables, strict=True):
        assert (table[:, 0] < table[:, 1]).all() and (table[:, 2] < table[:, 3]).all()
        assert (table >= 0).all() and (table <= len(doc)).all()
        labelled = {tuple(row) for row in table[:, 2:].tolist()}
        assert {(span.start, span.end) for span in doc.spans["sc"]} <= labelled
    pipe.model.shims[0].module.filter_threshold = 1.0
    assert not any(map(len, find_proposals(nlp, docs)))
    assert find_proposals(spacy.load(folder / "global_pointer"), docs) is None


def test_of_long_documents(folder):
    """Windows overlap, and nothing is proposed twice."""
    nlp = spacy.load(folder / "locate_and_label")
    pipe = nlp.get_pipe("locate_and_label")
    pipe.model.shims[0].module.filter_threshold = 0.0
    pipe.configure(window=16, overlap=8)
    pipe.cfg["seen"] = {**pipe.cfg["seen"], "row": 16}
    doc = nlp(" ".join(eg.text for eg in make_examples(nlp)) * 3)
    (table,) = find_proposals(nlp, [doc])
    chosen = [tuple(row) for row in table[:, :2].tolist()]
    assert len(doc) > 32 and len(chosen) == len(set(chosen)) > len(doc)


def test_of_spancat():
    nlp = spacy.blank("en")
    nlp.add_pipe(
        "spancat", config={"suggester": {"@misc": "spacy.ngram_suggester.v1", "sizes": [1, 2]}}
    )
    (table,) = find_proposals(nlp, [nlp.make_doc("a b c")])
    assert table.tolist() == [[s, e, s, e] for s, e in [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)]]
    for other in ({"output": "ents"}, {"spans_key": "other"}):  # it writes nothing there
        assert find_proposals(nlp, [nlp.make_doc("a b c")], **other) is None


def test_report(folder, tmp_path):
    pytest.importorskip("matplotlib")
    first, second, gold = (folder / n for n in ("locate_and_label", "global_pointer", "dev.spacy"))
    systems, _ = load_systems([str(first)], str(gold), output="auto", spans_key="sc")
    assert make_report(systems, resamples=1)["systems"][0]["proposals"]["count"] > 0
    paths = {"--json": tmp_path / "r.json", "--page": tmp_path / "p.html", "--resamples": "5"}
    options = [part for pair in paths.items() for part in pair]
    code, text = run("analyze", first, gold, "--compare", second, *options)
    assert code == 0 and text.count("spans were proposed") == 1 and "from gold, as chosen" in text
    report = json.loads(paths["--json"].read_text())
    assert report["systems"][1]["proposals"] is None
    html = paths["--page"].read_text(encoding="utf-8")
    assert "for each gold entity" in html and "from gold, as labelled" in html
    run("analyze", second, gold, "--page", paths["--page"])
    assert "for each gold entity" not in paths["--page"].read_text(encoding="utf-8")
