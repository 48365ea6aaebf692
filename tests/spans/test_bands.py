"""Bands against plain loops."""

import pytest
import torch

from spacy_spanner.spans.bands import all_known, band_mask, band_products, band_view


@pytest.mark.parametrize("length", [1, 3, 7, 8])
@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_band_products_equal_all_products(length, width):
    q, k = torch.randn(2, 2, 3, length, 4, dtype=torch.float64)
    band = band_products(q, k, width)
    assert band.shape == (2, 3, length, width)
    for i in range(length):
        for w in range(min(width, length - i)):
            torch.testing.assert_close(band[..., i, w], (q[..., i, :] * k[..., i + w, :]).sum(-1))


def test_gradient_of_band_products():
    q, k = torch.randn(2, 1, 5, 2, dtype=torch.float64).requires_grad_(True)
    cells = band_mask(torch.ones((1, 5), dtype=torch.bool), 3)

    def inside(q, k):
        return torch.where(cells, band_products(q, k, 3), 0.0)

    assert torch.autograd.gradcheck(inside, (q, k))


def test_masks_and_views():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert band_mask(mask, 2).tolist() == [
        [[True, True], [True, True], [True, False]],
        [[True, False], [False, False], [False, False]],
    ]
    assert band_view(torch.tensor([1, 2, 3]), 2).tolist() == [[1, 2], [2, 3], [3, 0]]
    known = torch.tensor([[True, False, True, True]])
    assert all_known(known, 2)[0, :3].tolist() == [[True, False], [False, False], [True, True]]
