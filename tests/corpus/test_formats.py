"""The same documents come out of every format, detected by content, compressed or not."""

import json
import random
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_spanner.corpus.convert import convert
from spacy_spanner.corpus.detect import READERS, detect_format
from spacy_spanner.corpus.record import CorpusError, ReadOptions
from spacy_spanner.corpus.tagged import parse_names
from spacy_spanner.relations import StoredRelation, get_relations

from .formats import FLAT, NESTED, SAMPLES, TAG_NAMES, WORDS, damage, name_of, put
from .test_relation_files import RELATION_FILES

JOINED = StoredRelation(0, 2, "PER", 3, 5, "ORG", "joined")


def read(path):
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def triples(spans):
    return [(span.start, span.end, span.label_) for span in spans]


def write(path, *items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf8")
    return path


def convert_one(path, **settings):
    [result] = convert([path], path.parent / "out", **settings)
    return read(result.target), result.summary


def test_there_is_a_sample_of_each_format():
    assert {sample.format for sample in SAMPLES} | RELATION_FILES.keys() == READERS.keys()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_samples(tmp_path, sample, compressed):
    path = put(sample, tmp_path, compressed=compressed)
    assert detect_format(path) == sample.format
    [result] = convert([path], tmp_path / "out", options=sample.options)
    assert result.target.name == sample.file.split(".")[0] + ".spacy"
    docs = read(result.target)
    assert [[token.text for token in doc if token.text.strip()] for doc in docs] == WORDS
    assert [triples(doc.spans["sc"]) for doc in docs] == (NESTED if sample.nested else FLAT)
    assert [triples(doc.ents) for doc in docs] == FLAT
    assert all(doc.has_annotation("ENT_IOB") for doc in docs)
    assert (get_relations(docs[0]) == [JOINED]) == sample.relations
    assert sum(result.summary.skipped.values()) == sample.skipped


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_the_name_of_a_file_tells_nothing(tmp_path, sample):
    assert detect_format(put(sample, tmp_path, name="data")) == sample.format


def test_stored_documents_keep_what_they_have(tmp_path):
    path = put(SAMPLES[-1], tmp_path)
    docs, _ = convert_one(path)
    assert docs[0][0].pos_ == "X" and not docs[0].has_unknown_spaces
    nlp = spacy.blank("en")
    whole, partly, unknown = (nlp.make_doc("Ann left") for _ in range(3))
    whole.spans["sc"] = [Span(whole, 0, 2, label="A")]
    partly.set_ents([], missing=[partly[0:1]], default="outside")
    DocBin(docs=[whole, partly, unknown]).to_disk(tmp_path / "more.spacy")
    [doc], summary = convert_one(tmp_path / "more.spacy")
    assert triples(doc.spans["sc"]) == triples(doc.ents) == [(0, 2, "A")]
    assert sorted(summary.skipped.values()) == [1, 1]


def test_a_stored_file_is_never_overwritten(tmp_path):
    path = put(SAMPLES[-1], tmp_path)
    before = path.read_bytes()
    for output in (path, tmp_path):
        with pytest.raises(CorpusError, match="S106"):
            convert([path], output)
    assert path.read_bytes() == before


def test_offsets_of_javascript_are_converted(tmp_path):
    """Label Studio counts UTF-16 units: the face before the name counts as two."""
    text = "😀 Ann left"
    for start, end in [(3, 6), (2, 5)]:
        value = {"start": start, "end": end, "text": "Ann", "labels": ["PER"]}
        task = {"data": {"text": text}, "annotations": [{"result": [{"value": value}]}]}
        [doc], _ = convert_one(write(tmp_path / "a.json", task))
        assert [span.text for span in doc.spans["sc"]] == ["Ann"]


def test_label_studio_odds_and_ends(tmp_path):
    two = {"value": {"start": 0, "end": 3, "labels": ["A", "B"]}, "id": "x"}
    bare = {"value": {"start": 4, "end": 8}, "id": "y"}
    link = {"type": "relation", "from_id": "x", "to_id": "y", "labels": ["r"]}
    choice = {"type": "choices", "value": {"choices": ["good"]}}
    first, second = {"result": []}, {"result": [two, bare, link, choice], "ground_truth": True}
    task = {"data": {"body": "Ann left", "n": 1}, "completions": [first, second]}
    [doc], summary = convert_one(write(tmp_path / "a.json", task))
    assert triples(doc.spans["sc"]) == [(0, 1, "A"), (0, 1, "B")]
    assert get_relations(doc) == [] and sum(summary.skipped.values()) == 4


def test_label_studio_relations_in_both_directions_and_none(tmp_path):
    ann, bo = (
        {"value": {"start": start, "end": start + 2, "labels": ["PER"]}, "id": name}
        for start, name in [(0, "x"), (7, "y")]
    )
    link = {"type": "relation", "from_id": "x", "to_id": "y", "direction": "bi", "labels": ["met"]}
    tasks = [
        {"data": {"text": "Al met Bo"}, "annotations": [{"result": [ann, bo, *links]}]}
        for links in ([link], [])
    ]
    docs, _ = convert_one(write(tmp_path / "a.json", *tasks))
    ends = [(0, 1, "PER"), (2, 3, "PER")]
    both = [StoredRelation(*a, *b, "met") for a, b in (ends, ends[::-1])]
    assert [get_relations(doc) for doc in docs] == [both, []]
    [doc], _ = convert_one(write(tmp_path / "a.json", tasks[1]))
    assert get_relations(doc) is None


def test_relations_between_spans_by_their_offsets(tmp_path):
    """As `annotate` writes them."""
    ends = [{"start": 0, "end": 2, "label": "PER"}, {"start": 7, "end": 9, "label": "PER"}]
    relation = {"head": ends[0], "tail": ends[1], "label": "met", "score": 0.9}
    loose = {**relation, "tail": {"start": 3, "end": 6, "label": "X"}}
    entities = [{**end, "score": 0.8, "source": "sc"} for end in ends]
    item = {"text": "Al met Bo", "entities": entities, "relations": [relation, loose], "meta": {}}
    [doc], summary = convert_one(write(tmp_path / "a.jsonl", item))
    assert get_relations(doc) == [StoredRelation(0, 1, "PER", 2, 3, "PER", "met")]
    assert sum(summary.skipped.values()) == 1


def test_doccano_before_version_17(tmp_path):
    entities = [
        {"id": 7, "start_offset": 0, "end_offset": 2, "label": "PER"},
        {"id": 9, "start_offset": 7, "end_offset": 9, "label": "PER"},
    ]
    relations = [{"id": 0, "from_id": 7, "to_id": 9, "type": "met"}]
    item = {"id": 1, "data": "Al met Bo", "label": {"entities": entities, "relations": relations}}
    path = write(tmp_path / "a.jsonl", item)
    [doc], _ = convert_one(path)
    assert detect_format(path) == "doccano"
    assert get_relations(doc) == [StoredRelation(0, 1, "PER", 2, 3, "PER", "met")]


def test_fields_by_option(tmp_path):
    item = {"title": "No", "body": "Ann left", "entities": [[0, 3, "PER"]]}
    path = write(tmp_path / "a.jsonl", item)
    with pytest.raises(CorpusError, match="--text-field"):
        convert_one(path)
    [doc], _ = convert_one(path, options=ReadOptions(text_field="body"))
    assert doc.text == "Ann left" and triples(doc.ents) == [(0, 1, "PER")]


def test_names_of_tags(tmp_path):
    described = {"features": {"ner_tags": {"feature": {"names": TAG_NAMES}}}}
    row = {"words": ["Ann"], "tags": [1]}
    [doc], _ = convert_one(write(tmp_path / "a.jsonl", described, row))
    assert triples(doc.ents) == [(0, 1, "PER")]
    [doc], _ = convert_one(tmp_path / "a.jsonl", options=ReadOptions(tag_names=["O", "B-X"]))
    assert triples(doc.ents) == [(0, 1, "X")]
    file = tmp_path / "names"
    for content in (
        "\n".join(TAG_NAMES),
        json.dumps(TAG_NAMES),
        json.dumps(TAG_NAMES, indent=1),
        json.dumps(described, indent=1),
        json.dumps({"id2label": dict(enumerate(TAG_NAMES))}),
    ):
        file.write_text(content)
        assert parse_names(str(file)) == TAG_NAMES
    assert parse_names("O, B-PER") == ["O", "B-PER"]
    for bad in ("O", "O,,B-PER", "no_such_file"):
        with pytest.raises(CorpusError, match="S101"):
            parse_names(bad)


def test_an_object_that_holds_its_rows_anywhere(tmp_path):
    rows = [{"text": "Ann left", "spans": [{"start": 0, "end": 3, "label": "PER"}]}] * 2
    path = tmp_path / "a.json"
    for content in ({"data": rows}, {"data": rows[:1]}):
        path.write_text(json.dumps(content, indent=2))
        docs, _ = convert_one(path)
        assert len(docs) == len(content["data"])
    path.write_text(json.dumps(rows[0], indent=2))
    assert len(convert_one(path)[0]) == 1


def test_prodigy_without_a_document_left(tmp_path):
    path = write(tmp_path / "a.jsonl", {"text": "x", "spans": [], "answer": "reject"})
    with pytest.raises(CorpusError, match="1 documents with the answer 'reject'"):
        convert_one(path)


def test_conllu_without_tags_is_not_annotated(tmp_path):
    path = put(next(s for s in SAMPLES if s.format == "conllu"), tmp_path)
    path.write_text(path.read_text().replace("NER=", "Lemma="))
    with pytest.raises(CorpusError, match="S102"):
        convert_one(path)


def test_options_do_not_change_the_span_group(tmp_path):
    path = put(SAMPLES[0], tmp_path)
    docs, _ = convert_one(path, spans_key="mine", options=replace(ReadOptions(), spans_key="x"))
    assert all(list(doc.spans) == ["mine"] for doc in docs)


def test_documents_without_text_are_left_out(tmp_path):
    items = [{"text": text, "entities": []} for text in ("", " \n", "Ann")]
    items.append({"tokens": [], "entities": []})
    docs, summary = convert_one(write(tmp_path / "a.jsonl", *items))
    assert len(docs) == 1 and summary.skipped == {"documents without text": 3}


def test_a_list_of_spans_says_more_than_other_lists(tmp_path):
    item = {"tokens": ["Ann"], "tags": ["NNP"], "entities": [[0, 1, "PER"]]}
    path = write(tmp_path / "a.jsonl", item)
    assert detect_format(path) == "jsonl"


def test_ids_are_those_of_documents_not_of_rows(tmp_path):
    """Rows of Hugging Face are numbered from 0 in every file: no sign of a shared document."""
    for format, doc_id in (("huggingface", None), ("conllu", "letter"), ("doccano", "1")):
        path = put(next(s for s in SAMPLES if s.format == format), tmp_path)
        docs, _ = convert_one(path)
        assert docs[0].user_data.get("doc") == doc_id


def test_words_beside_a_text_with_spans(tmp_path):
    item = {"text": "Ann left", "tokens": ["Ann", "left"]}
    span = {"start": 4, "end": 8, "label": "A"}
    for spans in ({"spans": [span]}, {"entities": [[1, 2, "A"]]}):
        [doc], _ = convert_one(write(tmp_path / "a.jsonl", {**item, **spans}))
        assert triples(doc.ents) == [(1, 2, "A")]


def test_a_large_stored_file_is_recognised(tmp_path):
    words = [str(i * i) for i in range(5000)]
    DocBin(docs=[Doc(Vocab(), words=words)]).to_disk(tmp_path / "data")
    assert detect_format(tmp_path / "data") == "spacy"


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_damaged_samples_end_in_a_corpus_error_or_none(tmp_path, sample):
    """Whatever is wrong with a file, no other error comes out, and no part of an output stays."""
    choose = random.Random(sample.file)
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = put(sample, folder)
        damaged = path if path.is_file() else path / "d1.ann"
        damaged.write_bytes(damage(damaged.read_bytes(), choose))
        try:
            convert([path], folder / "out", format=sample.format, options=sample.options)
        except CorpusError:
            assert not (folder / "out").exists()


def test_stored_span_groups_that_are_not_read_are_named(tmp_path):
    doc = spacy.blank("en")("Ann left")
    doc.spans["nested"] = [Span(doc, 0, 1, "PER"), Span(doc, 0, 2, "EVENT")]
    doc.ents = [Span(doc, 0, 1, "PER")]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    [flat] = convert([tmp_path / "in.spacy"], tmp_path / "flat.spacy")
    [(what, count)] = flat.summary.skipped.items()
    assert flat.summary.spans == count == 1 and "(nested; name one with --spans-key)" in what
    [named] = convert([tmp_path / "in.spacy"], tmp_path / "named.spacy", spans_key="nested")
    assert named.summary.spans == 2 and not named.summary.skipped
