"""GELU is torch's."""

import pytest
import torch
from torch.nn import functional as F

from spacy_spanner.gelu import Gelu, gelu


@pytest.mark.parametrize("shape", [(7, 5), (1, 5), (7, 1), (0, 5), (2, 7, 5), (5,)])
def test_values_and_gradients(shape):
    x = torch.randn(shape, requires_grad=True)
    y, expected = gelu(x), F.gelu(x.double())
    torch.testing.assert_close(y, expected.float(), atol=1e-5, rtol=1e-5)
    assert y.is_contiguous()
    d_y = torch.randn(shape)
    (d_x,) = torch.autograd.grad(y, x, d_y)
    (wanted,) = torch.autograd.grad(expected, x, d_y.double())
    torch.testing.assert_close(d_x, wanted, atol=1e-5, rtol=1e-5)


def test_a_layer_without_weights():
    layer = Gelu()
    assert not layer.state_dict()
    x = torch.randn(3, 4)
    torch.testing.assert_close(layer(x), gelu(x))
