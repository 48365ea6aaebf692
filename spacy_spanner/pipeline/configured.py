"""A component's settings and labels: made from a config, changed as attributes, stored and loaded."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Iterable, List, Optional, Set, Tuple, Union

import numpy
from spacy import util
from spacy.errors import Errors as SpacyErrors
from spacy.pipeline import TrainablePipe
from spacy.vocab import Vocab
from thinc.api import Model

from ..batch import SpanBatch
from ..errors import Errors, Rule, check
from ..span_scores import register_extensions
from .loading import check_label_dims, load_model, load_settings, stored_bytes
from .scaling import Scaling
from .seen import UNKNOWN
from .settings import Setting, plain, shared_rules, type_rules


class ConfiguredPipe(TrainablePipe):
    """The part of a component that knows its settings and labels, but neither documents nor gold."""

    model_name: str  # name of the models that fit
    label_dims: ClassVar[Dict[str, str]]  # from lists of labels in `cfg` to dimensions of the model
    cfg: Dict[str, Any]
    _warned: Set[str]

    output, threshold = Setting(), Setting()
    temperature, bias = Setting(), Setting()
    label_thresholds, label_bias = Setting(), Setting()
    spans_key, ents_key = Setting(), Setting()
    window, overlap, pack_sentences, join_training = Setting(), Setting(), Setting(), Setting()
    width_factor, max_cells = Setting(), Setting()

    def __init__(
        self,
        vocab: Vocab,
        model: Model[SpanBatch, Any],
        name: str,
        settings: Dict[str, Any],
        *,
        temperature: float = 1.0,
        bias: float = 0.0,
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
        settings: Those of the subclass, and what else it keeps in `cfg`.
        temperature: Divides the log-odds of every score of a span; over 1 it makes a model less sure. The
            thresholds are compared with the result.
        bias: Added to the log-odds of every score after that; over 0 it makes a model more sure.
        spans_key: Span group of all spans, with their confidences.
        ents_key: Span group of the flat entities, with their confidences, wherever ents are written.
        window: Most tokens that are scored as one row.
        overlap: Tokens that rows share where a document without sentence boundaries is cut.
        pack_sentences: Join sentences into rows; otherwise each sentence is a row, found by rules
            where none are marked.
        join_training: Share of the training batches whose documents are joined to rows of up to
            `window` tokens, as sentences of a long document are in prediction; 0 for none. Only where
            sentences are packed.
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
            "label_bias": {},
            "temperature": temperature,
            "bias": bias,
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
        self.configure(**settings, **shared)
        register_extensions()

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
        """Rules of the settings; a subclass adds to them."""
        return shared_rules(cfg)

    @property
    def key(self) -> str:
        """`spans_key`, under the name that it has in spaCy's `spancat`."""
        return self.spans_key

    @key.setter
    def key(self, value: str) -> None:
        self.spans_key = value

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of spans that the component can predict."""
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

    def thresholds(self, prefix: str = "") -> numpy.ndarray:
        """The threshold of each label.  (C,)

        prefix: Of the settings and labels, "relation_" for those of relations."""
        common = self.cfg[f"{prefix}threshold"]
        return numpy.array(self._by_label(prefix, "label_thresholds", common), dtype="float32")

    def head_thresholds(self, prefix: str = "") -> numpy.ndarray:
        """The same for the uncalibrated scores of the head.  (C,)"""
        return self.scaling(prefix).raw_thresholds(self.thresholds(prefix))

    def scaling(self, prefix: str = "") -> Scaling:
        """What makes confidences of the scores of the head."""
        temperature, bias = self.cfg[f"{prefix}temperature"], self.cfg[f"{prefix}bias"]
        return Scaling(temperature, bias, tuple(self._by_label(prefix, "label_bias", 0.0)))

    def _by_label(self, prefix: str, setting: str, default: float) -> List[float]:
        """The value of each label in a setting of single labels."""
        values = self.cfg[prefix + setting]
        return [values.get(label, default) for label in self.cfg[f"{prefix}labels"]]

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> ConfiguredPipe:
        """Load the component from a folder; what was changed or damaged is refused."""
        return self._load(util.from_disk, Path(path), exclude, stored_bytes)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> ConfiguredPipe:
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
        check_label_dims(self.name, self.cfg, self.model, self.label_dims)
        return self

    def _warn(self, kind: str, message: str) -> None:
        """Each kind of warning once."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, stacklevel=4)
