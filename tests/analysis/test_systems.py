"""Names of systems, and their relations compared with gold."""

from spacy.tokens import Doc

from spacy_spanner.analysis.systems import read_systems, short_names
from spacy_spanner.relations import StoredRelation, set_relations

from .cases import VOCAB

WORKS, LIVES = (0, 1, "PER", 2, 3, "ORG", "works"), (0, 1, "PER", 1, 2, "LOC", "lives")


def make_doc(relations):
    doc = Doc(VOCAB, words=["a", "b", "c"])
    doc.spans["sc"] = []
    if relations is not None:
        set_relations(doc, [StoredRelation(*relation) for relation in relations])
    return doc


def test_short_names():
    assert short_names(["a/b/model-best", "a/c/model-best"]) == ["b", "c"]
    assert short_names(["x/p.spacy", "y/p.spacy"]) == ["x/p", "y/p"]
    assert short_names(["a", "a"]) == ["a", "a"]


def test_relations_are_counted_where_gold_has_them():
    golds = [make_doc([WORKS, LIVES]), make_doc(None), make_doc([])]
    preds = [make_doc([WORKS, (*LIVES[:5], "ORG", "lives")]), make_doc([WORKS]), make_doc(None)]
    [system] = read_systems(["x"], [preds], golds, output="spans", spans_key="sc")
    assert system.relation_counts.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert system.corpus.has_relations.tolist() == [True, False, True]
