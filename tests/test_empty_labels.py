"""The empty label is refused wherever labels come in: spaCy writes no entity without a label."""

import json

import pytest
import spacy
from spacy.tokens import DocBin, Span
from spacy.training import Example

from spacy_spanner.corpus.detect import READERS
from spacy_spanner.corpus.record import CorpusError, ReadOptions
from spacy_spanner.relations import StoredRelation, set_relations

from .relations.examples import make_examples as relation_examples
from .systems import SYSTEMS, make_examples, make_nlp
from .tampered import RELATIONS, make

EMPTY = r"\[S126\] There is an empty label"


def with_empty_label(nlp):
    reference = nlp.make_doc("Ada left.")
    reference.spans["sc"] = [Span(reference, 0, 1, label="")]
    return Example(nlp.make_doc("Ada left."), reference)


@pytest.mark.parametrize("factory", SYSTEMS)
def test_labels_of_a_component(factory):
    nlp = make_nlp(factory, output="spans")
    pipe = nlp.get_pipe(factory)
    with pytest.raises(ValueError, match=EMPTY):
        pipe.add_label("")
    with pytest.raises(ValueError, match=EMPTY):
        pipe.initialize(lambda: make_examples(nlp), labels=["A", ""])
    with pytest.raises(ValueError, match=EMPTY):
        make_nlp(factory, output="spans").initialize(lambda: [with_empty_label(nlp)])


def test_gold_of_an_update():
    nlp = make_nlp("global_pointer")
    nlp.initialize(lambda: make_examples(nlp))
    with pytest.raises(ValueError, match=rf"{EMPTY}: of the gold span 'Ada'"):
        nlp.update([with_empty_label(nlp)])


def test_labels_of_relations():
    nlp = make(RELATIONS)
    pipe = nlp.get_pipe(RELATIONS)
    for add in (pipe.add_label, pipe.add_relation_label):
        with pytest.raises(ValueError, match=EMPTY):
            add("")
    examples = relation_examples(nlp)
    nlp.initialize(lambda: examples)
    set_relations(examples[0].reference, [StoredRelation(0, 1, "A", 1, 2, "B", "")])
    with pytest.raises(ValueError, match=rf"{EMPTY}: of a gold relation"):
        nlp.update(examples)


def test_labels_of_a_config():
    nlp = make_nlp("global_pointer")
    nlp.config["initialize"]["components"]["global_pointer"] = {"labels": ["PER", ""]}
    with pytest.raises(ValueError, match=EMPTY):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.parametrize("name", ["jsonl", "doccano", "spacy"])
def test_converted_files(tmp_path, name):
    path = tmp_path / "data"
    if name == "spacy":
        doc = with_empty_label(spacy.blank("en")).reference
        DocBin(docs=[doc]).to_disk(path)
    else:
        field = {"jsonl": "entities", "doccano": "label"}[name]
        path.write_text(json.dumps({"text": "Ada left.", field: [[0, 3, ""]]}), encoding="utf8")
    with pytest.raises(CorpusError, match="the label must be a non-empty string"):
        list(READERS[name](path, ReadOptions()))
