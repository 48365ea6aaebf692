"""Corpora of relations in formats of their own, and folds."""

import json
import random

import pytest
import spacy

from spacy_spanner.corpus.convert import convert
from spacy_spanner.corpus.detect import detect_format
from spacy_spanner.corpus.docs import read_docs
from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.relations import get_relations

from .formats import damage

TRIPLES = [
    {
        "text": "Ann Lee of Riga met Bo in Riga .",
        "triple_list": [["Ann Lee", "/people/lived", "Riga"], ["Bo", "/people/met", "Ann Lee"]],
    },
    {"text": "Leeds is near .", "triple_list": [["Lee", "in", "Leeds"]]},
]
SPANS = [
    {
        "text": "Ann Lee of Riga",
        "entity_list": [{"text": "Ann Lee", "type": "PER", "char_span": [0, 7]}],
        "relation_list": [
            {"subj_char_span": [0, 7], "obj_char_span": [11, 15], "predicate": "lived"}
        ],
    },
]
SCIERC = [
    {
        "doc_key": "A1",
        "sentences": [["We", "use", "parsers", "."], ["They", "beat", "deep", "parsers", "."]],
        "ner": [[[2, 2, "Method"]], [[4, 4, "Generic"], [6, 7, "Method"]]],
        "relations": [[], [[4, 4, 6, 7, "COMPARE"]]],
        "clusters": [],
    }
]
ADE = (
    "10030778|Intravenous azithromycin-induced ototoxicity.|ototoxicity|43|54|azithromycin|22|34\n"
    "1|Rash and a rash after drug A and drug C now.|rash|11|15|drug A|22|28\n"
    "1|Rash and a rash after drug A and drug C now.|rash|11|15|drug C|33|39\n"
    "2|Nothing is here.|pain|0|4|drug|5|9\n"
)


RELATION_FILES = {
    "triples": "\n".join(map(json.dumps, TRIPLES)),
    "scierc": "\n".join(map(json.dumps, SCIERC)),
    "ade": ADE,
}


def converted(tmp_path, items, name="x.json", **options):
    path = tmp_path / name
    text = items if isinstance(items, str) else "\n".join(map(json.dumps, items))
    path.write_text(text, encoding="utf8")
    (result,) = convert([path], tmp_path / "out.spacy", **options)
    docs = list(read_docs(tmp_path / "out.spacy", spacy.blank("en").vocab))
    return detect_format(path), result, docs


def texts(doc):
    return [
        (
            doc[r.head_start : r.head_end].text,
            r.head_label,
            r.label,
            doc[r.tail_start : r.tail_end].text,
        )
        for r in get_relations(doc)
    ]


@pytest.mark.parametrize("format", RELATION_FILES)
def test_damaged_files_end_in_a_corpus_error_or_none(tmp_path, format):
    choose = random.Random(format)
    for number in range(40):
        path, target = tmp_path / f"{number}.txt", tmp_path / f"{number}.spacy"
        path.write_bytes(damage(RELATION_FILES[format].encode(), choose))
        try:
            convert([path], target, format=format)
        except CorpusError:
            assert not target.exists()


def test_triples(tmp_path):
    format, result, docs = converted(tmp_path, TRIPLES)
    assert format == "triples" and result.summary.relations == 2
    assert texts(docs[0]) == [
        ("Ann Lee", "ENTITY", "/people/lived", "Riga"),
        ("Bo", "ENTITY", "/people/met", "Ann Lee"),
    ]
    assert [span.start for span in docs[0].spans["sc"]] == [0, 3, 5]  # first occurrences
    assert get_relations(docs[1]) == []
    assert result.summary.skipped == {"relations with an end that is not in the text": 1}


def test_triples_with_offsets(tmp_path):
    format, _, docs = converted(tmp_path, SPANS)
    assert format == "triples" and texts(docs[0]) == [("Ann Lee", "PER", "lived", "Riga")]


def test_scierc(tmp_path):
    format, _, docs = converted(tmp_path, SCIERC)
    assert format == "scierc" and [len(doc) for doc in docs] == [4, 5]
    assert get_relations(docs[0]) == []
    assert texts(docs[1]) == [("They", "Generic", "COMPARE", "deep parsers")]
    _, _, (whole,) = converted(tmp_path, SCIERC, join=True)
    assert texts(whole) == texts(docs[1]) and len(whole) == 9


def test_ade(tmp_path):
    format, result, docs = converted(tmp_path, ADE, "DRUG-AE.rel", alignment_mode="expand")
    assert format == "ade" and len(docs) == 3
    assert texts(docs[1]) == [
        ("rash", "Adverse-Effect", "Adverse-Effect", "drug A"),
        ("rash", "Adverse-Effect", "Adverse-Effect", "drug C"),
    ]
    assert docs[1].spans["sc"][0].start_char == 11 and result.summary.skipped


@pytest.mark.parametrize(
    "item",
    [
        {"text": 3, "triple_list": []},
        {"text": "a b", "triple_list": [["a", "b"]]},
        {"text": "a b", "triple_list": [["a", "", "b"]]},
        {"text": "a b", "relation_list": [{"subj_char_span": [0], "predicate": "x"}]},
        {"text": "a b", "relation_list": [3]},
        {"text": "a b", "relation_list": [], "entity_list": [{"char_span": [[0], 1]}]},
        {"tokens": ["a", "b"], "spo_details": [[0, 1, "A", "r", 1, 3, "B"]]},
        {"tokens": ["a", "b"], "spo_details": [[0, 1, "A", "r"]]},
        {"sentences": [["a"]], "ner": [[["x", 0, "A"]]], "relations": [[]]},
        {"sentences": [["a"]], "ner": [[[0, 1, "A"]]], "relations": [[]]},
        {"sentences": [["a"]], "ner": [[[0, 0]]], "relations": [[]]},
        {"sentences": [["a"]], "ner": [[], []], "relations": [[]]},
    ],
)
def test_malformed(tmp_path, item):
    with pytest.raises(CorpusError, match=r"x\.json, line 1|x\.json:1"):
        converted(tmp_path, [item])


def test_malformed_ade(tmp_path):
    with pytest.raises(CorpusError, match="8 fields"):
        converted(tmp_path, ADE + "3|only this\n", "a.rel")


def test_triples_of_a_language_without_blanks(tmp_path):
    item = {"text": "里加市的安娜住在里加", "triple_list": [["安娜", "住在", "里加"]]}
    _, result, (doc,) = converted(tmp_path, [item], lang="zh")
    assert texts(doc) == [("安娜", "ENTITY", "住在", "里加")] and not result.summary.skipped


def test_triples_without_offsets_of_their_relations(tmp_path):
    relation = {"subject": "Ann Lee", "object": "Riga", "predicate": "lived"}
    _, _, (doc,) = converted(tmp_path, [{"text": "Ann Lee of Riga", "relation_list": [relation]}])
    assert texts(doc) == [("Ann Lee", "ENTITY", "lived", "Riga")]


@pytest.mark.parametrize("key", ["entity_list", "relation_list"])
def test_offsets_must_be_those_of_the_text_beside_them(tmp_path, key):
    item = json.loads(json.dumps(SPANS[0]))
    item[key][0].update({"text": "Ann", "subject": "Ann"})
    with pytest.raises(CorpusError, match="the span reads 'Ann', but"):
        converted(tmp_path, [item])


def test_typed_triples_of_tokens(tmp_path):
    item = {
        "tokens": ["Ann", "Lee", "of", "Riga"],
        "spo_list": [["Ann Lee", "lived", "Riga"]],
        "spo_details": [[0, 2, "PER", "lived", 3, 4, "LOC"]],
    }
    format, _, (doc,) = converted(tmp_path, [item])
    assert format == "triples" and texts(doc) == [("Ann Lee", "PER", "lived", "Riga")]
    assert [span.label_ for span in doc.spans["sc"]] == ["PER", "LOC"]


def test_scierc_across_sentences(tmp_path):
    item = {**SCIERC[0], "relations": [[], [[4, 4, 6, 7, "COMPARE"], [4, 4, 2, 2, "REFERS"]]]}
    _, result, docs = converted(tmp_path, [item])
    assert texts(docs[1]) == [("They", "Generic", "COMPARE", "deep parsers")]
    assert result.summary.skipped == {"relations across sentences": 1}


def test_absent_annotation_of_relations_stays_absent(tmp_path):
    entities = {key: value for key, value in SCIERC[0].items() if key != "relations"}
    null = {"text": "Ann Lee", "entities": [[0, 3, "A"]], "relations": None}
    for item in (entities, {**entities, "relations": None}, null):
        _, _, docs = converted(tmp_path, [item])
        assert {get_relations(doc) for doc in docs} == {None}
    _, _, docs = converted(tmp_path, [SPANS[0], {"text": "Ann Lee"}])
    assert get_relations(docs[0]) and get_relations(docs[1]) is None


def test_ade_with_blanks_around_its_fields(tmp_path):
    line = "1|Rash after drug A now. | Rash |0|4 |drug A |11| 17\n"
    format, result, (doc,) = converted(tmp_path, line, "DRUG-AE.rel")
    assert format == "ade" and not result.summary.skipped
    assert texts(doc) == [("Rash", "Adverse-Effect", "Adverse-Effect", "drug A")]


def test_folds(tmp_path):
    path = tmp_path / "all.jsonl"
    items = [{"text": f"Text {i}", "entities": [], "id": i // 2} for i in range(40)]
    path.write_text("\n".join(map(json.dumps, items)), encoding="utf8")
    convert([path], tmp_path / "out", folds=10)
    vocab, tested = spacy.blank("en").vocab, []
    assert len(list((tmp_path / "out").iterdir())) == 20
    for number in range(10):
        parts = {}
        for part in ("train", "test"):
            docs = read_docs(tmp_path / "out" / f"all-{number}-{part}.spacy", vocab)
            parts[part] = [int(doc.text.split()[1]) for doc in docs]
        assert sorted(parts["train"] + parts["test"]) == list(range(40))
        assert not {i // 2 for i in parts["train"]} & {i // 2 for i in parts["test"]}
        assert len(parts["test"]) == 4
        tested += parts["test"]
    assert sorted(tested) == list(range(40))
    with pytest.raises(CorpusError, match="S141"):
        convert([path], tmp_path / "more", folds=41)
