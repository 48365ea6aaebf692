"""Learning rates that change from one epoch to the next."""

from __future__ import annotations

from itertools import count
from typing import Iterable

from .errors import Errors


def inverse_time(initial_rate: float, steps_per_epoch: int, decay: float = 0.05) -> Iterable[float]:
    """initial_rate / (1 + decay * epoch), one value a step.

    initial_rate: The rate of the first epoch.
    steps_per_epoch: Updates in one pass over the training data; a schedule is not told of epochs.
    decay: 0.05 is what taggers of the NCRF++ line call "5 % less after each epoch".
    """
    if steps_per_epoch < 1:
        raise ValueError(
            Errors.S019.format(
                name="spacy-spanner.inverse_time.v1",
                option="steps_per_epoch",
                value=steps_per_epoch,
                reason="an epoch has at least one step",
            )
        )
    return (initial_rate / (1 + decay * epoch) for epoch in count() for _ in range(steps_per_epoch))
