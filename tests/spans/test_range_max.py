"""Range maxima against slices."""

import pytest
import torch

from spacy_spanner.spans.range_max import RangeMax


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("n_tokens", [1, 2, 3, 4, 7, 8, 9])
def test_every_span_equals_the_max_of_its_slice(n_tokens, traced):
    x = torch.randn(2, n_tokens, 3, dtype=torch.float64, requires_grad=traced)
    spans = [
        (row, start, end)
        for row in range(2)
        for start in range(n_tokens)
        for end in range(start + 1, n_tokens + 1)
    ]
    got = RangeMax(x)(*torch.tensor(spans).unbind(dim=1))
    expected = torch.stack([x[row, start:end].amax(dim=0) for row, start, end in spans])
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_the_gradient_goes_to_the_largest_token():
    x = torch.randn(1, 6, 2, dtype=torch.float64, requires_grad=True)
    row, start, end = torch.tensor([[0, 1, 6], [0, 0, 3], [0, 4, 5]]).unbind(dim=1)
    assert torch.autograd.gradcheck(lambda t: RangeMax(t)(row, start, end), (x,))
