"""Sums over the cells of a pair table."""

import pytest
import torch

from spacy_spanner.models.cell_losses import masked_logsumexp


def slow(x, counted):
    return torch.where(counted, x, torch.finfo(x.dtype).min).logsumexp(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [1.0, 30.0, 1000.0])
def test_masked_sum_and_its_gradient_equal_the_slow_form(spread, dtype):
    generator = torch.Generator().manual_seed(0)
    x = spread * torch.randn(3, 4, 50, generator=generator, dtype=dtype)
    counted = torch.rand(3, 4, 50, generator=generator) < 0.4
    counted[0, 0] = False  # nothing at all
    counted[1, 1] = torch.arange(50) == 7  # one number alone
    weight = torch.randn(3, 4, generator=generator, dtype=dtype)
    weight[0, 0] = 0.0  # of the lowest number any change is nothing
    results = []
    for function in (masked_logsumexp, slow):
        leaf = x.clone().requires_grad_()
        value = function(leaf, counted)
        (value * weight).sum().backward()
        results.append((value.detach(), leaf.grad))
    (value, gradient), (slow_value, slow_gradient) = results
    torch.testing.assert_close(value, slow_value)
    torch.testing.assert_close(gradient, slow_gradient)
    assert (gradient[~counted] == 0).all()
