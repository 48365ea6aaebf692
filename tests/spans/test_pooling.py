"""The projected band of maxima against a loop, values and gradients."""

import pytest
import torch
from torch.nn import functional as F

from spacy_spanner.spans.bands import clear_spans
from spacy_spanner.spans.pooling import project_band_max


def plain_band_max(x: torch.Tensor, weight: torch.Tensor, n_widths: int):
    n_tokens = x.shape[1]
    padded = F.pad(x, (0, 0, 0, n_widths - 1))
    peaks = torch.stack(
        [
            torch.stack([padded[:, i : i + w + 1].amax(1) for w in range(n_widths)], 1)
            for i in range(n_tokens)
        ],
        1,
    )  # (B, L, W, D)
    return peaks @ weight.T, peaks[:, :, -1]


@pytest.mark.parametrize("n_widths", [1, 2, 4])
def test_equals_a_loop(n_widths):
    torch.manual_seed(0)
    x, weight = torch.randn(2, 4, 5).double(), torch.randn(3, 5).double()
    inputs = [t.requires_grad_(True) for t in (x, weight)]
    found = project_band_max(*inputs, n_widths)
    expected = plain_band_max(*inputs, n_widths)
    weights = [torch.randn_like(out) for out in expected]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    grads = [
        torch.autograd.grad(
            sum((out * w).sum() for out, w in zip(outs, weights, strict=True)), inputs
        )
        for outs in (found, expected)
    ]
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert torch.autograd.gradcheck(lambda *a: project_band_max(*a, n_widths), inputs)


def test_the_input_is_left_alone_without_gradients():
    x, weight = torch.randn(2, 4, 5), torch.randn(3, 5)
    before = x.clone()
    with torch.inference_mode():
        found = project_band_max(x, weight, 3)
    assert torch.equal(x, before)
    for ours, theirs in zip(found, project_band_max(x, weight, 3), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_clear_spans():
    band = torch.ones((2, 4, 2), dtype=torch.bool)
    spans = torch.tensor([[0, 1, 2, 0], [1, 0, 2, 1], [1, 0, 4, 0], [0, 1, 2, 1]])
    cleared = clear_spans(band, spans)
    assert (~cleared).nonzero().tolist() == [[0, 1, 0], [1, 0, 1]]
    assert band.all()
