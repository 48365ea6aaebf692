"""Learning rates that change in training."""

from __future__ import annotations

from itertools import count, repeat
from typing import Iterable, Union

from .errors import Errors


def warmup_decay(
    initial_rate: float, total_steps: Union[int, str], warmup: float = 0.1
) -> Iterable[float]:
    """A rate that rises for a share of the steps, then falls to 0 at their end, on straight lines.

    initial_rate: The highest rate.
    total_steps: Usually `${training.max_steps}`. Only `spacy train` fills in such variables; where an
        optimizer is made by hand (`nlp.initialize()`, `nlp.resume_training()`) the rate is constant.
    warmup: The share of the steps.
    """
    if isinstance(total_steps, str):
        return repeat(initial_rate)
    rise = max(round(warmup * total_steps), 1)
    fall = max(total_steps - rise, 1)
    return (
        initial_rate * max(min((step + 1) / rise, (total_steps - step) / fall, 1.0), 0.0)
        for step in count()
    )


def inverse_time(initial_rate: float, steps_per_epoch: int, decay: float = 0.05) -> Iterable[float]:
    """initial_rate / (1 + decay * epoch), one value a step.

    initial_rate: The rate of the first epoch.
    steps_per_epoch: Updates in one pass over the training data; a schedule does not see epochs.
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
