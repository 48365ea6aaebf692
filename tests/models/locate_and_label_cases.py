"""Small models, batches and the stages as slow loops, for the tests of Locate and Label."""

import torch
from torch.nn import functional as F

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.locate_and_label import LocateAndLabel

D, C = 6, 3
LENGTHS = [7, 4, 1]
GOLD = [(0, 1, 6, 0), (0, 2, 4, 1), (0, 2, 4, 2), (1, 0, 4, 2), (2, 0, 1, 1)]
ALL = {"negatives_per_row": 1000, "dropout": 0.0}


def make(seed=0, **options):
    torch.manual_seed(seed)
    options = {"seed_lengths": [1, 2, 4], **ALL, **options}
    return LocateAndLabel(width=D, n_labels=C, **options).double()


def make_tokens(lengths=LENGTHS, seed=1, pad=0):
    generator = torch.Generator().manual_seed(seed)
    n_tokens = max(lengths) + pad
    x = torch.zeros(len(lengths), n_tokens, D, dtype=torch.float64)
    for row, length in enumerate(lengths):
        x[row, :length] = torch.randn(length, D, generator=generator, dtype=torch.float64)
    return Tokens(x, torch.arange(n_tokens) < torch.tensor(lengths)[:, None], list(lengths))


def make_gold(spans=GOLD, known=None):
    return Gold(torch.tensor(spans, dtype=torch.int64).view(-1, 4), (), known)


def single(tokens, gold, row):
    """One row of a batch, without its padding."""
    n = tokens.lengths[row]
    spans = [(0, *span[1:]) for span in gold.spans.tolist() if span[0] == row]
    known = None if gold.known is None else gold.known[row : row + 1, :n]
    return (
        Tokens(tokens.x[row : row + 1, :n], tokens.mask[row : row + 1, :n], [n]),
        make_gold(spans, known),
    )


def count_proposals(model, tokens):
    """How many spans of each row the filter lets through."""
    return model.proposals(tokens).sum(dim=(1, 2)).tolist()


def slow_iou(one, other):
    a, b = set(range(*one)), set(range(*other))
    return len(a & b) / len(a | b)


def slow_scores(scorer, x, left, right, start, end):
    """The stage as printed: one concatenated vector, two linear layers."""
    vector = torch.cat([x[left], x[right], x[start:end].amax(dim=0)])
    return scorer.out(F.gelu(scorer.joint(vector)))
