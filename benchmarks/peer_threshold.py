"""The threshold of spaCy's span categorizer with the best F on the development part, as spaCy's command
`find-threshold` would find it: ours are fitted when training saves them, so spaCy's must be, too."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, List

import numpy
from spacy.pipeline import SpanCategorizer
from spacy.tokens import Doc

from .documents import to_predict

LOWEST = 0.02


@contextmanager
def fitted_threshold(nlp: Any, docs: List[Doc]) -> Iterator[bool]:
    """The pipeline with the best threshold of its span categorizer for a while; False if it has none.

    All values are tried that divide the scores of two spans; spaCy's command tries eleven."""
    pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, SpanCategorizer)]
    if not pipes:
        yield False
        return
    cfg = pipes[0].cfg
    before = cfg["threshold"]
    cfg["threshold"] = LOWEST
    scores: List[float] = []
    correct: List[bool] = []
    predicted = nlp.pipe(to_predict(docs, nlp.vocab, marked=False))
    for gold_doc, doc in zip(docs, predicted, strict=True):
        gold = {(span.start, span.end, span.label_) for span in gold_doc.spans["sc"]}
        group = doc.spans["sc"]
        scores += [float(score) for score in group.attrs["scores"]]
        correct += [(span.start, span.end, span.label_) in gold for span in group]
    n_gold = sum(len(doc.spans["sc"]) for doc in docs)
    cfg["threshold"] = best_threshold(numpy.array(scores), numpy.array(correct, bool), n_gold)
    yield True
    cfg["threshold"] = before


def best_threshold(scores: numpy.ndarray, correct: numpy.ndarray, n_gold: int) -> float:
    """The value between two scores (N,) over which F is best; the lowest one where nothing is right."""
    order = numpy.argsort(-scores, kind="stable")
    ranked = scores[order]
    hits = correct[order].cumsum()
    f = 2 * hits / (numpy.arange(1, len(scores) + 1) + n_gold)
    # Equal scores are kept or dropped together.
    ends = numpy.append(ranked[1:] < ranked[:-1], True)[: len(f)]
    if not len(f) or not hits[-1]:
        return LOWEST
    last = int(numpy.where(ends, f, -1.0).argmax())
    after = ranked[last + 1] if last + 1 < len(ranked) else LOWEST
    return float((ranked[last] + after) / 2)
