"""Candidates for the threshold search from one pass over the data, and writing its result back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..batch import RelationPrediction, SpanPrediction
from ..corpus.docs import judged_spans, scored_spans
from ..corpus.pairs import DocPair
from ..errors import Errors
from ..pipeline.base import TablePipe
from ..pipeline.component import SpanTablePipe
from .scaling import RAW
from .thresholds import DIGITS, Candidates, ThresholdSetting, tune

FLOOR = 0.005  # the lowest threshold that is tried


class Fit(NamedTuple):
    """The current and the best setting, and what they are from."""

    candidates: Candidates
    now: ThresholdSetting
    best: ThresholdSetting


def find_pipe(nlp: Language, name: Optional[str]) -> Tuple[str, TablePipe]:
    """The component with this name, or the only one of ours."""
    ours = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, TablePipe)}
    if not ours:
        raise ValueError(Errors.S032.format(names=", ".join(nlp.pipe_names) or "none"))
    if name is None and len(ours) == 1:
        return next(iter(ours.items()))
    if name is None:
        raise ValueError(Errors.S033.format(names=", ".join(ours)))
    if name not in ours:
        raise ValueError(Errors.S030.format(name=name, names=", ".join(ours)))
    return name, ours[name]


def fit_settings(
    nlp: Language, name: str, pairs: Iterable[DocPair], **options: Any
) -> Dict[str, Fit]:
    """What fits a component on these documents, by the prefix of its settings: "" for those of spans,
    "relation_" for those of relations.

    options: Those of `tune`.
    """
    _, pipe = find_pipe(nlp, name)
    if isinstance(pipe, SpanTablePipe):
        return {"": fit_spans(nlp, name, pipe, pairs, **options)}
    from .relations import fit_relations

    return fit_relations(nlp, name, pipe, list(pairs), **options)


def fit_spans(
    nlp: Language, name: str, pipe: TablePipe, pairs: Iterable[DocPair], **options: Any
) -> Fit:
    """The thresholds of spans of a component of either kind."""
    return fit_candidates(pipe, collect_candidates(nlp, name, pairs), **options)


def fit_candidates(
    pipe: TablePipe, candidates: Candidates, prefix: str = "", **options: Any
) -> Fit:
    """The current and the best setting of a component for these candidates."""
    threshold, scaling = pipe.cfg[f"{prefix}threshold"], pipe.scaling(prefix)
    current: Dict[str, Any] = {"threshold": threshold, "scaling": scaling}
    return Fit(candidates, *tune(candidates, pipe.thresholds(prefix), **current, **options))


def collect_candidates(nlp: Language, name: str, pairs: Iterable[DocPair]) -> Candidates:
    """Run the pipeline up to a component and keep every span that its head scores over the floor.

    pairs: Documents without predictions, each with its gold; those without gold are left out, and so are
        spans that gold cannot judge.
    """
    _, pipe = find_pipe(nlp, name)
    key, kind = pipe.cfg["spans_key"], "ents" if pipe.cfg["output"] == "ents" else "spans"
    golds: List[dict] = []
    docs: List[Doc] = []
    references: List[Doc] = []
    for doc, gold in pairs:
        spans = None if gold is None else scored_spans(gold, output=kind, spans_key=key)
        if gold is not None and spans is not None:
            docs.append(doc)
            references.append(gold)
            golds.append(spans)
    with lowered_threshold(pipe) as floor, only_before(nlp, name):
        prediction = predict_all(pipe, nlp.pipe(docs), size=nlp.batch_size)
    starts = [[token.idx for token in doc] for doc in docs]
    ends = [[token.idx + len(token) for token in doc] for doc in docs]
    found = [
        (doc, (starts[doc][start], ends[doc][end - 1], pipe.labels[label]))
        for doc, start, end, label in prediction.spans.tolist()
    ]
    judged: List[dict] = [{} for _ in docs]
    for number, span in found:
        judged[number][span] = None
    judged = [
        judged_spans(spans, gold, output=kind)
        for spans, gold in zip(judged, references, strict=True)
    ]
    use = numpy.array([span in judged[number] for number, span in found], dtype=bool)
    correct = numpy.array([span in golds[number] for number, span in found], dtype=bool)
    counts: Dict[str, int] = dict.fromkeys(pipe.labels, 0)
    for _, _, label in (span for spans in golds for span in spans):
        counts[label] = counts.get(label, 0) + 1
    return Candidates(
        prediction.take(use),
        correct[use],
        numpy.array([counts[label] for label in pipe.labels], dtype="int64"),
        sum(counts.values()),
        numpy.full(len(pipe.labels), floor),
        pipe.cfg.get("overlaps", "best") if pipe.cfg["output"] == "ents" else None,
    )


def predict_all(pipe: TablePipe, docs: Iterable[Doc], *, size: int) -> SpanPrediction:
    """One table for the documents of all batches."""
    spans, scores, first = [numpy.zeros((0, 4), "int64")], [numpy.zeros(0, "float32")], 0
    margins: List[numpy.ndarray] = []  # of all batches with spans, or of none
    for batch in minibatch(docs, size):
        found = pipe.predict(batch)
        if isinstance(found, RelationPrediction):
            found = found.entities
        spans.append(found.spans + numpy.array([first, 0, 0, 0]))
        scores.append(found.scores)
        margins += [] if found.margins is None else [found.margins]
        first += len(batch)
    known = numpy.concatenate(margins) if margins else None
    return SpanPrediction(numpy.concatenate(spans), numpy.concatenate(scores), known)


@contextmanager
def lowered_threshold(pipe: TablePipe, prefix: str = "") -> Iterator[float]:
    """The component without calibration and with one threshold no higher than any it has. While those
    of spans are lowered, it finds no relations."""
    floor = min(FLOOR, float(pipe.head_thresholds(prefix).min(initial=FLOOR)))
    lowest = {"threshold": floor, "label_thresholds": {}, **RAW._asdict(), "label_bias": {}}
    values: Dict[str, Any] = {prefix + key: value for key, value in lowest.items()}
    if not prefix and "relation_threshold" in pipe.cfg:
        values.update(relation_threshold=1.0, relation_label_thresholds={})
    with changed_settings(pipe, values):
        yield floor


@contextmanager
def changed_settings(pipe: TablePipe, values: Dict[str, Any]) -> Iterator[None]:
    """The component with other settings for a while."""
    before = {key: pipe.cfg[key] for key in values}
    pipe.cfg.update(values)
    try:
        yield
    finally:
        pipe.cfg.update(before)


@contextmanager
def only_before(nlp: Language, name: str) -> Iterator[None]:
    """The pipeline without this component and those after it."""
    rest = nlp.pipe_names[nlp.pipe_names.index(name) :]
    with nlp.select_pipes(disable=rest):
        yield


def settings_for(pipe: TablePipe, setting: ThresholdSetting, prefix: str = "") -> Dict[str, Any]:
    """The settings of a component, with the prefix of those of spans or of relations."""
    labels = pipe.cfg[f"{prefix}labels"]
    biases = setting.scaling.label_bias or [0.0] * len(labels)
    values = {
        "threshold": setting.threshold,
        "label_thresholds": {
            label: round(float(value), DIGITS)
            for label, value in zip(labels, setting.thresholds, strict=True)
            if abs(value - setting.threshold) > 1e-7
        },
        "temperature": setting.scaling.temperature,
        "bias": setting.scaling.bias,
        "label_bias": {label: bias for label, bias in zip(labels, biases, strict=True) if bias},
    }
    return {prefix + key: value for key, value in values.items()}


def write_setting(nlp: Language, name: str, setting: ThresholdSetting, prefix: str = "") -> None:
    """Change a component and its config. What single labels have is kept in the component's own
    data, since labels may have characters that a config file cannot hold."""
    _, pipe = find_pipe(nlp, name)
    values = settings_for(pipe, setting, prefix)
    pipe.configure(**values)
    common = {key: value for key, value in values.items() if not isinstance(value, dict)}
    nlp.get_pipe_config(name).update(common)
