"""What is drawn, how many, and that chance is fair."""

import pytest
import torch

from spacy_spanner.spans.sampling import compact, sample_mask, sample_rows


@pytest.fixture
def eligible():
    mask = torch.rand(5, 12, generator=torch.Generator().manual_seed(0)) > 0.5
    mask[0] = False
    mask[1] = True
    return mask


@pytest.mark.parametrize("k_max", [1, 4, 12, 20])
@pytest.mark.parametrize("k", [0, 3, torch.tensor([2, 5, 0, 30, 1])])
def test_each_row_gives_what_it_is_asked_for(eligible, k, k_max):
    indices, chosen = sample_rows(eligible, k, k_max)
    assert indices.shape == chosen.shape == (5, min(k_max, 12))
    for row in range(5):
        drawn = indices[row][chosen[row]].tolist()
        wanted = k if isinstance(k, int) else int(k[row])
        assert len(drawn) == len(set(drawn)) == min(wanted, int(eligible[row].sum()), k_max)
        assert all(eligible[row, drawn])


def test_the_mask_marks_as_many(eligible):
    k = torch.tensor([2, 5, 0, 30, 1])
    mask = sample_mask(eligible, k)
    assert not (mask & ~eligible).any()
    assert mask.sum(dim=1).tolist() == torch.minimum(k, eligible.sum(dim=1)).tolist()


def test_every_candidate_is_as_likely():
    torch.manual_seed(0)
    eligible = torch.tensor([[True, True, False, True, True]]).expand(4000, -1)
    share = sample_mask(eligible, 2).float().mean(dim=0)
    torch.testing.assert_close(share, torch.tensor([0.5, 0.5, 0.0, 0.5, 0.5]), atol=0.04, rtol=0)


@pytest.mark.parametrize("n_slots", [0, 2, 3, 5, 8, 50])
def test_compact_keeps_the_first_mask_before_the_second(n_slots):
    first = torch.tensor([0, 1, 0, 0, 1, 0, 1, 0]).bool()
    then = torch.tensor([1, 0, 0, 1, 0, 0, 0, 1]).bool()
    indices, used = compact(first, then, n_slots)
    assert len(indices) == min(n_slots, 8)
    kept = indices[used].tolist()
    assert len(set(kept)) == len(kept) == min(n_slots, 6)
    assert sum(first[kept].tolist()) == min(n_slots, 3)
    assert all((first | then)[kept])
