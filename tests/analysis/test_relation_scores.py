"""Tables of relations sum to the total and equal counts made by hand."""

import pytest

from spacy_spanner.analysis.pages import report_page
from spacy_spanner.analysis.relation_scores import relation_labels, relation_tables
from spacy_spanner.analysis.report import make_report
from spacy_spanner.analysis.scores import Counts
from spacy_spanner.analysis.systems import read_systems
from spacy_spanner.relations import StoredRelation, set_relations

from ..cli.test_commands import run, write
from .cases import make_doc

TEXT = "Ann of Trent University met Bob far far away in the old town of Rome today"
ANN, TRENT, UNI, BOB, ROME = (
    *((0, 1, "PER"), (2, 3, "LOC"), (2, 4, "ORG")),
    *((5, 6, "PER"), (14, 15, "LOC")),
)
GOLD = [(ANN, UNI, "at"), (UNI, TRENT, "in"), (ANN, ROME, "in"), (BOB, ROME, "in")]
# a hit, a false alarm between gold entities, and one with a wrong end; Bob is not found
PRED = [(ANN, UNI, "at"), (ANN, TRENT, "in"), (ANN, (14, 15, "ORG"), "near")]


def related(spans, relations):
    doc = make_doc(TEXT, spans)
    set_relations(doc, [StoredRelation(*head, *tail, label) for head, tail, label in relations])
    return doc


def systems(*preds):
    golds = [related([ANN, TRENT, UNI, BOB, ROME], GOLD)]
    names = [f"s{i}" for i, _ in enumerate(preds)]
    docs = [[related([ANN, TRENT, UNI, ROME], own)] for own in preds]
    return read_systems(names, docs, golds, output="spans", spans_key="sc")


def test_tables():
    first, second = systems(PRED, GOLD)
    labels = relation_labels([first, second])
    assert labels == ["in", "at", "near"]
    tables = relation_tables(first, labels)
    assert tables["labels"] == {"in": (0, 3, 1), "at": (1, 0, 0), "near": (0, 0, 1)}
    assert tables["distance"] == {
        "0": (0, 1, 0),
        "1-2": (1, 0, 1),
        "3-5": (0, 0, 0),
        "6-10": (0, 1, 0),
        "11-20": (0, 1, 1),
        "21 +": (0, 0, 0),
    }
    assert tables["entities"] == {"both right": (1, 2, 1), "not both right": (0, 1, 1)}
    for table in tables.values():
        assert tuple(map(sum, zip(*table.values(), strict=True))) == (1, 3, 2)
    assert relation_tables(second, labels)["entities"]["both right"] == Counts(4, 0, 0)


def test_report_and_page():
    pytest.importorskip("matplotlib")
    report = make_report(systems(PRED, GOLD), resamples=5)
    part = report["systems"][0]["relations"]
    assert part["overall"]["hits"] == 1 and part["overall"]["f"] == pytest.approx(2 / 7)
    assert part["labels"]["in"]["misses"] == 3 and part["entities"]["both right"]["recall"] == 1 / 3
    assert report["comparison"]["relations"]["value"] == pytest.approx(2 / 7 - 1)
    page = report_page(report, gold="gold")
    assert "<th>both right</th>" in page and "<th>11-20</th>" in page
    assert "<th>21 +</th>" not in page.partition("By tokens between")[2]  # has no relations
    plain = make_doc(TEXT, [ANN])
    alone = read_systems(["a"], [[plain]], [plain], output="spans", spans_key="sc")
    report = make_report(alone, resamples=5)
    assert report["systems"][0]["relations"] is None
    assert "both right" not in report_page(report, gold="gold")


def test_printed_report(tmp_path):
    found, spans = [ANN, TRENT, UNI, ROME], [ANN, TRENT, UNI, BOB, ROME]
    gold = write(tmp_path / "gold.spacy", related(spans, GOLD))
    pred = write(tmp_path / "pred.spacy", related(found, PRED))
    code, text = run("analyze", pred, gold, "--compare", gold, "--resamples", "5")
    assert code == 0 and "all 1 3 2 33.3 25.0 28.6" in text  # TP, FN, FP, P, R, F
    assert "distance 1-2 1 0 1 50.0 100.0 66.7" in text and "distance 3-5" not in text
    assert "entities both right 1 2 1" in text and "Relations F -71.43 (95 %" in text
    plain = write(tmp_path / "plain.spacy", make_doc(TEXT, [ANN]))
    assert "Relations" not in run("analyze", plain, plain)[1]
