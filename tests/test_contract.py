"""Rows with and without their padding."""

import pytest
import torch

from spacy_spanner.contract import Tokens

from .rows import make_tokens

LENGTHS = [[3, 1, 5], [4, 4], [1]]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_unpadded_tokens_are_those_under_the_mask(lengths):
    tokens = make_tokens(lengths, 2)
    assert tokens.unpadded.tolist() == tokens.x[tokens.mask].tolist()
    assert tokens.starts.tolist() == [sum(lengths[:row]) for row in range(len(lengths))]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_padding_is_the_inverse(lengths):
    tokens = make_tokens(lengths, 2)
    kept = Tokens(None, tokens.mask, tokens.lengths, unpadded=tokens.unpadded)
    assert kept.x.tolist() == tokens.x.tolist()
    assert tokens.pad(tokens.unpadded[:, :1]).tolist() == tokens.x[..., :1].tolist()


def test_padding_has_no_gradient():
    tokens = make_tokens([3, 1], 2)
    unpadded = tokens.unpadded.clone().requires_grad_(True)
    rows = Tokens(None, tokens.mask, tokens.lengths, unpadded=unpadded)
    (rows.x.cumsum(1)[:, -1] ** 2).sum().backward()
    assert unpadded.grad.shape == (4, 2) and (unpadded.grad != 0).all()
    x = tokens.x.clone().requires_grad_(True)
    (tokens.with_states(x).unpadded ** 2).sum().backward()
    assert (x.grad[~tokens.mask] == 0).all() and (x.grad[tokens.mask] != 0).all()


def test_more_padding_than_the_longest_row_needs():
    tokens = make_tokens([3, 1], 2)
    mask = torch.nn.functional.pad(tokens.mask, (0, 2))
    wide = Tokens(torch.nn.functional.pad(tokens.x, (0, 0, 0, 2)), mask, tokens.lengths)
    assert wide.unpadded.tolist() == tokens.unpadded.tolist()
    assert wide.pad(wide.unpadded).shape == (2, 5, 2)
