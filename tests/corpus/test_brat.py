"""brat: texts and their annotation, in folders, with what the format has beyond spans."""

from pathlib import Path

import pytest

from spacy_spanner.corpus.convert import convert, plan
from spacy_spanner.relations import StoredRelation, get_relations

from .test_convert import read, triples, write


def brat(tmp_path, **files):
    """The documents of a folder of texts and their annotation."""
    for name, (text, lines) in files.items():
        write(tmp_path / "brat" / f"{name}.txt", text)
        write(tmp_path / "brat" / f"{name}.ann", "\n".join(lines))
    [result] = convert([tmp_path / "brat"], tmp_path / "out.spacy")
    assert not result.summary.skipped
    return read(result.target)


def test_brat_span_over_the_end_of_a_line_is_one(tmp_path):
    (tmp_path / "brat").mkdir()
    lines = ["T1\tORG 4 9;10 14;15 19\tUpper Port Bank", "T2\tPER 0 3\tAnn"]
    [doc] = brat(tmp_path, a=("Ann Upper\nPort\nBank", [*lines, "R1\tof Arg2:T1 Arg1:T2"]))
    assert [span.text for span in doc.spans["sc"]] == ["Ann", "Upper\nPort\nBank"]
    assert get_relations(doc) == [StoredRelation(0, 1, "PER", 1, 6, "ORG", "of")]


def test_brat_relation_with_roles_of_its_own(tmp_path):
    (tmp_path / "brat").mkdir()
    lines = ["T1\tBacteria 0 2\tEc", "T2\tHabitat 6 9\tgut", "R1\tLives_In Bacterium:T1 Place:T2"]
    ann, other, third = ("Ec in gut", lines), ("Ec in gut", lines[:2]), ("Nothing", [])
    docs = brat(tmp_path, a=ann, b=other, c=third)
    assert get_relations(docs[0]) == [StoredRelation(0, 1, "Bacteria", 2, 3, "Habitat", "Lives_In")]
    assert [get_relations(doc) for doc in docs[1:]] == [[], []]  # looked at, as the first


def test_brat_without_any_relation_says_nothing_of_relations(tmp_path):
    (tmp_path / "brat").mkdir()
    [doc] = brat(tmp_path, a=("Ann", ["T1\tPER 0 3\tAnn"]))
    assert get_relations(doc) is None


@pytest.mark.parametrize("start", [4, 5], ids=["not counted", "counted, as brat does"])
def test_brat_text_with_a_byte_order_mark(tmp_path, start):
    (tmp_path / "brat").mkdir()
    lines = [f"T1\tORG {start} {start + 4}\tBank", f"T2\tPER {start - 4} {start - 1}\tAnn"]
    [doc] = brat(tmp_path, a=("\ufeffAnn Bank", lines))
    assert doc.text == "Ann Bank" and triples(doc.spans["sc"]) == [(0, 1, "PER"), (1, 2, "ORG")]


def test_brat_with_a_byte_order_mark_and_without_texts_of_spans(tmp_path):
    (tmp_path / "brat").mkdir()
    [doc] = brat(tmp_path, a=("\ufeffAnn Bank", ["T1\tPER 0 3", "T2\tORG 4 8"]))
    assert triples(doc.spans["sc"]) == [(0, 1, "PER"), (1, 2, "ORG")]


def test_brat_with_a_byte_order_mark_names_the_wrong_line(tmp_path):
    (tmp_path / "brat").mkdir()
    with pytest.raises(ValueError, match=r"a\.ann.*line 2.*'Bunk'"):
        brat(tmp_path, a=("\ufeffAnn Bank", ["T1\tPER 1 4\tAnn", "T2\tORG 5 9\tBunk"]))


@pytest.mark.parametrize("inside, folder", [("brat", "."), ("brat/sub", ".."), (".", "brat")])
def test_brat_folder_of_any_name(tmp_path, monkeypatch, inside, folder):
    (tmp_path / "brat" / "sub").mkdir(parents=True)
    write(tmp_path / "brat" / "a.txt", "Ann")
    write(tmp_path / "brat" / "a.ann", "T1\tPER 0 3\tAnn")
    monkeypatch.chdir(tmp_path / inside)
    [result] = convert([Path(folder)], tmp_path / "out")
    assert result.target.name == "brat.spacy" and len(read(result.target)) == 1
    assert plan([Path("/")], tmp_path) == {tmp_path / "root.spacy": [Path("/")]}


def test_brat_leaves_out_and_counts(tmp_path):
    folder = tmp_path / "brat"
    (folder / "sub").mkdir(parents=True)
    write(folder / "sub" / "a.txt", "Ann\r\nleft Bo")
    lines = ["T1\tPER 0 3;10 12\tAnn Bo", "T2\tX 5 9\tleft", "R1\tr Arg1:T1 Arg2:T2", "E1\tX:T2"]
    write(folder / "sub" / "a.ann", "\n".join(lines))
    [result] = convert([folder], tmp_path)
    assert result.target.name == "brat.spacy"
    [doc] = read(result.target)
    assert [span.text for span in doc.spans["sc"]] == ["left"]
    assert get_relations(doc) == []
    assert sorted(result.summary.skipped.values()) == [1, 1, 1]
