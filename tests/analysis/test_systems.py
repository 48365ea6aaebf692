"""Names of systems, and their relations compared with gold."""

import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_spanner.analysis.marks import mark_docs
from spacy_spanner.analysis.systems import load_systems, read_systems, short_names
from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.relations import StoredRelation, set_relations, symmetric_labels

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


def test_the_direction_of_symmetric_relations_does_not_count():
    """As in the scorer of the component."""
    nlp = spacy.blank("en")
    nlp.add_pipe("global_pointer_relations", config={"symmetric": ["met"]})
    symmetric = symmetric_labels(nlp)
    assert symmetric == {"met"} and not symmetric_labels(spacy.blank("en"))
    pred, gold = (Doc(VOCAB, words=["Ann", "met", "Bob"]) for _ in range(2))
    ann, bob = (0, 1, "PER"), (2, 3, "PER")
    for doc, ends in ((pred, (*ann, *bob)), (gold, (*bob, *ann))):
        doc.spans["sc"] = [Span(doc, *ann), Span(doc, *bob)]
        set_relations(doc, [StoredRelation(*ends, "met"), StoredRelation(*ends, "saw")])
    options = {"output": "spans", "spans_key": "sc", "symmetric": symmetric}
    [system] = read_systems(["x"], [[pred]], [gold], **options)
    assert system.relation_counts.tolist() == [[1, 1, 1]]
    [marked] = mark_docs([(pred, gold)], **options)
    assert [(own.label, own.status) for own in marked.relations if own.status == "tp"] == [
        ("met", "tp")
    ]


def make_file(path, *, ents, spans):
    """A .spacy file of one document with an entity in `doc.ents`, `doc.spans`, or both."""
    doc = Doc(VOCAB, words=["a", "b", "c"])
    entity = Span(doc, 0, 1, label="PER")
    if ents:
        doc.ents = [entity]
    if spans:
        doc.spans["sc"] = [entity]
    DocBin(docs=[doc]).to_disk(path)
    return str(path)


@pytest.mark.parametrize("writes", ["spans", "ents"])
def test_gold_with_both_is_compared_by_what_the_system_writes(tmp_path, writes):
    gold = make_file(tmp_path / "gold.spacy", ents=True, spans=True)
    pred = make_file(tmp_path / "pred.spacy", ents=writes == "ents", spans=writes == "spans")
    [system], output = load_systems([pred], gold, output="auto", spans_key="sc")
    assert output == writes
    assert system.found.tolist() == system.correct.tolist() == [True]


def test_systems_are_compared_by_what_all_of_them_write(tmp_path):
    gold = make_file(tmp_path / "gold.spacy", ents=True, spans=True)
    both = make_file(tmp_path / "both.spacy", ents=True, spans=True)
    flat = make_file(tmp_path / "flat.spacy", ents=True, spans=False)
    for sources in ([both, flat], [flat, both]):
        systems, output = load_systems(sources, gold, output="auto", spans_key="sc")
        assert output == "ents" and all(own.found.all() for own in systems)
    assert load_systems([both], gold, output="auto", spans_key="sc")[1] == "spans"


def test_a_system_that_writes_elsewhere_is_named(tmp_path):
    gold = make_file(tmp_path / "gold.spacy", ents=True, spans=True)
    preds = [
        make_file(tmp_path / f"{name}.spacy", ents=name == "flat", spans=name == "nested")
        for name in ("nested", "flat")
    ]
    with pytest.warns(UserWarning, match=r"SW07.*'flat' wrote nothing to `doc.spans\['sc'\]`"):
        systems, _ = load_systems(preds, gold, output="auto", spans_key="sc")
    assert [own.found.tolist() for own in systems] == [[True], [False]]


def test_entities_on_tokens_without_annotation_are_not_judged():
    """As spaCy counts them; also where the prediction has other tokens."""
    gold = Doc(VOCAB, words=["Ada", "Lind", "left", "New Torvik", "today"])
    gold.set_ents([Span(gold, 0, 2, "PER")], missing=[gold[3:]], default="outside")
    pred = Doc(VOCAB, words=["Ada", "Lind", "left", "New", "Torvik", "today"])
    wrong, unknown, partly = (2, 3), (4, 5), (5, 6)
    spans = [(0, 2), wrong, unknown, partly]
    pred.set_ents([Span(pred, *own, "PER") for own in spans], default="outside")
    [system] = read_systems(["x"], [[pred]], [gold], output="ents", spans_key="sc")
    assert system.correct.tolist() == [True, False]
    assert get_ner_prf([Example(pred, gold)])["ents_p"] == 1 / 2


def test_no_documents(tmp_path):
    path = tmp_path / "empty.spacy"
    DocBin().to_disk(path)
    with pytest.raises(CorpusError, match="S028"):
        load_systems([str(path)], str(path), output="auto", spans_key="sc")
