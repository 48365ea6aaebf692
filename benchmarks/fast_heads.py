"""Adam for spaCy's own heads over a transformer: they learn as much faster than it as ours do.

Our heads have a factor on their learning rate in their config. spaCy's have none and, at a rate that
suits a transformer, find nothing in the few steps that a benchmark has.
"""

from __future__ import annotations

from typing import Any, Tuple

from spacy.util import registry
from thinc.api import Optimizer

NAME = "spacy-spanner-benchmarks.FastHeads.v1"


class FastHeads(Optimizer):
    """Multiplies the rate for thinc's own parameters, such as W. Those of the transformer, such as
    encoder.layer.0.output.dense.weight, come from torch and have a path for a name."""

    head_scale = 1.0

    def __call__(
        self, key: Tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> Tuple[Any, Any]:
        scale = lr_scale if "." in key[1] else lr_scale * self.head_scale
        return super().__call__(key, weights, gradient, lr_scale=scale)


@registry.optimizers(NAME)
def fast_heads(
    learn_rate: Any,
    head_scale: float,
    beta1: float,
    beta2: float,
    eps: float,
    L2: float,
    L2_is_weight_decay: bool,
    grad_clip: float,
    use_averages: bool,
) -> Optimizer:
    optimizer = FastHeads(
        learn_rate,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        L2=L2,
        L2_is_weight_decay=L2_is_weight_decay,
        grad_clip=grad_clip,
        use_averages=use_averages,
    )
    optimizer.head_scale = head_scale
    return optimizer
