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
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from thinc.api import Model, Optimizer, set_dropout_rate

from ..batch import START, RowGold, Rows, SpanBatch
from ..errors import Errors, Rule, Warnings, check
from .gold import span_keys
from .loading import is_count, is_number, load_model, load_settings, read_bytes
from .rows import cut_rows
from .seen import NOTHING, REACH, SPAN, UNKNOWN, is_record, learn_from, limit, row_sizes

OUTPUTS = ("spans", "ents", "both")
PROBABILITY = "it must be a probability from 0 to 1"
LABELS = "it must be a list of distinct texts, none of them empty"


class TablePipe(TrainablePipe):
    """Base of the components. A subclass keeps its settings in `cfg`, and says what the documents of
    a batch teach (`_read_gold`, `_row_gold`) and what could not be learned (`_report`)."""

    model_name: str  # name of the models that fit
    label_dims: ClassVar[Dict[str, str]]  # from lists of labels in `cfg` to dimensions of the model
    new_counts: Callable[[], Any]  # makes what lost gold is counted in
    cfg: Dict[str, Any]
    _warned: Set[str]

    def thresholds(self) -> numpy.ndarray:
        raise NotImplementedError

    def _read_gold(self, examples: List[Example], counts: Any) -> List[Any]:
        """The gold of each example in the tokens of its prediction; None where nothing is annotated."""
        raise NotImplementedError

    def _row_gold(self, golds: List[Any], rows: Rows, counts: Any) -> RowGold:
        """The same in the coordinates of rows, all of which are annotated."""
        raise NotImplementedError

    def _report(self, counts: Any) -> None:
        raise NotImplementedError

    def _check_label(self, label: Any) -> None:
        """Refuse what cannot be a label."""
        if not isinstance(label, str):
            raise ValueError(SpacyErrors.E187)
        if not label:
            raise ValueError(Errors.S126.format(place=f"a label of component '{self.name}'"))

    def _rules(self, cfg: Dict[str, Any]) -> List[Rule]:
        """What a subclass asks of its own settings."""
        raise NotImplementedError

    def _check_settings(self, cfg: Dict[str, Any]) -> None:
        """Refuse a model or a setting that cannot work, with what to change."""
        if self.model.name != self.model_name:
            raise ValueError(Errors.S008.format(name=self.name))
        window, overlap = cfg["window"], cfg["overlap"]
        keys = [isinstance(cfg[key], str) for key in ("spans_key", "ents_key")]
        factor = cfg["width_factor"]
        common = [
            ("window", is_count(window, least=1), "a row needs at least one token"),
            (
                "overlap",
                is_count(overlap) and is_count(window) and overlap < window,
                "it must be less than `window`",
            ),
            ("pack_sentences", isinstance(cfg["pack_sentences"], bool), "it must be true or false"),
            (
                "join_training",
                is_number(cfg["join_training"], least=0, most=1),
                "it is a share from 0 to 1",
            ),
            (
                "width_factor",
                factor is None or is_number(factor, least=1),
                "it must be at least 1, or null",
            ),
            ("max_cells", is_count(cfg["max_cells"], least=1), "it must be positive"),
            (
                "spans_key",
                all(keys) and cfg["spans_key"] != cfg["ents_key"],
                "it must differ from `ents_key`, and both must be text",
            ),
            ("seen", is_record(cfg["seen"]), "it must be what training stored there"),
        ]
        check(self.name, cfg, [*self._rules(cfg), *common])

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
                "cfg": lambda value: load_settings(
                    self.name, self.cfg, read(value), self._check_settings
                ),
                "model": lambda value: load_model(self.name, self.model, read(value)),
            },
            exclude,
        )
        self._check_settings(self.cfg)
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
        batch = self._gold_batch(examples, counts, join=self.cfg["join_training"])
        loss, backprop = self.model.begin_update(batch)
        self._report(counts)
        backprop(loss)
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += float(loss)  # last: on a GPU it waits for everything before it
        return losses

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

    def _gold_batch(self, examples: List[Example], counts: Any, *, join: float = 0.0) -> SpanBatch:
        """The batch of a training step; rows of documents without annotation are left out.

        join: Share of the documents that are joined to longer rows.
        """
        golds = self._read_gold(examples, counts)
        cfg = self.cfg
        docs = [eg.predicted for eg in examples]
        annotated = numpy.array([gold is not None for gold in golds], dtype=bool)
        rows = self._rows(docs, cfg["window"], cfg["overlap"], join=join * annotated)
        doc, _ = rows.locate(rows.table[:, START])
        rows = rows.keep(annotated[doc])
        gold = self._row_gold(golds, rows, counts)
        if cfg["seen"] is None:
            cfg["seen"] = dict(UNKNOWN)
        learn_from(cfg["seen"], rows, gold)
        return self._batch(docs, rows, gold)

    def _prediction_batch(self, docs: List[Doc]) -> SpanBatch:
        """The batch of a prediction, which asks for nothing that training did not show."""
        if self.cfg["seen"] is None and self.model.has_dim("nI"):
            self._warn("seen", Warnings.SW06.format(name=self.name, width=self._max_width()))
        sizes = row_sizes(self.cfg, self._max_width())
        return self._batch(docs, self._rows(docs, **sizes))

    def _batch(self, docs: List[Doc], rows: Rows, gold: Optional[RowGold] = None) -> SpanBatch:
        cfg = self.cfg
        return SpanBatch(
            docs,
            rows,
            self.thresholds(),
            cfg["max_cells"],
            max_width=self._max_width(),
            max_reach=limit(cfg["seen"], REACH, cfg["width_factor"]),
            gold=gold,
        )

    def _rows(self, docs: List[Doc], window: int, overlap: int, join: Any = 0.0) -> Rows:
        return cut_rows(
            docs,
            window=window,
            overlap=overlap,
            pack=self.cfg["pack_sentences"],
            join_share=join,
            sentences=self.model.attrs["needs_sentences"],
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
    """Show the words of the training data to those layers of the components that ask for them."""
    models = [pipe.model for pipe in pipes if isinstance(getattr(pipe, "model", None), Model)]
    for node in (node for model in models for node in model.walk()):
        if "learn_words" in node.attrs:
            node.attrs["learn_words"](node, (eg.predicted for eg in get_examples()))


def reasons_of(counts: Any) -> Tuple[Dict[str, int], int]:
    """Why gold was lost and how often, and how much there was."""
    return {r: n for r, n in counts.items() if n and r != "total"}, counts["total"]
