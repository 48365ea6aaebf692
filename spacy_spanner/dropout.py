"""Dropout at the cost of a few sums."""

from __future__ import annotations

import torch
from torch import Tensor, nn

RATE = "it must be a share from 0 to 1"


class Dropout(nn.Dropout):
    """As the base class, in a small part of its time on a CPU: several draws are made of each
    random number. A byte is enough where the rate is a number of 256ths, as the usual .5 is."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not 0 < self.p < 1 or x.device.type != "cpu":
            return super().forward(x)
        bits = 8 if (self.p * 256).is_integer() else 16
        steps, per_number = 1 << bits, 64 // bits
        least = round(self.p * steps) - steps // 2  # of the draws that keep a number
        numbers = torch.empty(-(-x.numel() // per_number), dtype=torch.int64)
        draws = numbers.random_(-(1 << 63), None).view(torch.int8 if bits == 8 else torch.int16)
        # Whole numbers less `least - 1`, cut to 0 and 1: a mask would take longer to make and use.
        kept = draws[: x.numel()].view(x.shape).float().sub_(least - 1).clamp_(0, 1)
        return x * kept.mul_(steps / (steps // 2 - least)).to(x.dtype)


def is_rate(value: float) -> bool:
    """Whether it can be the rate of dropout (`RATE`): torch would refuse others only when it is built."""
    return 0 <= value <= 1
