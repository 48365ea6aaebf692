"""A relation pointer with random weights, gold, and slow loops written from the definitions."""

import math
from itertools import product

import numpy
import torch

from spacy_spanner.models.relation_pointer import RelationPointer

from ..rows import make_gold

D, C, R, HEAD = 6, 3, 2, 4
LENGTHS = [5, 3, 1, 4]
SPANS = [(0, 0, 5, 1), (0, 1, 3, 1), (0, 1, 3, 2), (0, 1, 2, 0), (1, 0, 1, 0), (3, 2, 4, 2)]
# Row, head start, head end, tail start, tail end, label. Two begin at the same pair of tokens, two end
# at one, one span is related to itself, and one is related in both directions.
RELATIONS = [
    (0, 0, 5, 1, 3, 1),
    (0, 0, 5, 1, 2, 1),
    (0, 1, 3, 0, 5, 1),
    (0, 1, 2, 1, 3, 0),
    (1, 0, 1, 0, 1, 0),
    (3, 0, 4, 2, 4, 1),
    (3, 1, 4, 3, 4, 1),
]
THRESHOLDS = torch.tensor([0.3, 0.2])


def make(*, n_labels=C, dtype=torch.float32, **options):
    torch.manual_seed(1)
    module = RelationPointer(width=D, n_labels=n_labels, n_relations=R, head_size=HEAD, **options)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module.to(dtype)


def make_relation_gold(relations=RELATIONS, spans=SPANS, known=None):
    gold = make_gold(spans, known=known)
    gold.relations = torch.tensor(relations, dtype=torch.int64).reshape(-1, 6)
    ends = {(*r[:3], -1) for r in relations} | {(r[0], *r[3:5], -1) for r in relations}
    ends = sorted({tuple(span) for span in spans} | ends)
    gold.linked = known
    gold.ends = numpy.array(ends, dtype="int64").reshape(-1, 4)
    return gold


def slow_link(scorer, x, label, i, j):
    """The logit of one pair of tokens: a product of projections without positions, and a term of the
    label for each of the two."""
    first, second = scorer.project(x[i]), scorer.project(x[j])
    types_first, types_second = scorer.types(first), scorer.types(second)
    dot = sum(a * b for a, b in zip(first[:HEAD].tolist(), second[HEAD:].tolist()))
    return dot / math.sqrt(HEAD) + (types_first[label].item() + types_second[R + label].item()) / 2


def triples(links):
    rows = zip(links.relations.tolist(), links.scores.tolist(), strict=True)
    return sorted((*relation, score) for relation, score in rows)


def all_spans(lengths):
    return [
        (row, i, j) for row, n in enumerate(lengths) for i in range(n) for j in range(i + 1, n + 1)
    ]


def slow_loss(logits, cells, gold, *, sum_labels):
    """`gold` is a set of (row, label, i, j)."""
    total = 0.0
    rows, labels = logits.shape[:2]
    for row, label in product(range(rows), range(labels)):
        negative = positive = 1.0
        for i, j in cells[row].nonzero().tolist():
            score = logits[row, label, i, j].item()
            if (row, label, i, j) in gold:
                positive += math.exp(-score)
            else:
                negative += math.exp(score)
        total += math.log(negative) + math.log(positive)
    return total / (rows if sum_labels else rows * labels)
