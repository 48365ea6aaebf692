"""Learned sentence boundaries, against a slow loop and in a trained component."""

import math

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_spanner.contract import MARKED
from spacy_spanner.models.boundaries import Boundaries
from spacy_spanner.relations import Relation, get_relations, set_relations

from ..rows import make_tokens, with_sentences

D = 6
LENGTHS = [7, 4, 1]
STARTS = [(0, 3), (0, 5), (1, 2)]


def make():
    torch.manual_seed(1)
    boundaries = Boundaries(D)
    torch.nn.init.normal_(boundaries.score.weight)
    torch.nn.init.constant_(boundaries.score.bias, 0.0)
    return boundaries


def make_rows(marked_rows, *, extra=0):
    tokens = make_tokens([*LENGTHS, *([max(LENGTHS) + extra] if extra else [])], D)
    tokens = with_sentences(tokens, STARTS)
    marked = numpy.zeros(tuple(tokens.mask.shape), dtype=bool)
    marked[marked_rows] = True
    tokens.extras[MARKED] = marked & tokens.mask.numpy()
    return tokens


def starts_of(sentences, length):
    return {divmod(int(first), length) for first in sentences.first}


@pytest.mark.parametrize("marked", [[0, 1, 2], [0], [2]])
def test_loss_equals_a_slow_loop(marked):
    boundaries, tokens = make(), make_rows(marked)
    losses = []
    for row in marked:
        for token in range(1, LENGTHS[row]):
            logit = boundaries.score(tokens.x[row, token]).item()
            right = 1 / (1 + math.exp(-logit if (row, token) in STARTS else logit))
            losses.append(-math.log(right))
    n_sentences = sum(1 + sum(at == row for at, _ in STARTS) for row in marked)
    expected = sum(losses) / n_sentences
    assert boundaries.loss(tokens).item() == pytest.approx(expected, abs=1e-6)


def test_padding_changes_nothing():
    boundaries = make()
    narrow, wide = make_rows([0, 1]), make_rows([0, 1], extra=5)
    wide.x[: len(LENGTHS), : max(LENGTHS)] = narrow.x
    assert boundaries.loss(narrow).item() == pytest.approx(boundaries.loss(wide).item(), abs=1e-6)


def test_only_unmarked_rows_get_more_boundaries():
    boundaries, tokens = make(), make_rows([1])
    refined = boundaries.refine(tokens)
    found = starts_of(refined.sentences, max(LENGTHS))
    learned = {
        (row, token)
        for row in (0, 2)
        for token in range(LENGTHS[row])
        if boundaries.score(tokens.x[row, token]).item() > 0
    }
    assert learned - set(STARTS)  # there is something to see
    assert found == {(row, 0) for row in range(3)} | set(STARTS) | learned
    assert starts_of(tokens.sentences, max(LENGTHS)) < found  # the rows given are as they were


def test_finds_nothing_before_training():
    tokens = make_rows([])
    tokens.x.mul_(1000)
    refined = Boundaries(D).refine(tokens)
    assert refined.sentences.lengths == tokens.sentences.lengths


LINES = ["Ann lives in Rome", "Bob lives in Oslo", "Eva lives in Bonn", "Tim lives in Lima"]


def line_doc(nlp, lines, *, gold):
    """Lines without punctuation: no rule finds where one ends."""
    words = [word for line in lines for word in line.split()]
    if not gold:
        return Doc(nlp.vocab, words=words)
    doc = Doc(nlp.vocab, words=words, sent_starts=[i % 4 == 0 for i in range(len(words))])
    spans, relations = [], []
    for start in range(0, len(words), 4):
        person = Span(doc, start, start + 1, "PERSON")
        city = Span(doc, start + 3, start + 4, "CITY")
        spans += [person, city]
        relations.append(Relation(person, city, "in").stored())
    doc.spans["sc"] = spans
    set_relations(doc, relations)
    return doc


def links(doc):
    return {(r.head_start, r.tail_start, r.label) for r in get_relations(doc)}


def test_no_rule_finds_these_ends_but_the_component_learns_them():
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-spanner.RelationPointer.v1", "learn_boundaries": True}
    pipe = nlp.add_pipe("global_pointer_relations", config={"model": model})
    docs = [line_doc(nlp, LINES[i:] + LINES[:i], gold=True) for i in range(4)]
    examples = [Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    assert links(nlp(line_doc(nlp, LINES, gold=False))) == links(docs[0])
    pipe.model.shims[0].module.boundaries.score.bias.data.fill_(-1e4)  # no boundary is found
    assert links(nlp(line_doc(nlp, LINES, gold=False))) > links(docs[0])
