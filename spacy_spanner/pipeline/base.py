"""What the entity and the relation components share: settings, rows, and the training step."""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path
from typing import (
    Any,
    Callable,
    ClassVar,
    Dict,
    Iterable,
    List,
    NoReturn,
    Optional,
    Set,
    Tuple,
    Union,
)

import numpy
from spacy import util
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..batch import START, RowGold, Rows, SpanBatch
from ..errors import Errors, Rule, Warnings, check
from ..span_scores import register_extensions
from .gold import span_keys
from .loading import are_labels, is_count, is_number, load_model, load_settings, read_bytes
from .outputs import raw_thresholds
from .rows import cut_rows
from .seen import NOTHING, REACH, SPAN, UNKNOWN, is_record, learn_from, limit, row_sizes
from .settings import Setting, plain, type_rules

OUTPUTS = ("spans", "ents", "both")
PROBABILITY = "it must be a probability from 0 to 1"
AT_LEAST_1 = "it must be at least 1, or null"
BY_LABEL = "it must be a dict from labels to probabilities"
LABELS = "it must be a list of distinct texts, none of them empty"


class TablePipe(TrainablePipe):
    """Base of the components. A subclass says what the documents of a batch teach (`_read_gold`,
    `_row_gold`) and what could not be learned (`_report`)."""

    model_name: str  # name of the models that fit
    label_dims: ClassVar[Dict[str, str]]  # from lists of labels in `cfg` to dimensions of the model
    new_counts: Callable[[], Any]  # makes what lost gold is counted in
    cfg: Dict[str, Any]
    _warned: Set[str]
    # A context vector of many more tokens than the sentences of training have is nothing the head knows.
    longest_sentence: ClassVar[int] = 48
    _rehearsal_model: Optional[Model] = None  # `nlp.resume_training` puts a copy of the model here

    output, threshold = Setting(), Setting()
    temperature, label_thresholds = Setting(), Setting()
    spans_key, ents_key = Setting(), Setting()
    window, overlap, pack_sentences, join_training = Setting(), Setting(), Setting(), Setting()
    width_factor, max_cells = Setting(), Setting()

    def __init__(
        self,
        vocab: Vocab,
        model: Model[SpanBatch, Any],
        name: str,
        own: Dict[str, Any],
        *,
        temperature: float = 1.0,
        spans_key: str = "sc",
        ents_key: str = "ents",
        window: int = 256,
        overlap: int = 64,
        pack_sentences: bool = True,
        join_training: float = 0.5,
        width_factor: Optional[float] = 2.0,
        max_cells: int = 4_000_000,
    ):
        """
        own: Settings of the subclass, and what else it keeps in `cfg`.
        temperature: Divides the log-odds of every score of a span; over 1 it makes a model less sure. The
            thresholds are compared with the result.
        spans_key: Span group of all spans, with their confidences.
        ents_key: Span group of the flat entities, with their confidences, wherever ents are written.
        window: Most tokens that are scored as one row.
        overlap: Tokens that rows share where a document without sentence boundaries is cut.
        pack_sentences: Join sentences into rows; otherwise each sentence is a row.
        join_training: Share of the training batches whose documents are joined to rows of up to
            `window` tokens, as sentences of a long document are in prediction; 0 for none.
        width_factor: Widest span to look for and, of relations, longest way from one end to the other,
            in multiples of the largest in the training data; None for no bound.
        max_cells: Bound on the numbers the head holds at once; lower it to save memory.
        """
        self.vocab = vocab
        self.model = model
        self.name = name
        self._warned = set()
        if self.model.name != self.model_name:
            raise ValueError(Errors.S008.format(name=self.name))
        shared: Dict[str, Any] = {
            "label_thresholds": {},
            "temperature": temperature,
            "spans_key": spans_key,
            "ents_key": ents_key,
            "window": window,
            "overlap": overlap,
            "pack_sentences": pack_sentences,
            "join_training": join_training,
            "width_factor": width_factor,
            "max_cells": max_cells,
        }
        self.cfg = {"labels": [], "seen": None}
        self.configure(**own, **shared)
        register_extensions()

    def thresholds(self) -> numpy.ndarray:
        """The threshold of each label.  (C,)"""
        own = self.cfg["label_thresholds"]
        values = [own.get(label, self.cfg["threshold"]) for label in self.labels]
        return numpy.array(values, dtype="float32")

    def head_thresholds(self) -> numpy.ndarray:
        """What the head compares its own scores with: thresholds are of calibrated ones.  (C,)"""
        return raw_thresholds(self.thresholds(), self.cfg["temperature"])

    def _read_gold(self, examples: List[Example], counts: Any) -> List[Any]:
        """The gold of each example in the tokens of its prediction; None where nothing is annotated."""
        raise NotImplementedError

    def _row_gold(self, golds: List[Any], rows: Rows, counts: Any) -> RowGold:
        """The same in the coordinates of rows, all of which are annotated."""
        raise NotImplementedError

    def _report(self, counts: Any) -> None:
        raise NotImplementedError

    def configure(self, **values: Any) -> None:
        """Change settings. Those that cannot work are refused, with what to change."""
        cfg = {**self.cfg, **{name: plain(value) for name, value in values.items()}}
        self._check(cfg)
        self.cfg.update(cfg)

    def _check(self, cfg: Dict[str, Any]) -> None:
        """Refuse settings that cannot work, with what to change."""
        check(self.name, cfg, type_rules(type(self), cfg))
        check(self.name, cfg, self._rules(cfg))

    def _rules(self, cfg: Dict[str, Any]) -> List[Rule]:
        """What must hold of the settings; a subclass adds its own."""
        factor = cfg["width_factor"]
        return [
            ("labels", are_labels(cfg["labels"]), LABELS),
            ("window", is_count(cfg["window"], least=1), "a row needs at least one token"),
            ("overlap", 0 <= cfg["overlap"] < cfg["window"], "it must be less than `window`"),
            ("join_training", 0 <= cfg["join_training"] <= 1, "it is a share from 0 to 1"),
            ("width_factor", factor is None or is_number(factor, least=1), AT_LEAST_1),
            ("max_cells", is_count(cfg["max_cells"], least=1), "it must be positive"),
            ("spans_key", cfg["spans_key"] != cfg["ents_key"], "it must differ from `ents_key`"),
            ("threshold", is_number(cfg["threshold"], least=0, most=1), PROBABILITY),
            ("temperature", is_number(cfg["temperature"], least=1e-9), "it must be positive"),
            ("label_thresholds", fits(cfg["label_thresholds"], cfg["labels"]), BY_LABEL),
            ("seen", is_record(cfg["seen"]), "it must be what training stored there"),
        ]

    @property
    def key(self) -> str:
        """`spans_key`, under the name that it has in spaCy's `spancat`."""
        return self.spans_key

    @key.setter
    def key(self, value: str) -> None:
        self.spans_key = value

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of spans that the component can give."""
        return tuple(self.cfg["labels"])

    def _add_label(self, label: str, kind: str = "labels", dim: str = "nO") -> int:
        """Add a label to a list of `cfg` and, if the model is built, to its dimension.

        RETURNS: 1, or 0 if the label is already there.
        """
        if not isinstance(label, str):
            raise ValueError(SpacyErrors.E187)
        if not label:
            raise ValueError(Errors.S126.format(place=f"a label of component '{self.name}'"))
        if label in self.cfg[kind]:
            return 0
        if self.model.has_dim(dim):
            self.model.attrs["resize_output"](self.model, len(self.cfg[kind]) + 1, dim=dim)
        self.cfg[kind].append(label)
        self.vocab.strings.add(label)
        return 1

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> TablePipe:
        """Load the component from a folder; what was changed or damaged is refused."""
        return self._load(util.from_disk, Path(path), exclude, read_bytes)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> TablePipe:
        """As `from_disk`, from what `to_bytes` gave."""
        return self._load(util.from_bytes, bytes_data, exclude, lambda value: value)

    def _load(self, load: Callable, source: Any, exclude: Iterable[str], read: Callable) -> Any:
        vocab = self.vocab.from_disk if isinstance(source, Path) else self.vocab.from_bytes
        load(
            source,
            {
                "vocab": lambda value: vocab(value, exclude=exclude),
                "cfg": lambda value: load_settings(self.name, self.cfg, read(value), self._check),
                "model": lambda value: load_model(self.name, self.model, read(value)),
            },
            exclude,
        )
        self._check(self.cfg)
        if self.cfg["seen"] is not None:
            self.cfg["seen"] = {**UNKNOWN, **self.cfg["seen"]}
        for labels, dim in self.label_dims.items():
            if self.model.has_dim(dim) and self.model.get_dim(dim) != len(self.cfg[labels]):
                n_labels, n_out = len(self.cfg[labels]), self.model.get_dim(dim)
                reason = f"there are {n_labels} {labels}, but the model gives {n_out}"
                raise ValueError(Errors.S124.format(name=self.name, reason=reason))
        return self

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
        return self.update(taught, sgd=step, losses=losses, **config)

    def _build_model(
        self,
        get_examples: Callable[[], Iterable[Example]],
        nlp: Optional[Language],
        **dims: int,
    ) -> None:
        """Initialize the model, show it the words of the training data, measure the training data
        and report lost gold.

        dims: Sizes of the model that the labels decide.
        """
        # A transformer's listener takes its width from the sample, and has none for empty documents.
        sample = list(islice((eg for eg in get_examples() if len(eg.predicted)), 10))
        if not sample:
            raise ValueError(Errors.S114.format(name=self.name))
        self.cfg["seen"] = dict(NOTHING)
        for name, size in dims.items():
            self.model.set_dim(name, size)
        self.model.initialize(X=self._prediction_batch([eg.predicted for eg in sample]))
        show_words([self] if nlp is None else [pipe for _, pipe in nlp.pipeline], get_examples)
        counts = self.new_counts()
        for example in get_examples():
            self._gold_batch([example], counts)
        self._report(counts)

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
            self.head_thresholds(),
            cfg["max_cells"],
            max_width=self._max_width(),
            max_reach=limit(cfg["seen"], REACH, cfg["width_factor"]),
            gold=gold,
        )

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
            longest_sentence=self.longest_sentence,
        )

    def _max_width(self) -> Optional[int]:
        """The widest span to look for."""
        own = self.model.attrs["max_width"]
        if self.cfg["seen"] is None and own is not None:
            return own
        known = limit(self.cfg["seen"], SPAN, self.cfg["width_factor"])
        return min((width for width in (own, known) if width is not None), default=None)

    def _fail_without_gold(self, references: List[Doc], key: Optional[str]) -> NoReturn:
        """Nothing is annotated where this component looks: say where something is."""
        keys = ", ".join(repr(key) for key in span_keys(references)) or "none"
        if key is None:
            raise ValueError(Errors.S002.format(name=self.name, keys=keys))
        raise ValueError(Errors.S001.format(name=self.name, key=key, keys=keys))

    def _warn(self, kind: str, message: str) -> None:
        """Each kind of warning once."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, stacklevel=4)


def show_words(pipes: Iterable[Any], get_examples: Callable[[], Iterable[Example]]) -> None:
    """Pass the words of the training data to the layers with a `learn_words` attribute."""
    models = [pipe.model for pipe in pipes if isinstance(getattr(pipe, "model", None), Model)]
    for node in (node for model in models for node in model.walk()):
        if "learn_words" in node.attrs:
            node.attrs["learn_words"](node, (eg.predicted for eg in get_examples()))


def fits(thresholds: Any, labels: Any) -> bool:
    """Whether it is a dict from some of the labels to probabilities."""
    return isinstance(thresholds, dict) and all(
        label in labels and is_number(value, least=0, most=1) for label, value in thresholds.items()
    )


def reasons_of(counts: Any) -> Tuple[Dict[str, int], int]:
    """Why gold was lost and how often, and how much there was."""
    return {r: n for r, n in counts.items() if n and r != "total"}, counts["total"]
