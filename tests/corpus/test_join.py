"""`convert --join doc`: sentences of one document become one."""

import json

from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_spanner.corpus.convert import convert
from spacy_spanner.relations import get_relations

LINES = [
    {
        "tokens": ["Ann", "left", "."],
        "entities": [[0, 1, "PER"]],
        "doc": "a",
    },
    {"tokens": ["Other", "text"], "entities": [[0, 2, "X"]], "doc": "b"},
    {
        "tokens": ["Trent", "University", "met", "Ann"],
        "entities": [[0, 2, "ORG"], [0, 1, "LOC"], [3, 4, "PER"]],
        "relations": [[0, 2, "met"]],
        "doc": "a",
    },
    {"tokens": ["alone"], "entities": []},
    {"tokens": ["alone"], "entities": []},
]


def converted(tmp_path, lines, **options):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf8")
    (result,) = convert([source], tmp_path / "out.spacy", **options)
    docs = list(DocBin().from_disk(tmp_path / "out.spacy").get_docs(Vocab()))
    assert result.summary.docs == len(docs)
    return docs


def test_sentences_of_a_document_become_one(tmp_path):
    docs = converted(tmp_path, LINES, join=True)
    first, second, *rest = docs
    assert [t.text for t in first] == ["Ann", "left", ".", "Trent", "University", "met", "Ann"]
    assert [s.start for s in first.sents] == [0, 3]
    assert {(s.start, s.end, s.label_) for s in first.spans["sc"]} == {
        *((0, 1, "PER"), (3, 5, "ORG"), (3, 4, "LOC"), (6, 7, "PER")),
    }
    assert [(e.start, e.end) for e in first.ents] == [(0, 1), (3, 5), (6, 7)]
    assert first.has_annotation("ENT_IOB") and first.has_unknown_spaces
    (relation,) = get_relations(first)
    assert (relation.head_start, relation.tail_start, relation.label) == (3, 6, "met")
    assert [len(list(second.sents)), len(rest)] == [1, 2]


def test_nothing_is_joined_unless_asked(tmp_path):
    assert len(converted(tmp_path, LINES)) == 5


def test_texts_are_joined_with_a_space(tmp_path):
    lines = [
        {"text": "Ann left.", "entities": [[0, 3, "PER"]], "doc": "a"},
        {"text": "Bob stayed.", "entities": [[0, 3, "PER"]], "doc": "a"},
    ]
    (doc,) = converted(tmp_path, lines, join=True)
    assert doc.text == "Ann left. Bob stayed."
    assert [e.text for e in doc.ents] == ["Ann", "Bob"]
