"""Base of the entity and the relation component: rows, gold and the training step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from copy import copy
from itertools import islice, takewhile
from typing import Any, Callable, ClassVar, Dict, Iterable, List, NoReturn, Optional, Set, Tuple

import numpy
from spacy.language import Language
from spacy.pipeline import SpanCategorizer
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from thinc.api import Model, Optimizer, set_dropout_rate

from ..batch import START, RowGold, Rows, SpanBatch, SpanPrediction
from ..errors import Errors, Warnings
from .configured import ConfiguredPipe
from .gold import TOO_WIDE, span_keys
from .outputs import flatten_prediction, write_ents, write_spans
from .rows import cut_rows
from .seen import NOTHING, REACH, SPAN, UNKNOWN, learn_from, limit, row_sizes


class TablePipe(ConfiguredPipe, ABC):
    """Base of the components. A subclass says what the documents of a batch teach (`_read_gold`,
    `_row_gold`) and what could not be learned (`_report`)."""

    new_counts: Callable[[], Any]  # makes what lost gold is counted in
    prefixes: ClassVar[Tuple[str, ...]] = ("",)  # of the thresholds that the head takes, in order
    _rehearsal_model: Optional[Model] = None  # `nlp.resume_training` puts a copy of the model here

    @property
    def predicts_entities(self) -> bool:
        """Whether it finds entities itself."""
        return True

    @property
    def writes_spans(self) -> bool:
        """Whether it fills `doc.spans[spans_key]`."""
        return self.predicts_entities and self.cfg["output"] in ("spans", "both")

    @property
    def writes_ents(self) -> bool:
        """Whether it fills `doc.ents` and `doc.spans[ents_key]`."""
        return self.predicts_entities and self.cfg["output"] in ("ents", "both")

    @property
    def gold_key(self) -> Optional[str]:
        """The span group the gold entities are in, or None where they are `reference.ents`."""
        return None if self.cfg["output"] == "ents" else self.cfg["spans_key"]

    @abstractmethod
    def _read_gold(self, examples: List[Example], counts: Any) -> List[Any]:
        """The gold of each example in the tokens of its prediction; None where nothing is annotated."""

    @abstractmethod
    def _row_gold(self, golds: List[Any], rows: Rows, counts: Any) -> RowGold:
        """The same in the coordinates of rows, all of which are annotated."""

    @abstractmethod
    def _report(self, counts: Any) -> None:
        """Warn of all gold that cannot be learned (`_warn_lost`)."""

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Learn from a batch of examples; those without annotation teach nothing.

        drop: Dropout of the tok2vec; the head's own is a setting of its architecture.
        RETURNS: `losses`, with this component's loss added under its name.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        if not self.model.has_dim("nI"):
            raise ValueError(Errors.S007)
        set_dropout_rate(self.model, drop)
        counts = self.new_counts()
        join = numpy.random.random() < self.cfg["join_training"]
        batch = self._gold_batch(examples, counts, join=join)
        loss, backprop = self.model.begin_update(batch)
        self._report(counts)
        backprop(loss)
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += float(loss)  # last: on a GPU it waits for everything before it
        return losses

    def rehearse(
        self,
        examples: Iterable[Example],
        *,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
        **config: Any,
    ) -> Dict[str, float]:
        """Learn from what the model of the time of `nlp.resume_training` finds in the texts of the
        examples, so that it is not forgotten. Labels that it did not know count as not there.

        config: Further settings of `update`, such as `drop`.
        """
        losses = {} if losses is None else losses
        if self._rehearsal_model is None:
            return losses
        if any(isinstance(node, Tok2VecListener) for node in self.model.walk()):
            raise ValueError(Errors.S196.format(name=self.name))
        examples = list(examples)
        docs = [eg.predicted.copy() for eg in examples]
        model, self.model = self.model, self._rehearsal_model
        try:
            self.set_annotations(docs, self.predict(docs))
        finally:
            self.model = model
        taught = [Example(eg.predicted, doc) for eg, doc in zip(examples, docs, strict=True)]
        # `nlp.rehearse` gives a function in place of an optimizer, and in the end steps one component
        # only: the gradients wait for the next update instead.
        step = sgd if isinstance(sgd, Optimizer) else None
        seen = copy(self.cfg["seen"])
        try:
            return self.update(taught, sgd=step, losses=losses, **config)
        finally:
            self.cfg["seen"] = seen  # of annotation alone: what was found would widen the limits

    def _build_model(
        self, get_examples: Callable[[], Iterable[Example]], nlp: Optional[Language], **dims: int
    ) -> None:
        """Initialize the model, show it the words of the training data, measure the training data
        and report lost gold.

        dims: Sizes of the model that the labels decide.
        """
        # A transformer's listener takes its width from the sample, and has none for empty documents.
        sample = list(islice((eg for eg in get_examples() if len(eg.predicted)), 10))
        if not sample:
            raise ValueError(Errors.S114.format(name=self.name))
        if nlp is not None:
            self._check_keys(nlp)
        self.cfg["seen"] = dict(NOTHING)
        for name, size in dims.items():
            self.model.set_dim(name, size)
        self.model.initialize(X=self._prediction_batch([eg.predicted for eg in sample]))
        show_words([self] if nlp is None else [pipe for _, pipe in nlp.pipeline], get_examples)
        counts = self.new_counts()
        for example in get_examples():
            self._gold_batch([example], counts)
        self._report(counts)

    def _encoded(self, nlp: Optional[Language], docs: List[Doc]) -> List[Doc]:
        """The documents as the encoders that this component listens to have read them. While a
        pipeline is initialized nothing else runs these, and a listener would give zeros."""
        nodes = list(self.model.walk())
        upstream = {node.upstream_name for node in nodes if hasattr(node, "upstream_name")}
        if nlp is None or not upstream:
            return docs
        docs = [doc.copy() for doc in docs]
        for name, pipe in self._before(nlp):
            if hasattr(pipe, "listener_map") and upstream & {name, "*"}:
                pipe.set_annotations(docs, pipe.predict(docs))
        return docs

    def _before(self, nlp: Language) -> List[Tuple[str, Any]]:
        """The components before this one, disabled ones too."""
        components: List[Tuple[str, Any]] = nlp.components
        return list(takewhile(lambda component: component[1] is not self, components))

    def _check_keys(self, nlp: Language) -> None:
        """Warn of span groups of another component that this one overwrites."""
        for name, pipe in self._before(nlp):
            for key in sorted(written_keys(self) & written_keys(pipe)):
                message = Warnings.SW26.format(name=self.name, other=name, key=key)
                self._warn(f"key {key} of {name}", message)

    def _check_encoded(self, docs: List[Doc]) -> None:
        """Refuse documents that the encoder did not read: a listener would give zeros for them."""
        tok2vec = self.model.layers[0]
        listens = any(isinstance(part, Tok2VecListener) for part in (tok2vec, *tok2vec.layers))
        if listens and any(len(doc) and not doc.tensor.size for doc in docs):
            raise ValueError(Errors.S270.format(name=self.name))

    def _gold_batch(self, examples: List[Example], counts: Any, *, join: bool = False) -> SpanBatch:
        """The batch of a training step; rows of documents without annotation are left out.

        join: Join the documents to longer rows.
        """
        golds = self._read_gold(examples, counts)
        cfg = self.cfg
        docs = [eg.predicted for eg in examples]
        annotated = numpy.array([gold is not None for gold in golds], dtype=bool)
        sizes, marked = {"window": cfg["window"], "overlap": cfg["overlap"]}, self._marked(examples)
        rows = self._rows(docs, sizes, marked=marked, joined=annotated & join)
        doc, _ = rows.locate(rows.table[:, START])
        rows = rows.keep(annotated[doc])
        gold = self._row_gold(golds, rows, counts)
        if cfg["seen"] is None:
            cfg["seen"] = dict(UNKNOWN)
        learn_from(cfg["seen"], rows, gold)
        return self._batch(docs, rows, gold)

    def _prediction_batch(self, docs: List[Doc]) -> SpanBatch:
        """The batch of a prediction, within the sizes seen in training."""
        if self.cfg["seen"] is None and self.model.has_dim("nI"):
            self._warn("seen", Warnings.SW06.format(name=self.name, width=self._max_width()))
        sizes = row_sizes(self.cfg, self._max_width())
        return self._batch(docs, self._rows(docs, sizes, marked=docs))

    def _batch(self, docs: List[Doc], rows: Rows, gold: Optional[RowGold] = None) -> SpanBatch:
        cfg = self.cfg
        return SpanBatch(
            docs,
            rows,
            numpy.concatenate([self.head_thresholds(prefix) for prefix in self.prefixes]),
            cfg["max_cells"],
            max_width=self._max_width(),
            max_reach=limit(cfg["seen"], REACH, cfg["width_factor"]),
            gold=gold,
        )

    def _write_entities(self, docs: List[Doc], found: SpanPrediction, overlaps: str) -> None:
        """Write spans wherever this component does; entities are chosen by a rule of `overlaps`."""
        if self.writes_spans:
            write_spans(docs, found, self.labels, self.cfg["spans_key"])
        if self.writes_ents:
            flat = flatten_prediction(found, self.thresholds(), overlaps)
            write_ents(docs, flat, self.labels, self.cfg["ents_key"])

    def _marked(self, examples: List[Example]) -> List[Doc]:
        """The documents whose sentence boundaries are used in training: the predicted ones, as in
        prediction."""
        return [eg.predicted for eg in examples]

    def _rows(
        self,
        docs: List[Doc],
        sizes: Dict[str, int],
        *,
        marked: List[Doc],
        joined: Optional[numpy.ndarray] = None,
    ) -> Rows:
        needed = self.model.attrs["needs_sentences"]
        pack = self.cfg["pack_sentences"]
        return cut_rows(
            docs,
            **sizes,
            pack=pack,
            joined=joined,
            marked=marked if needed else None,
        )

    def _max_width(self) -> Optional[int]:
        """The widest span to look for."""
        bound = self.model.attrs["max_width"]
        if self.cfg["seen"] is None and bound is not None:
            return bound
        known = limit(self.cfg["seen"], SPAN, self.cfg["width_factor"])
        return min((width for width in (bound, known) if width is not None), default=None)

    def _warn_lost(self, counts: Counter, message: str) -> None:
        """Warn once of gold of a kind that cannot be learned, with numbers.

        counts: `total`, and how often gold was lost for each reason."""
        lost = {reason: n for reason, n in counts.items() if n and reason != "total"}
        limit = f"{TOO_WIDE} = {self.model.attrs['max_width']}"
        reasons = "; ".join(f"{n} {limit if r == TOO_WIDE else r}" for r, n in lost.items())
        if lost:
            values = {"lost": sum(lost.values()), "total": counts["total"], "reasons": reasons}
            self._warn(message, message.format(name=self.name, **values))

    def _fail_without_gold(self, references: List[Doc], key: Optional[str]) -> NoReturn:
        """Nothing is annotated where this component looks: say where something is."""
        keys = ", ".join(repr(key) for key in span_keys(references)) or "none"
        if key is None:
            raise ValueError(Errors.S002.format(name=self.name, keys=keys))
        raise ValueError(Errors.S001.format(name=self.name, key=key, keys=keys))


def written_keys(pipe: Any) -> Set[str]:
    """The span groups that a component makes anew in each document."""
    if isinstance(pipe, SpanCategorizer):
        return {pipe.key}
    if not isinstance(pipe, TablePipe):
        return set()
    written = {"spans_key": pipe.writes_spans, "ents_key": pipe.writes_ents}
    return {pipe.cfg[setting] for setting, is_written in written.items() if is_written}


def show_words(pipes: Iterable[Any], get_examples: Callable[[], Iterable[Example]]) -> None:
    """Pass the words of the training data to the layers with a `learn_words` attribute."""
    models = [pipe.model for pipe in pipes if isinstance(getattr(pipe, "model", None), Model)]
    for node in (node for model in models for node in model.walk()):
        if "learn_words" in node.attrs:
            node.attrs["learn_words"](node, (eg.predicted for eg in get_examples()))
