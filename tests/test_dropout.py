"""Dropout by parts of random numbers."""

import pytest
import torch

from spacy_spanner.dropout import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.75])
def test_every_number_is_drawn_on_its_own(rate, dtype):
    torch.manual_seed(0)
    kept = Dropout(rate).train()(torch.ones(4000, 7, dtype=dtype))
    assert kept.dtype == dtype
    assert kept.unique().tolist() == pytest.approx([0.0, 1 / (1 - rate)], rel=1e-3)
    share = (kept > 0).double().mean(0)  # (7,): no place in a random number differs
    assert share.tolist() == pytest.approx([1 - rate] * 7, abs=0.04)
    assert (kept > 0).double().T.corrcoef().fill_diagonal_(0).abs().max() < 0.08


def test_the_gradient_goes_where_numbers_went():
    x = torch.ones(50, 3, requires_grad=True)
    dropped = Dropout(0.5).train()(x)
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_it_rests_in_evaluation(rate):
    x = torch.randn(5, 3)
    assert torch.equal(Dropout(rate).eval()(x), x)


@pytest.mark.parametrize(("rate", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_all_or_nothing(rate, expected):
    assert Dropout(rate).train()(torch.ones(4)).tolist() == [expected] * 4


def test_no_numbers_at_all():
    assert Dropout(0.5).train()(torch.ones(0, 3)).shape == (0, 3)
