"""Relations between entities that another component finds."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_spanner.relations import get_relations
from spacy_spanner.relations.gold import entities_of

from ..systems import TOK2VEC
from .examples import (
    FLAT,
    NAME,
    TEXTS,
    expected,
    found,
    make_examples,
    make_nlp,
    train,
)


def test_given_entities_are_linked(after_ruler):
    for text, relations in zip([d[0] for d in FLAT], expected(after_ruler, FLAT), strict=True):
        doc = after_ruler(text)
        assert sorted(found(doc)[0]) == relations
        assert "sc" not in doc.spans
    pipe = after_ruler.get_pipe(NAME)
    assert pipe.labels == () and pipe.cfg["output"] == "ents"
    scores = after_ruler.evaluate(make_examples(after_ruler, FLAT))
    assert scores["rel_f"] == 1 and "spans_sc_f" not in scores


@pytest.mark.filterwarnings("ignore:.*but no document has any annotation")
def test_relations_follow_the_given_entities(after_ruler):
    pipe = after_ruler.get_pipe(NAME)
    doc = after_ruler.make_doc(TEXTS[3])
    assert pipe(doc)._.relations == []
    doc.set_ents([Span(doc, 0, 1, "ANY"), Span(doc, 2, 3, "NAME")], default="outside")
    assert {(r.head.label_, r.label, r.tail.text) for r in pipe(doc)._.relations} == {
        ("ANY", "met", "Lind"),
        ("NAME", "met", "Calder"),
    }


def test_given_entities_may_come_from_spacys_own_ner(architecture):
    nlp = spacy.blank("en")
    ner_model = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner"}
    ner_model |= {"extra_state_tokens": False, "hidden_width": 16, "maxout_pieces": 2}
    nlp.add_pipe("ner", config={"model": {**ner_model, "use_upper": True, "tok2vec": TOK2VEC}})
    make_nlp(architecture=architecture, nlp=nlp, entities="given")
    train(nlp, make_examples(nlp, FLAT), steps=40)
    scores = nlp.evaluate(make_examples(nlp, FLAT))
    assert scores["ents_f"] == 1 and scores["rel_f"] == 1


def test_given_entities_from_a_span_group(architecture):
    nlp = make_nlp(architecture=architecture, entities="given", output="spans", spans_key="mine")
    train(nlp, make_examples(nlp), steps=60)
    pipe = nlp.get_pipe(NAME)
    doc = make_examples(nlp)[0].reference
    doc.spans["mine"] = doc.spans["sc"]
    gold = sorted(r[:7] for r in get_relations(doc))
    assert sorted(found(pipe(doc))[0]) == gold


@pytest.mark.parametrize("entities", ["given", "predict"])
def test_entities_without_tokens_are_passed_over(architecture, entities):
    nlp = make_nlp(architecture=architecture, entities=entities, output="spans")
    examples = make_examples(nlp)
    for example in examples:
        doc = example.reference
        doc.spans["sc"] = [Span(doc, 0, 0, "PER"), *doc.spans["sc"], Span(doc, 3, 3, "PER")]
    train(nlp, examples, steps=1)
    assert all(len(span) for span in entities_of(examples[0].reference, "sc"))


def test_labels_of_given_entities_may_be_features(after_ruler, architecture):
    nlp = make_nlp(
        architecture=architecture,
        model={"label_features": True},
        **{"entities": "given", "output": "spans", "seen_pairs": True},
    )
    train(nlp, make_examples(nlp))
    pipe = nlp.get_pipe(NAME)
    assert pipe.label_data["given"] == ["LOC", "ORG", "PER"]
    again = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()).get_pipe(NAME)
    for example in make_examples(nlp):
        doc = example.reference
        gold = sorted(r[:7] for r in get_relations(doc))
        assert sorted(found(pipe(doc))[0]) == gold == sorted(found(again(doc))[0])
        if gold:  # a label that was not there in training
            doc.spans["sc"] = [Span(doc, s.start, s.end, "NEW") for s in doc.spans["sc"]]
            assert get_relations(pipe(doc)) == []
            pipe.seen_pairs = False
            assert all(r.head_label == "NEW" for r in get_relations(pipe(doc)))
            pipe.seen_pairs = True


def test_a_component_before_it_annotates_in_training(architecture, monkeypatch):
    """Pairs and labels of given entities are those of the component before, not those of the gold."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    make_nlp(architecture=architecture, nlp=nlp, entities="given")
    pipe = nlp.get_pipe(NAME)
    examples = make_examples(nlp, FLAT)
    nlp.initialize(lambda: examples)
    ids = {label: i for i, label in enumerate(pipe.cfg["given_labels"])}
    batches = []
    gold_batch = pipe._gold_batch

    def kept(*args, **options):
        batches.append(gold_batch(*args, **options))
        return batches[-1]

    monkeypatch.setattr(pipe, "_gold_batch", kept)
    ruler.add_patterns([{"label": "NAME", "pattern": "Lind"}])
    nlp.update([examples[2]])
    nlp.update([examples[2]], annotates=["entity_ruler"])
    before, after = (batch.gold.ends.tolist() for batch in batches)
    torvik, lind = [0, 4, 5, ids["LOC"]], [0, 2, 3, ids["PER"]]
    assert torvik in before and lind in before
    assert torvik not in after and lind not in after and [0, 2, 3, -1] in after


def test_warns_once_if_nobody_gives_entities(after_ruler):
    pipe = after_ruler.get_pipe(NAME)
    pipe._warned.clear()
    with pytest.warns(UserWarning, match=r"`doc\.ents`, but no document") as caught:
        for _ in range(2):
            pipe.predict([after_ruler.make_doc("Calder met Lind.")])
    assert len(caught) == 1
