"""Candidates for the threshold search from one pass over the data, and writing its result back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..batch import SpanPrediction
from ..corpus.docs import scored_spans
from ..corpus.pairs import DocPair
from ..errors import Errors
from ..pipeline.component import SpanTablePipe
from ..pipeline.outputs import raw_thresholds
from .thresholds import DIGITS, Candidates, ThresholdSetting, tune

FLOOR = 0.005  # the lowest threshold that is tried


def find_pipe(nlp: Language, name: Optional[str]) -> Tuple[str, SpanTablePipe]:
    """The component with this name, or the only one of ours."""
    ours = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, SpanTablePipe)}
    if name is None and len(ours) == 1:
        return next(iter(ours.items()))
    if name not in ours:
        raise ValueError(Errors.S030.format(name=name, names=", ".join(ours) or "none"))
    return name, ours[name]


def fit_setting(
    nlp: Language, name: str, pairs: Iterable[DocPair], **options: Any
) -> Tuple[Candidates, List[ThresholdSetting]]:
    """The current and the best setting of a component on these documents, and what they are from.

    options: Those of `tune`.
    """
    _, pipe = find_pipe(nlp, name)
    candidates = collect_candidates(nlp, name, pairs)
    current = {key: pipe.cfg[key] for key in ("threshold", "temperature")}
    return candidates, tune(candidates, pipe.thresholds(), **current, **options)


def collect_candidates(nlp: Language, name: str, pairs: Iterable[DocPair]) -> Candidates:
    """Run the pipeline up to a component and keep every span that its head scores over the floor.

    pairs: Documents without predictions, each with its gold; those without gold are left out.
    """
    _, pipe = find_pipe(nlp, name)
    key, kind = pipe.cfg["spans_key"], "ents" if pipe.gold_key is None else "spans"
    golds: List[dict] = []
    docs: List[Doc] = []
    for doc, gold in pairs:
        spans = None if gold is None else scored_spans(gold, output=kind, spans_key=key)
        if spans is not None:
            docs.append(doc)
            golds.append(spans)
    with lowered_threshold(pipe) as floor, only_before(nlp, name):
        prediction = predict_all(pipe, nlp.pipe(docs), size=nlp.batch_size)
    starts = [[token.idx for token in doc] for doc in docs]
    ends = [[token.idx + len(token) for token in doc] for doc in docs]
    correct = [
        (starts[doc][start], ends[doc][end - 1], pipe.labels[label]) in golds[doc]
        for doc, start, end, label in prediction.spans.tolist()
    ]
    counts: Dict[str, int] = dict.fromkeys(pipe.labels, 0)
    for _, _, label in (span for spans in golds for span in spans):
        counts[label] = counts.get(label, 0) + 1
    return Candidates(
        prediction,
        numpy.array(correct, dtype=bool),
        numpy.array([counts[label] for label in pipe.labels], dtype="int64"),
        sum(counts.values()),
        floor,
        pipe.cfg["overlaps"] if pipe.cfg["output"] == "ents" else None,
    )


def predict_all(pipe: SpanTablePipe, docs: Iterable[Doc], *, size: int) -> SpanPrediction:
    """One table for the documents of all batches."""
    spans, scores, first = [numpy.zeros((0, 4), "int64")], [numpy.zeros(0, "float32")], 0
    for batch in minibatch(docs, size):
        found = pipe.predict(batch)
        spans.append(found.spans + numpy.array([first, 0, 0, 0]))
        scores.append(found.scores)
        first += len(batch)
    return SpanPrediction(numpy.concatenate(spans), numpy.concatenate(scores))


@contextmanager
def lowered_threshold(pipe: SpanTablePipe) -> Iterator[float]:
    """The component without calibration and with one threshold no higher than any it has."""
    cfg = dict(pipe.cfg)
    raw = raw_thresholds(pipe.thresholds(), cfg["temperature"])
    floor = min(FLOOR, float(raw.min(initial=FLOOR)))
    pipe.cfg.update(threshold=floor, label_thresholds={}, temperature=1.0)
    try:
        yield floor
    finally:
        pipe.cfg.update(cfg)


@contextmanager
def only_before(nlp: Language, name: str) -> Iterator[None]:
    """The pipeline without this component and those after it."""
    rest = nlp.pipe_names[nlp.pipe_names.index(name) :]
    with nlp.select_pipes(disable=rest):
        yield


def write_setting(nlp: Language, name: str, setting: ThresholdSetting) -> None:
    """Change a component and its config. The thresholds of labels are kept in the component's own
    data, since labels may have characters that a config file cannot hold."""
    _, pipe = find_pipe(nlp, name)
    own = {
        label: round(float(value), DIGITS)
        for label, value in zip(pipe.labels, setting.thresholds, strict=True)
        if abs(value - setting.threshold) > 1e-7
    }
    values = {"threshold": setting.threshold, "temperature": setting.temperature}
    pipe.configure(**values, label_thresholds=own)
    nlp.get_pipe_config(name).update(values)
