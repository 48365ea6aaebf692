"""Annotation in shards: the same results from and to any format."""

import csv
import io
import json
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup

from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.distributed.inputs import InputFile, find_inputs
from spacy_spanner.distributed.records import InputRecord, cut_files, read_records
from spacy_spanner.distributed.worker import Annotator, entity_rows
from spacy_spanner.relations import StoredRelation, set_relations

from ..systems import TEXTS
from .shards import rejects, rows, run
from .small import write_jsonl

VOCAB = spacy.blank("en").vocab


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=12),
    st.integers(1, 5),
    st.sampled_from(["jsonl", "csv", "text", "parquet"]),
)
def test_shards_hold_every_record_once(tmp_path_factory, texts, size, format):
    """Cutting and reading is the inverse of writing, also with line ends inside a quoted text."""
    path = tmp_path_factory.mktemp("cut") / "file"
    if format == "csv":
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer)
        writer.writerows([["id", "text"], *([i, text] for i, text in enumerate(texts))])
        path.write_bytes(buffer.getvalue().encode())
    elif format == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    elif format == "text":
        texts = [text.replace("\n", " ").replace("\r", " ").lstrip("\ufeff") for text in texts]
        path.write_bytes("".join(text + "\n" for text in texts).encode())
    else:
        pytest.importorskip("pyarrow")
        import pyarrow.parquet

        table = pyarrow.table({"text": pyarrow.array(texts, pyarrow.string())})
        pyarrow.parquet.write_table(table, path, row_group_size=2)
    shards = cut_files([InputFile("file", str(path), format)], size)
    assert all(shard.count == size for shard in shards[:-1])
    found = [record for shard in shards for record in read_records(shard, text_field="text")]
    assert [record.reason for record in found] == [None] * len(texts)
    assert [record.text for record in found] == texts
    assert [record.number for record in found] == list(range(1, len(texts) + 1))


def test_all_formats_give_the_same_entities(pipeline, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    nlp = spacy.blank("en")
    jsonl = write_jsonl(tmp_path / "a.jsonl", 7)
    items = [json.loads(line) for line in jsonl.read_text().splitlines()]
    texts = [item["text"] for item in items]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *([i, text] for i, text in enumerate(texts))])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(items), tmp_path / "a.parquet")
    docs = [nlp.make_doc(text) for text in texts]
    for i, doc in enumerate(docs):
        doc.user_data["doc"] = f"no. {i}"
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    found = {}
    for path in sorted(tmp_path.glob("a.*")):
        out = tmp_path / f"out-{path.suffix}"
        run([path], pipeline, out)
        found[path.suffix] = rows(out)
    facts = {k: [(r["text"], r["entities"]) for r in v] for k, v in found.items()}
    assert len(facts) == 5 and all(fact == facts[".jsonl"] for fact in facts.values())
    assert any(row["entities"] for row in found[".jsonl"])
    assert [row["meta"] for row in found[".jsonl"]] == [{"id": i} for i in range(7)]
    assert found[".csv"][3]["meta"] == {"id": "3"} and found[".txt"][3]["meta"] == {}
    assert found[".parquet"][3]["meta"] == {"id": 3}
    assert found[".spacy"][3]["meta"] == {"doc": "no. 3"}


def test_output_formats_agree(pipeline, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = write_jsonl(tmp_path / "a.jsonl", 7)
    for format in ("jsonl", "parquet", "spacy"):
        run([path], pipeline, tmp_path / format, format=format)
    expected = rows(tmp_path / "jsonl")
    parquet = [
        row
        for part in sorted((tmp_path / "parquet").glob("part-*"))
        for row in pyarrow.parquet.read_table(part).to_pylist()
    ]
    for row, want in zip(parquet, expected, strict=True):
        assert json.loads(row.pop("meta")) == want.pop("meta")
        assert row.pop("relations") is None
        for found in row["entities"]:
            found["score"] = round(found["score"], 4)
        assert row == want
    docs = [
        doc
        for part in sorted((tmp_path / "spacy").glob("part-*"))
        for doc in DocBin().from_disk(part).get_docs(VOCAB)
    ]
    for doc, want in zip(docs, expected, strict=True):
        assert entity_rows(doc, []) == want["entities"]
        data = doc.user_data
        assert (data["record"], data["file"]) == (want["record"], want["file"])
        assert data["meta"] == {"id": want["record"] - 1}


def test_files_are_found_once_and_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.jsonl", "sub/c.csv", "sub/note.md", "out/part-1.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    options = {"format": "auto", "output": Path("out"), "stdin": io.BytesIO()}
    names = [file.name for file in find_inputs(["b.txt", ".", "*.txt"], **options)]
    assert names == ["b.txt", "a.jsonl", "sub/c.csv"]
    assert [f.name for f in find_inputs(["**/*.csv"], **options)] == ["sub/c.csv"]
    for given_name, code in [("none*", "S029"), ("out", "S029"), ("sub/note.md", "S050")]:
        with pytest.raises(CorpusError, match=code):
            find_inputs([given_name], **options)
    as_text = find_inputs(["sub/note.md"], **{**options, "format": "text"})
    assert as_text[0].format == "text"


# Rejects


@Language.component("spanner_test_fails_on_boom")
def fail_on_boom(doc):
    if "boom" in doc.text:
        raise RuntimeError("it went off")
    return doc


def test_bad_records_are_rejected_and_the_run_continues(pipeline, tmp_path):
    path = tmp_path / "a.jsonl"
    good = json.dumps({"text": TEXTS[0]}).encode()
    lines = [good, b"{", b"[1]", b'{"body": "x"}', b'{"text": 3}', b'{"text": "\xff"}', b"", good]
    lines += [b'{"text": "x", "n": NaN}', b'{"text": "\\ud800"}', b'{"text": "' + b"x" * 2000000]
    lines[-1] += b'"}'
    path.write_bytes(b"\n".join([*lines, good]))
    totals = run([path], pipeline, tmp_path / "out", shard_size=4)
    assert totals.docs == 3 and totals.rejects == 8
    assert [row["record"] for row in rows(tmp_path / "out") if "text" in row][:3] == [1, 8, 12]
    reasons = {row["record"]: row["reason"] for row in rejects(tmp_path / "out")}
    assert list(reasons) == [2, 3, 4, 5, 6, 9, 10, 11]
    parts = ["not JSON", "expected an object", "no field 'text'", "must be a text", "not UTF-8"]
    parts += ["cannot be kept", "surrogate", "E088"]
    for reason, part in zip(reasons.values(), parts, strict=True):
        assert part in reason
    assert all(row["file"] == str(path) for row in rejects(tmp_path / "out"))


def test_csv_rows_with_other_columns_are_rejected(pipeline, tmp_path):
    (tmp_path / "a.csv").write_text('body,n\n"a\nb",1\nx\n\nc,3\n')
    run([tmp_path / "a.csv"], pipeline, tmp_path / "out", text_field="body", shard_size=1)
    found = [(row["text"], row["meta"]) for row in rows(tmp_path / "out") if "text" in row]
    assert found == [("a\nb", {"n": "1"}), ("c", {"n": "3"})]
    assert [row["record"] for row in rejects(tmp_path / "out")] == [2]


def test_a_document_that_breaks_the_pipeline_takes_no_other_with_it(pipeline):
    nlp = spacy.load(pipeline)
    nlp.add_pipe("spanner_test_fails_on_boom", last=True)
    texts = [*TEXTS[:2], "boom", TEXTS[3]]
    records = [InputRecord(i, text) for i, text in enumerate(texts)]
    found = list(Annotator(nlp, batch_words=100)(records))
    assert [result.reason for result in found] == [None, None, "RuntimeError: it went off", None]
    plain = spacy.load(pipeline)
    for result in found:
        if result.doc is not None:
            expected = entity_rows(plain(result.record.text), [])
            assert entity_rows(result.doc, []) == expected


def test_documents_of_like_length_go_together_and_come_back_in_order(pipeline):
    nlp = spacy.load(pipeline)
    texts = [" ".join(TEXTS[: 1 + 7 * i % 4]) for i in range(20)]
    records = [InputRecord(i, text) for i, text in enumerate(texts)]
    annotator = Annotator(nlp, batch_words=50)
    batches = list(annotator._batches(records))
    sizes = [[len(result.doc) for result in batch] for batch in batches]
    in_order = [size for own in sizes for size in own]
    assert in_order == sorted(in_order)
    assert len(batches) > 2 and all(sum(own) <= 50 for own in sizes if len(own) > 1)
    found = annotator(records)
    assert [result.doc.text for result in found] == texts
    plain = spacy.load(pipeline)
    expected = [entity_rows(doc) for doc in plain.pipe(texts)]
    assert [entity_rows(result.doc) for result in found] == expected


# Rows


def test_entities_name_their_source_and_score():
    doc = Doc(VOCAB, words=["a", "bb", "c"], spaces=[True, True, False])
    spans = [Span(doc, 0, 2, "X"), Span(doc, 1, 2, "Y")]
    doc.spans["sc"] = SpanGroup(doc, spans=spans, attrs={"scores": [0.5, 0.123456]})
    doc.spans["ents"] = SpanGroup(doc, spans=spans[:1], attrs={"scores": [0.5]})
    doc.spans["plain"] = SpanGroup(doc, spans=spans[1:])
    doc.set_ents(spans[:1])
    ent = {"start": 0, "end": 4, "label": "X", "score": 0.5, "source": "ents"}
    inner = {"start": 2, "end": 4, "label": "Y", "score": 0.1235, "source": "sc"}
    plain = {**inner, "score": None, "source": "plain"}
    assert entity_rows(doc, []) == [ent, plain, {**ent, "source": "sc"}, inner]
    assert entity_rows(doc, ["ents"]) == [ent]
    assert entity_rows(doc, ["sc"]) == [{**ent, "source": "sc"}, inner]


def test_flat_entities_are_written_once_whatever_their_group_is_called(pipeline, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", 4)
    nlp = spacy.load(pipeline)
    nlp.get_pipe("global_pointer").cfg["ents_key"] = "flat"
    nlp.to_disk(tmp_path / "model")
    run([path], pipeline, tmp_path / "ents")
    run([path], tmp_path / "model", tmp_path / "flat")
    found = [row["entities"] for row in rows(tmp_path / "flat")]
    assert found == [row["entities"] for row in rows(tmp_path / "ents")]
    assert {entity["source"] for entities in found for entity in entities} == {"ents", "sc"}
    run([path], tmp_path / "model", tmp_path / "asked", sources=("flat",))
    asked = [row["entities"] for row in rows(tmp_path / "asked")]
    assert [[{**e, "source": "ents"} for e in entities] for entities in asked] == [
        [e for e in entities if e["source"] == "ents"] for entities in found
    ]


@Language.component("spanner_test_relates")
def relate(doc):
    if len(doc) > 1:
        set_relations(doc, [StoredRelation(0, 1, "A", 1, 2, "B", "near", 0.25)])
    return doc


def test_relations_are_written_in_characters(pipeline, tmp_path):
    nlp = spacy.load(pipeline)
    nlp.add_pipe("spanner_test_relates")
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "a.txt").write_text("Ada came\nx\n")
    run([tmp_path / "a.txt"], tmp_path / "model", tmp_path / "out", relations=True)
    first, second = rows(tmp_path / "out")
    head, tail = {"start": 0, "end": 3, "label": "A"}, {"start": 4, "end": 8, "label": "B"}
    relation = {"head": head, "tail": tail, "label": "near", "score": 0.25}
    assert first["relations"] == [relation] and second["relations"] == []
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    run([tmp_path / "a.txt"], tmp_path / "model", tmp_path / "p", relations=True, format="parquet")
    table = pyarrow.parquet.read_table(next((tmp_path / "p").glob("part-*")))
    assert table["relations"].to_pylist() == [[relation], []]


def test_missing_pyarrow_is_reported(pipeline, tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_spanner.distributed.annotate.find_spec", lambda name: None)
    path = write_jsonl(tmp_path / "a.jsonl", 1)
    with pytest.raises(CorpusError, match=r"spacy-spanner\[parquet\]"):
        run([path], pipeline, tmp_path / "out", format="parquet")
