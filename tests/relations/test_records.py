"""Relations on a document: every way of storing and showing them gives back the same records."""

import json

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_spanner.relations import (
    Relation,
    doc_relations,
    from_dict,
    get_relations,
    register_extensions,
)
from spacy_spanner.relations.scorer import score_relation_table

NLP = spacy.blank("en")
WORDS = ["Ann", "left", "Trent", "University", "."]


def make_doc(*relations, nlp=NLP):
    """Relations as (head start, head end, head label), (tail ...), label[, score]."""
    register_extensions()
    doc = Doc(nlp.vocab, words=WORDS)
    doc._.relations = [
        Relation(Span(doc, *head), Span(doc, *tail), *rest) for head, tail, *rest in relations
    ]
    return doc


ANN, UNI, TRENT = (0, 1, "PER"), (2, 4, "ORG"), (2, 3, "LOC")
LEFT = (ANN, UNI, "left", 0.75)
IN = (UNI, TRENT, "in")


def as_tuples(doc):
    return [
        (*[(end.start, end.end, end.label_) for end in (r.head, r.tail)], r.label, r.score)
        for r in doc_relations(doc)
    ]


def test_records_have_spans():
    doc = make_doc(LEFT, IN)
    first, second = doc._.relations
    assert (first.head.text, first.tail.text, first.label, first.score) == (
        *("Ann", "Trent University"),
        *("left", 0.75),
    )
    assert first.head.label_ == "PER" and second.score is None
    assert first.tail == second.head


def test_getter_of_a_span_finds_both_directions():
    doc = make_doc(LEFT, IN)
    assert [r.label for r in doc[0:1]._.relations] == ["left"]
    assert [r.label for r in doc[2:4]._.relations] == ["left", "in"]
    assert [r.label for r in doc[2:3]._.relations] == ["in"]
    assert doc[1:2]._.relations == []


def test_unannotated_is_not_the_same_as_none():
    register_extensions()
    doc = Doc(NLP.vocab, words=WORDS)
    assert get_relations(doc) is None and doc._.relations == []
    doc._.relations = []
    assert get_relations(doc) == []


def test_relations_survive_storing(tmp_path):
    doc = make_doc(LEFT, IN)
    expected = as_tuples(doc)
    from_bytes = Doc(NLP.vocab).from_bytes(doc.to_bytes())
    doc.to_disk(tmp_path / "doc")
    from_disk = Doc(NLP.vocab).from_disk(tmp_path / "doc")
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    from_bin = next(iter(DocBin().from_bytes(data).get_docs(NLP.vocab)))
    for again in (from_bytes, from_disk, from_bin):
        assert as_tuples(again) == expected


def test_changed_tokens_are_noticed():
    doc = make_doc(IN)
    part = doc[2:5].as_doc(copy_user_data=True)
    merged = doc.copy()
    with merged.retokenize() as retokenizer:
        retokenizer.merge(merged[0:2])
    for changed in (part, merged):
        with pytest.raises(ValueError, match="S260"):
            changed._.relations  # noqa: B018
    assert as_tuples(doc.copy()) == as_tuples(doc)
    assert doc[2:5].as_doc()._.relations == []


def test_relations_of_earlier_versions_are_read():
    """They were stored without the number of tokens."""
    doc = make_doc(LEFT, IN)
    expected = as_tuples(doc)
    doc.user_data["spanner_relations"] = [
        values[:-1] for values in doc.user_data["spanner_relations"]
    ]
    assert as_tuples(doc) == expected
    doc.user_data["spanner_relations"][0][1] = 6
    with pytest.raises(ValueError, match="S260"):
        get_relations(doc)


END = {"start": 0, "end": 1, "label": "A"}


@pytest.mark.parametrize(
    "make,reason",
    [
        (lambda doc: (doc[0:1], doc[2:3], "left"), "no Relation"),
        (lambda doc: Relation(doc[1:1], doc[2:3], "left"), "no token"),
        (lambda doc: Relation(doc[0:1], NLP("An other")[0:1], "left"), "another document"),
        (lambda doc: {"head": END, "tail": {"start": 0, "end": 1}, "label": "x"}, "'label'"),
        (lambda doc: {"head": END, "tail": {**END, "end": 9}, "label": "x"}, "E035"),
    ],
)
def test_what_is_no_relation_is_refused(make, reason):
    doc = make_doc(LEFT)
    with pytest.raises(ValueError, match=f"S261.*{reason}"):
        doc._.relations = [make(doc)]
    assert len(doc._.relations) == 1


def test_plain_form_goes_through_json():
    doc = make_doc(LEFT, IN)
    plain = json.loads(json.dumps([relation.to_dict() for relation in doc._.relations]))
    assert plain[0]["head"] == {"start": 0, "end": 1, "label": "PER", "text": "Ann"}
    assert [from_dict(doc, values) for values in plain] == doc._.relations
    other = make_doc()
    other._.relations = plain
    assert as_tuples(other) == as_tuples(doc)


def test_extensions_of_others_are_left_alone():
    register_extensions()
    taken = Doc.remove_extension("relations")
    Doc.set_extension("relations", default="mine")
    try:
        with pytest.warns(UserWarning, match="already taken"):
            register_extensions()
        assert Doc(NLP.vocab)._.relations == "mine"
    finally:
        Doc.set_extension("relations", force=True, getter=taken[2], setter=taken[3])


SCORED = [
    # predicted, gold, strict and boundary counts of (right, predicted, gold)
    ([LEFT], [LEFT], (1, 1, 1), (1, 1, 1)),
    ([(ANN, (2, 4, "LOC"), "left")], [LEFT], (0, 1, 1), (1, 1, 1)),
    ([(UNI, ANN, "left")], [LEFT], (0, 1, 1), (0, 1, 1)),
    ([(ANN, UNI, "met")], [LEFT], (0, 1, 1), (0, 1, 1)),
    ([LEFT, IN], [LEFT], (1, 2, 1), (1, 2, 1)),
    ([], [LEFT, IN], (0, 0, 2), (0, 0, 2)),
]


@pytest.mark.parametrize("pred,gold,strict,boundary", SCORED)
def test_scores(pred, gold, strict, boundary):
    examples = [Example(make_doc(*pred), make_doc(*gold))]
    scores = score_relation_table(examples, entities="given", output="ents", spans_key="sc")
    for name, (right, n_pred, n_gold) in [("rel", strict), ("rel_boundary", boundary)]:
        assert scores[f"{name}_p"] == pytest.approx(right / n_pred if n_pred else 0)
        assert scores[f"{name}_r"] == pytest.approx(right / n_gold)
        assert scores[f"{name}_f"] == pytest.approx(2 * right / (n_pred + n_gold))
        assert set(scores[f"{name}_per_type"]) == {r[2] for r in [*pred, *gold]}
    labels = {f"{r[2]} (relation)" for r in [*pred, *gold]}
    assert set(scores["ents_per_type"]) - {"PER", "ORG", "LOC"} == labels | {"all relations"}
    assert not any(f"ents_{part}" in scores for part in "prf")


def test_documents_without_gold_relations_have_no_score():
    examples = [Example(make_doc(LEFT), Doc(NLP.vocab, words=WORDS))]
    with pytest.warns(UserWarning, match="SW23"):
        scores = score_relation_table(examples, entities="given", output="ents", spans_key="sc")
    assert set(scores.values()) == {None} and "rel_f" in scores


def test_scores_compare_characters_not_tokens():
    """The reference may cut words in another way."""
    pred, gold = (
        make_doc(LEFT),
        Doc(NLP.vocab, words=["Ann", "left", "Trent", "Univ", "ersity", "."]),
    )
    gold = Doc(
        NLP.vocab,
        words=["Ann", "left", "Trent", "Univ", "ersity", "."],
        spaces=[True, True, True, False, True, True],
    )
    gold._.relations = [Relation(Span(gold, *ANN), Span(gold, 2, 5, "ORG"), "left")]
    scores = score_relation_table(
        [Example(pred, gold)], entities="given", output="ents", spans_key="sc"
    )
    assert scores["rel_f"] == 1.0
