"""Dropout by parts of random numbers."""

from inspect import signature

import pytest
import torch
from spacy.util import registry

from spacy_spanner.dropout import Dropout
from spacy_spanner.encoders.tuned_vectors import build_tuned_vectors

from .test_package import entry_points

RATES = [
    (name, option)
    for group, name in entry_points()
    if group == "spacy_architectures"
    for option in signature(registry.architectures.get(name)).parameters
    if option.endswith("dropout")
]


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


def test_there_are_rates():
    assert len(RATES) > 20 and ("spacy-spanner.LSTMEncoder.v1", "output_dropout") in RATES


@pytest.mark.parametrize("name, option", RATES)
@pytest.mark.parametrize("value", [2.0, -0.1, float("nan")])
def test_impossible_rates_are_refused_when_an_architecture_is_made(name, option, value):
    """Torch would refuse them when the module is built, without saying where they are from."""
    make = registry.architectures.get(name)
    parts = [build_tuned_vectors()] if "parts" in signature(make).parameters else []
    module = getattr(make, "module", None)
    told = name.split(".")[1] if module is None else module.__name__
    with pytest.raises(ValueError, match=rf"S0.*{told}.*{option} = .* share from 0 to 1"):
        make(*parts, **{option: value})
