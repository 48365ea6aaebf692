"""The semi-Markov CRF against enumeration of all segmentations."""

import itertools

import pytest
import torch

from spacy_spanner.decoders.crf import FORBIDDEN
from spacy_spanner.decoders.semi_crf import SemiCRF

LENGTH = 5
CASES = [(1, 1), (1, 3), (2, 2), (2, 5), (1, 7)]  # labels, widths


def make(n_labels, n_widths, seed=0):
    """Random scores of rows of all lengths 1..L, with noise in the padding."""
    torch.manual_seed(seed)
    crf = SemiCRF(n_labels).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    scores = 2 * torch.randn(LENGTH, LENGTH, n_widths, n_labels + 1, dtype=torch.float64)
    scores[:, :, 1:, 0] = FORBIDDEN
    mask = torch.arange(LENGTH) < torch.arange(1, LENGTH + 1)[:, None]
    return crf, scores, mask


def segmentations(crf, scores):
    """From each segmentation of a row (n, W, K), as (start, end, class), to its score."""
    length, n_widths, n_classes = scores.shape
    start, trans, end, cells = (x.tolist() for x in (crf.start, crf.trans, crf.end, scores))
    found = {}

    def extend(segments, at, score):
        if at == length:
            found[tuple(segments)] = score + end[segments[-1][2]]
            return
        for width, k in itertools.product(range(1, n_widths + 1), range(n_classes)):
            if at + width <= length and (k > 0 or width == 1):
                step = trans[segments[-1][2]][k] if segments else start[k]
                new = (at, at + width, k)
                extend([*segments, new], at + width, score + step + cells[at][width - 1][k])

    extend([], 0, 0.0)
    return found


def log_sum(scores):
    return torch.tensor(list(scores), dtype=torch.float64).logsumexp(0).item()


@pytest.mark.parametrize("n_labels,n_widths", CASES)
def test_best_segmentation_and_marginals_equal_enumeration(n_labels, n_widths):
    crf, scores, mask = make(n_labels, n_widths)
    best = crf.viterbi(scores, mask).tolist()
    for row, length in enumerate(mask.sum(1).tolist()):
        paths = segmentations(crf, scores[row, :length])
        segments = max(paths, key=paths.__getitem__)
        expected = [(s, e, k - 1) for s, e, k in segments if k]
        assert sorted(tuple(span[1:]) for span in best if span[0] == row) == expected
        entities = sorted({segment for path in paths for segment in path if segment[2]})
        spans = torch.tensor([(row, s, e, k - 1) for s, e, k in entities])
        got = crf.marginals(scores, mask, spans).tolist()
        log_z = log_sum(paths.values())
        for segment, prob in zip(entities, got):
            exact = log_sum(score for path, score in paths.items() if segment in path) - log_z
            assert prob == pytest.approx(torch.tensor(exact).exp().item(), abs=1e-5)


@pytest.mark.parametrize("n_labels,n_widths", CASES)
def test_likelihood_of_allowed_segments_equals_enumeration(n_labels, n_widths):
    crf, scores, mask = make(n_labels, n_widths)
    allowed = torch.rand(scores.shape) < 0.5
    allowed[:, :, 0, 0] = True
    got = crf.nll(scores, allowed, mask)
    for row, length in enumerate(mask.sum(1).tolist()):
        paths = segmentations(crf, scores[row, :length])
        kept = [
            score
            for path, score in paths.items()
            if all(allowed[row, s, e - s - 1, k] for s, e, k in path)
        ]
        exact = log_sum(paths.values()) - log_sum(kept)
        assert got[row].item() == pytest.approx(exact, abs=1e-5)


def test_empty_rows():
    crf, scores, mask = make(2, 3)
    mask = torch.zeros_like(mask)
    assert crf.nll(scores, torch.ones_like(scores, dtype=torch.bool), mask).tolist() == [0.0] * 5
    assert crf.viterbi(scores, mask).shape == (0, 4)
