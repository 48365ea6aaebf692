"""Range maxima against slices."""

import pytest
import torch

from spacy_spanner.spans.range_max import RangeMax


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("n_tokens", [1, 2, 3, 4, 7, 8, 9])
def test_every_span_equals_the_max_of_its_slice(n_tokens, traced):
    x = torch.randn(n_tokens, 3, dtype=torch.float64, requires_grad=traced)
    spans = [(start, end) for start in range(n_tokens) for end in range(start + 1, n_tokens + 1)]
    got = RangeMax(x, n_tokens)(*torch.tensor(spans).unbind(dim=1))
    expected = torch.stack([x[start:end].amax(dim=0) for start, end in spans])
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_the_gradient_goes_to_the_largest_token():
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    start, end = torch.tensor([[1, 6], [0, 3], [4, 5], [0, 2], [0, 4]]).unbind(dim=1)
    assert torch.autograd.gradcheck(lambda t: RangeMax(t, 6)(start, end), (x,))


def test_of_equal_tokens_the_first_gets_the_gradient():
    x = torch.ones(5, 2, requires_grad=True)
    RangeMax(x, 5)(torch.tensor([1]), torch.tensor([5])).sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]]
