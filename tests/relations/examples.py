"""A few sentences with entities and relations, and pipelines that learn them."""

import numpy
import spacy
import torch
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_spanner.relations import Relation, get_relations, register_extensions

from ..systems import TOK2VEC

NAME = "global_pointer_relations"
# From the architecture to settings that make it learn four sentences in seconds.
ARCHITECTURES = {
    "RelationPointer": {"head_size": 16},
    "RelationClassifier": {"head_size": 16, "hidden_width": 16, "dropout": 0.0},
}
# Text, entities, and relations between them by number.
DATA = [
    (
        "Ada Lind left the University of Torvik in Norway.",
        [(0, 8, "PER"), (18, 38, "ORG"), (32, 38, "LOC"), (42, 48, "LOC")],
        [(0, 1, "left"), (1, 3, "in"), (2, 3, "in"), (1, 2, "in")],
    ),
    (
        "The Port Merrow Gazette wrote about Ines Calder.",
        [(4, 23, "ORG"), (4, 15, "LOC"), (36, 47, "PER")],
        [(0, 1, "in"), (0, 2, "about")],
    ),
    ("Nobody came to the harbour that night.", [], []),
    (
        "Calder met Lind in Torvik.",
        [(0, 6, "PER"), (11, 15, "PER"), (19, 25, "LOC")],
        [(0, 1, "met"), (1, 0, "met"), (0, 2, "in")],
    ),
]
TEXTS = [text for text, _, _ in DATA]
FLAT = [  # the same with no span inside another, for `doc.ents`
    (
        "Ada Lind left the University of Torvik in Norway.",
        [(0, 8, "PER"), (18, 38, "ORG"), (42, 48, "LOC")],
        [(0, 1, "left"), (1, 2, "in")],
    ),
    *DATA[2:],
]


def make_examples(nlp, data=DATA):
    register_extensions()
    examples = []
    for text, spans, relations in data:
        reference = nlp.make_doc(text)
        ends = [reference.char_span(*span) for span in spans]
        reference.spans["sc"] = ends
        if data is FLAT:
            reference.set_ents(ends, default="outside")
        reference._.relations = [Relation(ends[h], ends[t], label) for h, t, label in relations]
        examples.append(Example(nlp.make_doc(text), reference))
    return examples


def make_nlp(
    *, architecture="RelationPointer", model=None, name=None, nlp=None, tok2vec=None, **settings
):
    fix_random_seed(0)
    torch.manual_seed(0)
    nlp = nlp or spacy.blank("en")
    model = {**ARCHITECTURES[architecture], **(model or {}), "tok2vec": tok2vec or TOK2VEC}
    model["@architectures"] = f"spacy-spanner.{architecture}.v1"
    # Few sentences are learned by heart in fewer steps one by one.
    nlp.add_pipe(NAME, name=name, config={"model": model, "join_training": 0.0, **settings})
    return nlp


def train(nlp, examples, *, steps=60):
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return nlp


def found(doc):
    """Relations in numbers, without and with their scores."""
    stored = get_relations(doc)
    return [relation[:7] for relation in stored], [relation.score for relation in stored]


def close(left, right):
    return all(a[0] == b[0] and numpy.allclose(a[1], b[1], atol=1e-5) for a, b in zip(left, right))


def predictions(nlp, texts=TEXTS):
    return [found(doc) for doc in [nlp(text) for text in texts]]


def expected(nlp, data):
    return [sorted(r[:7] for r in get_relations(eg.reference)) for eg in make_examples(nlp, data)]
