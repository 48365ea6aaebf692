"""Found spans on their way to documents: no white space at their edges."""

import random

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_spanner.pipeline.outputs import trim

from ..relations.examples import make_examples as relation_examples
from ..relations.examples import make_nlp as make_relations
from ..relations.examples import train as train_relations
from ..systems import TEXTS, found, trained

VOCAB = spacy.blank("en").vocab
BLANK = ["\n", "\t", "  "]


def slowly(docs, table, scores):
    """The same row by row: the best score of each trimmed row."""
    best = {}
    for (doc, *edges, label), score in zip(table.tolist(), scores.tolist(), strict=True):
        trimmed = []
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            words = [i for i in range(start, end) if not docs[doc][i].is_space]
            trimmed += [words[0], words[-1] + 1] if words else [None]
        if None not in trimmed:
            row = (doc, *trimmed, label)
            best[row] = max(score, best.get(row, 0.0))
    return sorted(best.items())


@pytest.mark.parametrize("n_spans", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_trim(seed, n_spans):
    generator = random.Random(seed)
    docs = [
        Doc(VOCAB, words=generator.choices([*BLANK, "a", "b"], k=generator.choice([0, 1, 4, 9])))
        for _ in range(6)
    ]
    rows = set()
    for number, doc in enumerate(docs):
        for _ in range(12 if len(doc) else 0):
            starts = [generator.randrange(len(doc)) for _ in range(n_spans)]
            edges = [x for s in starts for x in (s, generator.randint(s + 1, len(doc)))]
            rows.add((number, *edges, generator.randrange(2)))
    table = numpy.array(sorted(rows), dtype="int64").reshape(-1, 2 * n_spans + 2)
    scores = numpy.array([generator.random() for _ in rows])
    trimmed, kept = trim(docs, table, scores)
    assert list(zip(map(tuple, trimmed.tolist()), scores[kept].tolist())) == slowly(
        docs, table, scores
    )


def test_nothing_changes_without_white_space():
    table, scores = numpy.array([[0, 0, 2, 0], [0, 1, 2, 1]]), numpy.array([0.5, 0.9])
    for words in (["a", "b"], ["a", "b", "\n"]):
        trimmed, kept = trim([Doc(VOCAB, words=words)], table, scores)
        assert trimmed is table and kept.tolist() == [0, 1]


def test_found_spans_have_no_white_space_at_their_edges():
    nlp = trained("span_ner", output="both", steps=2)
    nlp.get_pipe("span_ner").threshold = 0.0
    doc = nlp("\n\n".join(TEXTS).replace(" in ", "\tin  "))
    assert found(doc) and doc.ents
    assert not any(s[0].is_space or s[-1].is_space for s in [*doc.spans["sc"], *doc.ents])


def test_found_relations_link_found_spans():
    nlp = make_relations()
    train_relations(nlp, relation_examples(nlp), steps=10)
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    pipe.threshold = pipe.relation_threshold = 0.05
    doc = nlp("\n".join(TEXTS).replace(" in ", "\tin  "))
    spans = {(s.start, s.end) for s in doc.spans["sc"]}
    assert doc._.relations and not any(doc[a].is_space or doc[b - 1].is_space for a, b in spans)
    for relation in doc._.relations:
        for end in (relation.head, relation.tail):
            assert (end.start, end.end) in spans
