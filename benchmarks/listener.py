"""The cheapest trainable component above an encoder: what is left is the encoder alone."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model, set_dropout_rate


class Listener(TrainablePipe):
    """Reads the encoder's output and sends a constant gradient back."""

    def __init__(self, vocab: Any, model: Model, name: str):
        self.vocab, self.model, self.name, self.cfg = vocab, model, name, {}

    def predict(self, docs: Iterable[Doc]) -> Any:
        return self.model.predict(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: Any) -> None:
        pass

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        losses = {} if losses is None else losses
        set_dropout_rate(self.model, drop)
        vectors, backprop = self.model.begin_update([eg.predicted for eg in examples])
        backprop([0.001 * array for array in vectors])
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def initialize(self, get_examples: Any, *, nlp: Any = None) -> None:
        docs: List[Doc] = [eg.predicted for eg in get_examples()][:10]
        self.model.initialize(X=docs)


@Language.factory("benchmark_listener")
def make_listener(nlp: Language, name: str, model: Model) -> Listener:
    return Listener(nlp.vocab, model, name)
