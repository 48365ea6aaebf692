"""Adam for spaCy's own heads that learn faster than their encoder, as ours do by their config.

Without it, at a rate that suits a transformer, they find nothing in the few steps that a benchmark has.
"""

from __future__ import annotations

from typing import Any, Set, Tuple

from spacy.language import Language
from spacy.util import registry
from thinc.api import Optimizer

NAME = "spacy-spanner-benchmarks.FastHeads.v1"
# As in the default config of spaCy.
ADAM = {
    **{"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "use_averages": False},
    **{"L2": 0.01, "L2_is_weight_decay": True, "grad_clip": 1.0},
}
ENCODERS = ("tok2vec", "transformer")  # components that heads listen to

heads: Set[Tuple[int, str]] = set()  # keys of the parameters of heads


def mark_heads(nlp: Language) -> None:
    """Say which parameters of an initialized pipeline are those of heads. A training makes its
    optimizer itself, so they are remembered here."""
    for name, pipe in nlp.pipeline:
        if name not in ENCODERS and hasattr(pipe, "model"):
            heads.update(
                (node.id, param) for node in pipe.model.walk() for param in node.param_names
            )


class FastHeads(Optimizer):
    """Multiplies the rate for the parameters of heads."""

    head_scale = 1.0

    def __call__(
        self, key: Tuple[int, str], weights: Any, gradient: Any, *, lr_scale: float = 1.0
    ) -> Tuple[Any, Any]:
        scale = lr_scale * self.head_scale if key in heads else lr_scale
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
