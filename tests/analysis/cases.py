"""A small corpus whose every count can be made by hand.

0: Ann met the Bank of Rome in Rome today        (9 tokens)
   gold  PER[0] ORG[3:6] LOC[5] LOC[7]
   pred  PER[0] .9   ORG[3:6] .8   LOC[5] .3   PER[7] .7 (type)
1: Rome fell                                     (2 tokens)
   gold  LOC[0]            pred  LOC[0:2] .95 (boundary)
2: Nothing here                                  (2 tokens)
   gold  -                 pred  PER[1] .55 (spurious)
3: not annotated, left out
"""

import numpy
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.analysis.attributes import training_facts
from spacy_spanner.analysis.systems import read_systems

VOCAB = Vocab()
TEXTS = ["Ann met the Bank of Rome in Rome today", "Rome fell", "Nothing here", "Not annotated"]
GOLD = [
    [(0, 1, "PER"), (3, 6, "ORG"), (5, 6, "LOC"), (7, 8, "LOC")],
    [(0, 1, "LOC")],
    [],
    None,
]
PRED = [
    [(0, 1, "PER", 0.9), (3, 6, "ORG", 0.8), (5, 6, "LOC", 0.3), (7, 8, "PER", 0.7)],
    [(0, 2, "LOC", 0.95)],
    [(1, 2, "PER", 0.55)],
    [(0, 1, "PER", 1.0)],
]
OTHER = [[(0, 1, "PER", 0.6)], [(0, 1, "LOC", 0.6)], [], []]
# "Rome" is an entity three times, twice as LOC; "Ann" once as ORG.
TRAIN = [
    ("Rome and Rome met Ann", [(0, 1, "LOC"), (2, 3, "LOC"), (4, 5, "ORG")]),
    ("the Rome of today", [(1, 2, "ORG")]),
]


def make_doc(text, spans, *, key="sc"):
    """A document with spans, each with a score if it has a fourth part; None: not annotated."""
    doc = Doc(VOCAB, words=text.split())
    if spans is None:
        return doc
    scores = [span[3] for span in spans if len(span) > 3]
    attrs = {"scores": numpy.array(scores, dtype="float64")} if scores else {}
    found = [Span(doc, start, end, label=label) for start, end, label, *_ in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=found, attrs=attrs)
    return doc


def make_docs(spans):
    return [make_doc(text, own) for text, own in zip(TEXTS, spans, strict=True)]


def make_systems(*preds):
    names = [f"system {i}" for i, _ in enumerate(preds)]
    return read_systems(
        names, [make_docs(own) for own in preds], make_docs(GOLD), output="spans", spans_key="sc"
    )


def make_facts():
    docs = [make_doc(*item) for item in TRAIN]
    return training_facts(docs, output="spans", spans_key="sc")


SPANS = st.sets(
    st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from("AB")).map(
        lambda s: (s[0], min(s[0] + s[1], 6), s[2])
    ),
    max_size=6,
)
CORPORA = st.lists(st.tuples(SPANS, SPANS), min_size=1, max_size=4)


def random_systems(corpora):
    golds, preds = [], []
    for gold, pred in corpora:
        for docs, spans in ((golds, gold), (preds, pred)):
            docs.append(make_doc("u v w x y z", sorted(spans)))
    return read_systems(["a"], [preds], golds, output="spans", spans_key="sc")
