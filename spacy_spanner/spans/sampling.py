"""Random choice of candidates by random scores, without a host read.

B rows, M candidates of a row, K chosen.
"""

from __future__ import annotations

from typing import Tuple, Union

import torch
from torch import Tensor


def sample_rows(eligible: Tensor, k: Union[int, Tensor], k_max: int) -> Tuple[Tensor, Tensor]:
    """Draw min(k, available, k_max) of the eligible candidates (B, M) of each row, none twice.

    `k` is one number or one per row (B,). Gives indices (B, K) and which of them count (B, K),
    where K = min(k_max, M)."""
    n_slots = min(k_max, eligible.shape[1])
    scores = torch.rand(eligible.shape, device=eligible.device).masked_fill(~eligible, -1.0)
    top = scores.topk(n_slots, dim=1)  # (B, K), best first
    wanted = k[:, None] if isinstance(k, Tensor) else k
    return top.indices, (top.values >= 0) & (torch.arange(n_slots, device=eligible.device) < wanted)


def sample_mask(eligible: Tensor, k: Union[int, Tensor]) -> Tensor:
    """As `sample_rows` without a bound, as a mask over the candidates.  (B, M) bool"""
    k_max = eligible.shape[1]
    if eligible.device.type == "cpu" and isinstance(k, Tensor):  # a GPU would have to be waited for
        k_max = int(k.max()) if len(k) else 0  # to sort all of a row takes ten times as long
    indices, chosen = sample_rows(eligible, k, k_max)
    return torch.zeros_like(eligible).scatter(1, indices, chosen)


def compact(first: Tensor, then: Tensor, n_slots: int) -> Tuple[Tensor, Tensor]:
    """Collect the set positions of two masks (M,) in a fixed number of slots.

    Where there are too few slots, those of `first` go before those of `then`, and within a mask
    chance decides. Gives indices (K,) and which of them count (K,), where K = min(n_slots, M)."""
    chance = torch.rand(first.shape, device=first.device)
    scores = torch.where(first, 2.0 + chance, torch.where(then, chance, -1.0))
    top = scores.topk(min(n_slots, len(scores)))
    return top.indices, top.values >= 0
