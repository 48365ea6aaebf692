"""The one trainable component behind every entity factory. It knows no model family."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..batch import DOC, SpanBatch, SpanPrediction
from ..errors import Errors, Warnings
from ..overlaps import RULES
from ..scorers import score_span_table
from ..words import word_keys
from .gold import TOO_WIDE, read_gold, row_gold, span_keys
from .outputs import calibrate, flatten_prediction, write_ents, write_spans
from .rows import cut_rows

OUTPUTS = ("spans", "ents", "both")
SAMPLE_SIZE = 500  # examples a head may look at before training


def show_words(pipes: Iterable[Any], get_examples: Callable[[], Iterable[Example]]) -> None:
    """Show the words of the training data to those layers of the components that ask for them."""
    models = [pipe.model for pipe in pipes if isinstance(getattr(pipe, "model", None), Model)]
    for node in (node for model in models for node in model.walk()):
        if "learn_words" in node.attrs:
            node.attrs["learn_words"](node, (eg.predicted for eg in get_examples()))


class SpanTablePipe(TrainablePipe):
    """Finds labelled spans with any span-table model and writes them to a document."""

    def __init__(
        self,
        vocab: Vocab,
        model: Model[SpanBatch, Any],
        name: str,
        *,
        output: str = "spans",
        spans_key: str = "sc",
        ents_key: str = "ents",
        threshold: Optional[float] = None,
        temperature: float = 1.0,
        overlaps: str = "best",
        window: int = 256,
        overlap: int = 64,
        pack_sentences: bool = True,
        max_cells: int = 4_000_000,
        scorer: Optional[Callable] = score_span_table,
    ):
        """
        vocab: The shared vocabulary.
        model: Made by one of the `spacy-spanner` architectures.
        name: The component's name in the pipeline.
        output: "spans" learns from and writes `doc.spans[spans_key]`; "ents" learns from and writes
            `doc.ents`; "both" learns from the span group and writes both.
        spans_key: Span group of all spans, with their confidences.
        ents_key: Span group of the flat entities, with their confidences, wherever ents are written.
        threshold: A span is kept if its probability is over it; None for the architecture's own.
        temperature: Divides the log-odds of every score; over 1 it makes a model less sure. The
            thresholds are compared with the result.
        overlaps: How flat entities are chosen: "best" for the most probable set, "greedy" for the
            most probable span first.
        window: Most tokens that are scored as one row.
        overlap: Tokens that rows share where a document without sentence boundaries is cut.
        pack_sentences: Join sentences into rows; otherwise each sentence is a row.
        max_cells: Bound on the numbers the head holds at once; lower it to save memory.
        scorer: Scoring function.
        """
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: Dict[str, Any] = {
            "labels": [],
            "output": output,
            "spans_key": spans_key,
            "ents_key": ents_key,
            "threshold": model.attrs.get("threshold") if threshold is None else threshold,
            "label_thresholds": {},
            "temperature": temperature,
            "overlaps": overlaps,
            "window": window,
            "overlap": overlap,
            "pack_sentences": pack_sentences,
            "max_cells": max_cells,
        }
        self._check_settings()
        self._warned_of_gold = False

    def _check_settings(self) -> None:
        if self.model.name != "span_table":
            raise ValueError(Errors.S008.format(name=self.name))
        cfg = self.cfg
        checks = [
            ("output", cfg["output"] in OUTPUTS, f"it must be one of {OUTPUTS}"),
            ("overlaps", cfg["overlaps"] in RULES, f"it must be one of {tuple(RULES)}"),
            ("threshold", 0 <= cfg["threshold"] <= 1, "it must be a probability from 0 to 1"),
            ("temperature", cfg["temperature"] > 0, "it must be positive"),
            ("window", cfg["window"] > 0, "a row needs at least one token"),
            ("overlap", 0 <= cfg["overlap"] < cfg["window"], "it must be less than `window`"),
            ("max_cells", cfg["max_cells"] > 0, "it must be positive"),
            ("spans_key", cfg["spans_key"] != cfg["ents_key"], "it must differ from `ents_key`"),
        ]
        for option, holds, reason in checks:
            if not holds:
                raise ValueError(
                    Errors.S003.format(
                        name=self.name, option=option, value=cfg[option], reason=reason
                    )
                )

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels the component can give."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> List[str]:
        """What `spacy init labels` stores and `initialize(labels=)` takes."""
        return list(self.labels)

    @property
    def writes_ents(self) -> bool:
        return self.cfg["output"] in ("ents", "both")

    @property
    def writes_spans(self) -> bool:
        return self.cfg["output"] in ("spans", "both")

    @property
    def gold_key(self) -> Optional[str]:
        """The span group the gold is in, or None where it is `reference.ents`."""
        return None if self.cfg["output"] == "ents" else self.cfg["spans_key"]

    def add_label(self, label: str) -> int:
        """Add a label before the model is initialized.

        RETURNS: 1, or 0 if the label is already there.
        """
        if not isinstance(label, str):
            raise ValueError(SpacyErrors.E187)
        if label in self.labels:
            return 0
        self._allow_extra_label()
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def thresholds(self) -> numpy.ndarray:
        """The threshold of each label.  (C,)"""
        own = self.cfg["label_thresholds"]
        values = [own.get(label, self.cfg["threshold"]) for label in self.labels]
        return numpy.array(values, dtype="float32")

    def predict(self, docs: Iterable[Doc]) -> SpanPrediction:
        """Find spans without changing the documents."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return SpanPrediction(numpy.zeros((0, 4), "int64"), numpy.zeros(0, "float32"))
        found = self.model.predict(self._batch(docs))
        return SpanPrediction(found.spans, calibrate(found.scores, self.cfg["temperature"]))

    def set_annotations(self, docs: Iterable[Doc], prediction: SpanPrediction) -> None:
        """Write what `predict` found, also where it found nothing."""
        docs = list(docs)
        labels = [self.vocab.strings.add(label) for label in self.labels]
        if self.writes_spans:
            write_spans(docs, prediction, labels, self.cfg["spans_key"])
        if self.writes_ents:
            flat = flatten_prediction(prediction, self.thresholds(), self.cfg["overlaps"])
            write_ents(docs, flat, labels, self.cfg["ents_key"])

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Learn from a batch of examples.

        drop: Dropout of the tok2vec; the head's own is a setting of its architecture.
        RETURNS: `losses`, with this component's loss added under its name.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SpanTablePipe.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        counts: Counter = Counter()
        batch = self._gold_batch(examples, counts)
        self._report(counts)
        loss, backprop = self.model.begin_update(batch)
        backprop(loss)
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += float(loss)  # last: on a GPU it waits for everything before it
        return losses

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[List[str]] = None,
    ) -> None:
        """Collect the labels, look at all gold once, and build the model.

        labels: Take these instead of collecting them from the data.
        """
        validate_get_examples(get_examples, "SpanTablePipe.initialize")
        for label in labels or []:
            self.add_label(label)
        if labels is None:
            self._collect_labels(get_examples())
        if not self.labels:
            raise ValueError(SpacyErrors.E143.format(name=self.name))
        # A transformer's listener takes its width from the sample, and has none for empty documents.
        sample = list(islice((eg for eg in get_examples() if len(eg.predicted)), 10))
        self.model.set_dim("nO", len(self.labels))
        self.model.initialize(X=self._batch([eg.predicted for eg in sample]))
        self._look_ahead(get_examples, nlp)
        counts: Counter = Counter()
        for example in get_examples() if labels is None else sample:
            self._gold_batch([example], counts)
        self._report(counts)
        if nlp is not None:
            self._check_score_weights(nlp)

    def _look_ahead(
        self, get_examples: Callable[[], Iterable[Example]], nlp: Optional[Language]
    ) -> None:
        """Layers that start from the training data get to see it: the words of all of it (here and
        in the encoders this component may listen to), and the annotation of a sample."""
        show_words([self] if nlp is None else [pipe for _, pipe in nlp.pipeline], get_examples)
        sample = list(islice(get_examples(), SAMPLE_SIZE))
        self.model.attrs["prepare"](self.model, self._gold_batch(sample, Counter()))

    def _collect_labels(self, examples: Iterable[Example]) -> None:
        references, annotated = [], False
        for example in examples:
            reference = example.reference
            references.append(reference)
            if self.gold_key is None:
                gold: Sequence = reference.ents
            else:
                gold = reference.spans.get(self.gold_key, [])
                annotated = annotated or self.gold_key in reference.spans
            for span in gold:
                self.add_label(span.label_)
        if self.labels or annotated:
            return
        keys = ", ".join(repr(key) for key in span_keys(references)) or "none"
        if self.gold_key is None:
            raise ValueError(Errors.S002.format(name=self.name, keys=keys))
        raise ValueError(Errors.S001.format(name=self.name, key=self.gold_key, keys=keys))

    def _batch(self, docs: List[Doc]) -> SpanBatch:
        cfg = self.cfg
        rows = cut_rows(
            docs, window=cfg["window"], overlap=cfg["overlap"], pack=cfg["pack_sentences"]
        )
        keys = list(word_keys(docs)) if self.model.attrs["needs_keys"] else None
        thresholds = calibrate(self.thresholds(), 1 / cfg["temperature"])  # as the head scores
        return SpanBatch(docs, rows, thresholds, cfg["max_cells"], keys=keys)

    def _gold_batch(self, examples: List[Example], counts: Counter) -> SpanBatch:
        """The batch of a training step; rows of documents without annotation are left out."""
        ids = {self.vocab.strings[label]: number for number, label in enumerate(self.labels)}
        golds = [
            read_gold(eg, spans_key=self.gold_key, label_ids=ids, counts=counts) for eg in examples
        ]
        batch = self._batch([eg.predicted for eg in examples])
        annotated = numpy.array([gold is not None for gold in golds], dtype=bool)
        batch.rows = batch.rows[annotated[batch.rows[:, DOC]]]
        attrs = self.model.attrs
        batch.gold = row_gold(
            golds, batch.rows, flat=attrs["flat"], max_width=attrs["max_width"], counts=counts
        )
        return batch

    def _report(self, counts: Counter) -> None:
        """Warn once of gold that cannot be learned, with numbers."""
        reasons = {reason: n for reason, n in counts.items() if n and reason != "total"}
        if self._warned_of_gold or not reasons:
            return
        self._warned_of_gold = True
        max_width = self.model.attrs["max_width"]
        told = [
            f"{n} {reason}" + (f" = {max_width}" if reason == TOO_WIDE else "")
            for reason, n in reasons.items()
        ]
        warnings.warn(
            Warnings.SW01.format(
                name=self.name,
                lost=sum(reasons.values()),
                total=counts["total"],
                reasons="; ".join(told),
            ),
            stacklevel=3,
        )

    def _check_score_weights(self, nlp: Language) -> None:
        """Warn of weights for `spans_<key>_*` and `ents_*` that nothing in the pipeline fills."""
        weights = nlp.config["training"]["score_weights"]
        written, ents = set(), False
        for _, pipe in nlp.pipeline:
            cfg = getattr(pipe, "cfg", None) or {}
            written.add(cfg.get("spans_key", ""))
            ents = ents or getattr(pipe, "writes_ents", not isinstance(pipe, SpanTablePipe))
        for key, weight in weights.items():
            ours = key.startswith("spans_") and key.endswith(("_f", "_p", "_r"))
            unfilled = ours and key[len("spans_") : -2] not in written
            if weight and (unfilled or (key.startswith("ents_") and not ents)):
                spans = f"spans_{self.cfg['spans_key']}_*" if self.writes_spans else ""
                writes = " and ".join(filter(None, [spans, "ents_*" if self.writes_ents else ""]))
                warnings.warn(
                    Warnings.SW02.format(name=self.name, key=key, writes=writes), stacklevel=3
                )
