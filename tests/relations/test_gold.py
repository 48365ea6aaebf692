"""What the relation component learns from: labels, settings, and gold that rows can hold."""

from collections import Counter

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_spanner.batch import Rows
from spacy_spanner.relations import Relation, register_extensions
from spacy_spanner.relations.gold import Lost, RelationGold, row_relations
from spacy_spanner.row_tensors import gather, gather_gold
from spacy_spanner.training_config import complete, join_config

from ..systems import TOK2VEC
from .examples import (
    NAME,
    make_examples,
    make_nlp,
    train,
)


def test_labels(architecture):
    nlp = make_nlp(architecture=architecture)
    pipe = nlp.get_pipe(NAME)
    assert pipe.add_label("LOC") == 1 and pipe.add_label("LOC") == 0
    assert pipe.add_relation_label("met") == 1 and pipe.add_relation_label("met") == 0
    for add in (pipe.add_label, pipe.add_relation_label):
        with pytest.raises(ValueError, match="E187"):
            add(3)
    nlp.initialize(lambda: make_examples(nlp))
    assert pipe.labels == ("LOC", "PER", "ORG") and pipe.relation_labels[0] == "met"
    again = make_nlp(architecture=architecture).get_pipe(NAME)
    again.initialize(lambda: make_examples(nlp), labels=pipe.label_data)
    assert again.label_data == pipe.label_data


def test_given_labels_leave_out_others(architecture):
    nlp = make_nlp(architecture=architecture)
    pipe = nlp.get_pipe(NAME)
    labels = {"entities": ["PER", "LOC"], "relations": ["met"]}
    with pytest.warns(UserWarning) as caught:
        pipe.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    told = " ".join(str(warning.message) for warning in caught)
    assert "2 of 10 gold spans" in told and "7 with a label the component does not have" in told
    nlp.update(make_examples(nlp))


def test_what_is_missing_is_named(architecture):
    nlp = make_nlp(architecture=architecture, spans_key="other")
    with pytest.raises(ValueError, match=r"S001|'other'.*'sc'"):
        nlp.initialize(lambda: make_examples(nlp))
    nlp = make_nlp(architecture=architecture, entities="given")
    with pytest.raises(ValueError, match="no relations in the training data"):
        nlp.initialize(lambda: [Example(nlp.make_doc("a"), nlp.make_doc("a"))])
    with pytest.raises(ValueError, match="add_relation_label"):
        nlp.get_pipe(NAME).add_label("PER")
    with pytest.raises(ValueError, match="E143"):
        labels = {"relations": []}
        nlp.get_pipe(NAME).initialize(lambda: make_examples(nlp), labels=labels)


@pytest.mark.parametrize(
    "settings",
    [
        {"entities": "none"},
        {"entities": "given", "output": "both"},
        {"output": "text"},
        {"threshold": 2.0},
        {"relation_threshold": -0.1},
        {"overlap": 300},
        {"max_cells": 0},
        {"ents_key": "sc"},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="is not possible"):
        make_nlp(**settings)


def test_refuses_the_model_of_an_entity_component():
    model = {"@architectures": "spacy-spanner.GlobalPointer.v1", "tok2vec": TOK2VEC}
    with pytest.raises(ValueError, match="architecture of its model block"):
        spacy.blank("en").add_pipe(NAME, config={"model": model})


def test_never_initialized_component_is_saved_and_loaded(tmp_path, architecture):
    nlp = make_nlp(architecture=architecture)
    nlp.get_pipe(NAME).add_relation_label("met")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe(NAME).relation_labels == ("met",)
    with pytest.raises(ValueError, match=r"not been initialized|E109|initialize"):
        loaded("Some text.")


@pytest.mark.parametrize("missing", ["relations", "entities", "both"])
def test_unannotated_documents_teach_nothing(missing, architecture):
    nlp = make_nlp(architecture=architecture, learn_unlinked=missing == "entities")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    before = pipe.model.to_bytes()
    for example in examples:
        if missing != "entities":
            example.reference.user_data.clear()
        if missing != "relations":
            del example.reference.spans["sc"]
    losses = pipe.update(examples, sgd=Adam(0.1, L2=0.0), losses={})
    assert losses[NAME] == 0 and pipe.model.to_bytes() == before


@pytest.mark.parametrize("join", [True, False])
def test_documents_without_relations_teach_their_entities(join, architecture):
    """The loss is that of the links of the others, and of the entities of all."""
    nlp = make_nlp(architecture=architecture)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    module = pipe.model.shims[0].module
    del examples[0].reference.user_data["spanner_relations"]
    batch = pipe._gold_batch(examples, Lost(), join=join)
    n_unlinked = len(examples[0].reference)
    assert sum((~own).sum() for own in batch.gold.linked) == n_unlinked and batch.gold.known is None
    assert len(batch.gold.spans) == 10
    vectors = torch.randn(int(batch.rows.lengths.sum()), 32, requires_grad=True)
    everything = numpy.arange(len(batch.rows))
    (tokens,) = gather(vectors, batch, [everything])
    gold = gather_gold(batch.gold, batch, everything, vectors.device)
    module.link_loss(module.encode(tokens), gold).backward(retain_graph=True)
    first = int(batch.rows.doc_starts[0])
    own = torch.zeros(len(vectors), dtype=torch.bool)
    own[first : first + n_unlinked] = True
    assert vectors.grad[own].abs().max() == 0 and vectors.grad[~own].abs().max() > 0
    vectors.grad = None
    module.entities.loss(tokens, gold).backward()
    assert vectors.grad[own].abs().max() > 0


@pytest.mark.filterwarnings("ignore:.*gold spans cannot be learned")
def test_other_tokens_than_in_the_gold(architecture):
    """A span that the tokens of the prediction cannot express is counted, the others are moved."""
    nlp = make_nlp(architecture=architecture)
    register_extensions()
    words, spaces = ["Ann", "met", "Bo", "b", "in", "Riga"], [True, True, False, True, True, False]
    reference = Doc(nlp.vocab, words=words, spaces=spaces)
    reference.spans["sc"] = [
        Span(reference, *s) for s in [(0, 1, "P"), (2, 3, "P"), (2, 4, "P"), (5, 6, "L")]
    ]
    ann, half, bob, riga = reference.spans["sc"]
    reference._.relations = [
        Relation(ann, bob, "met"),
        Relation(half, riga, "in"),
        Relation(ann, riga, "in"),
    ]
    example = Example(nlp.make_doc("Ann met Bob in Riga"), reference)
    with pytest.warns(UserWarning, match="1 of 3 gold relations cannot be learned: 1 misaligned"):
        nlp.initialize(lambda: [example])
    pipe = nlp.get_pipe(NAME)
    gold = pipe._gold_batch([example], Lost()).gold
    ids = {label: i for i, label in enumerate(pipe.relation_labels)}
    assert gold.relations.tolist() == [[0, 0, 1, 2, 3, ids["met"]], [0, 0, 1, 4, 5, ids["in"]]]
    assert gold.known[0].tolist() == [True, True, False, True, True]


def test_relations_between_rows_are_counted(architecture):
    nlp = make_nlp(architecture=architecture, window=6, overlap=2)
    with pytest.warns(UserWarning, match=r"gold relations cannot be learned: .* with ends too far"):
        nlp.initialize(lambda: make_examples(nlp))


def test_relations_to_what_is_no_entity_are_counted(architecture):
    nlp = make_nlp(architecture=architecture)
    examples = make_examples(nlp)
    reference = examples[0].reference
    reference.spans["sc"] = list(reference.spans["sc"])[:3]
    with pytest.warns(UserWarning, match=r"2 of 9 gold relations .* 2 with an end that is no gold"):
        nlp.initialize(lambda: examples)


def test_rows_hold_relations_as_a_slow_loop_says():
    rng = numpy.random.default_rng(0)
    starts = rng.integers(0, 18, size=(60, 2))
    ends = starts + rng.integers(1, 4, size=(60, 2))
    table = numpy.stack([starts[:, 0], ends[:, 0], starts[:, 1], ends[:, 1]], axis=1)
    table = numpy.column_stack([numpy.minimum(table, 20), rng.integers(0, 2, 60)])
    cut = numpy.array([[0, 10, 0, 8], [6, 16, 8, 14], [12, 20, 14, 20]])
    rows = Rows(numpy.array([20]), numpy.array([0]), cut)
    counts = Counter()
    got = row_relations([RelationGold(None, table, table[:, [0, 1, 4]])], rows, counts)
    slow, lost = [], 0
    for number, (start, end, own_start, own_end) in enumerate(cut):
        for relation in table.tolist():
            first, last = min(relation[:4]), max(relation[:4])
            holds = start <= first and last <= end
            if holds:
                slow.append([number, *[x - start for x in relation[:4]], relation[4]])
            lost += own_start <= first < own_end and not holds
    assert sorted(got.tolist()) == sorted(slow) and list(counts.values()) == [lost] and lost > 0


@pytest.mark.parametrize("output,entities", [(None, "spans_mine_f"), ("ents", "ents_f")])
def test_training_config(output, entities):
    config = complete(join_config(NAME, "hash", output=output, spans_key="mine", max_width=4))
    assert config["components"][NAME]["model"]["max_width"] == 4
    weights = config["training"]["score_weights"]
    assert weights["rel_f"] == 1.0 and weights[entities] == 0.0
    assert sum(weight or 0 for weight in weights.values()) == 1.0


def test_wider_entities_than_the_limit_are_counted():
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"model": {"max_width": 2, "tok2vec": TOK2VEC}})
    with pytest.warns(UserWarning, match="2 of 10 gold spans cannot be learned: 2 wider than"):
        nlp.initialize(lambda: make_examples(nlp))


def test_mode_cannot_be_changed():
    pipe = make_nlp().get_pipe(NAME)
    assert pipe.entities == "predict"
    with pytest.raises(AttributeError):
        pipe.entities = "given"


def test_symmetric_labels_that_no_relation_has_are_told():
    nlp = make_nlp(symmetric=["met", "meets"])
    with pytest.warns(UserWarning, match=r"SW24.*\['meets'\]"):
        train(nlp, make_examples(nlp), steps=0)


def test_ends_with_other_labels_than_the_entities_are_told():
    nlp = make_nlp()
    examples = make_examples(nlp)
    doc = examples[1].reference
    doc._.relations = [
        Relation(doc[r.head.start : r.head.end], r.tail, r.label) for r in doc._.relations
    ]
    with pytest.warns(UserWarning, match="SW25.* 2 of 9 gold relations"):
        train(nlp, examples, steps=0)
