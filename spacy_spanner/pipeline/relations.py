"""The trainable component that finds relations, and the spans they link unless those are given."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Dict, Iterable, List, Optional, Tuple

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model

from ..batch import RelationPrediction, RowGold, Rows, SpanBatch, SpanPrediction
from ..errors import Errors, Rule, Warnings
from ..relations import get_relations, register_extensions
from ..scorers import score_relation_table
from .base import LABELS, OUTPUTS, PROBABILITY, TablePipe, reasons_of
from .loading import are_labels, is_number
from .outputs import flatten_prediction, write_ents, write_spans
from .relation_gold import (
    Lost,
    RelationGold,
    entities_of,
    read_relation_gold,
    relation_row_gold,
    row_entities,
    write_relations,
)
from .seen import within_sentences

ENTITIES = ("predict", "given")


class RelationPipe(TablePipe):
    """Finds labelled relations between entities and writes them to `doc._.relations`."""

    model_name = "relation_table"
    label_dims: ClassVar[Dict[str, str]] = {"labels": "nO", "relation_labels": "nR"}
    new_counts = Lost

    def __init__(
        self,
        vocab: Vocab,
        model: Model[SpanBatch, Any],
        name: str,
        *,
        entities: str = "predict",
        output: Optional[str] = None,
        spans_key: str = "sc",
        ents_key: str = "ents",
        threshold: float = 0.5,
        relation_threshold: float = 0.5,
        window: int = 256,
        overlap: int = 64,
        pack_sentences: bool = True,
        join_training: float = 0.5,
        width_factor: Optional[float] = 2.0,
        max_cells: int = 4_000_000,
        scorer: Optional[Callable] = score_relation_table,
    ):
        """
        vocab: The shared vocabulary.
        model: Made by `spacy-spanner.RelationPointer.v1`.
        name: The component's name in the pipeline.
        entities: "predict" learns and finds entities too; "given" links those that another component
            wrote before.
        output: Where entities are: "spans" for `doc.spans[spans_key]`, "ents" for `doc.ents`, and
            where they are predicted "both". Without it "spans" if they are predicted, else "ents".
        spans_key: Span group of the entities.
        ents_key: Span group of flat entities with their confidences, where `doc.ents` is written.
        threshold: An entity is kept if its probability is over it.
        relation_threshold: A relation is kept if its probability is over it.
        window, overlap, pack_sentences, join_training, max_cells: As for the entity components. Both
            ends of a relation must be in one row.
        width_factor: Widest entity, and longest way from one end of a relation to the other, in
            multiples of the largest in the training data; None for no bound.
        scorer: Scoring function.
        """
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: Dict[str, Any] = {
            "labels": [],
            "relation_labels": [],
            "entities": entities,
            "output": output or ("spans" if entities == "predict" else "ents"),
            "spans_key": spans_key,
            "ents_key": ents_key,
            "threshold": threshold,
            "relation_threshold": relation_threshold,
            "window": window,
            "overlap": overlap,
            "pack_sentences": pack_sentences,
            "join_training": join_training,
            "width_factor": width_factor,
            "seen": None,
            "max_cells": max_cells,
        }
        self._warned = set()
        self._check_settings(self.cfg)
        register_extensions()

    def _rules(self, cfg: Dict[str, Any]) -> List[Rule]:
        outputs = OUTPUTS if cfg["entities"] == "predict" else ("spans", "ents")
        return [
            ("labels", are_labels(cfg["labels"]), LABELS),
            ("relation_labels", are_labels(cfg["relation_labels"]), LABELS),
            ("entities", cfg["entities"] in ENTITIES, f"it must be one of {ENTITIES}"),
            ("output", cfg["output"] in outputs, f"it must be one of {outputs}"),
            ("threshold", is_number(cfg["threshold"], least=0, most=1), PROBABILITY),
            (
                "relation_threshold",
                is_number(cfg["relation_threshold"], least=0, most=1),
                PROBABILITY,
            ),
        ]

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of entities; none where entities are given."""
        return tuple(self.cfg["labels"])

    @property
    def relation_labels(self) -> Tuple[str, ...]:
        return tuple(self.cfg["relation_labels"])

    @property
    def label_data(self) -> Dict[str, List[str]]:
        """What `spacy init labels` stores and `initialize(labels=)` takes."""
        return {"entities": list(self.labels), "relations": list(self.relation_labels)}

    @property
    def predicts_entities(self) -> bool:
        return self.cfg["entities"] == "predict"

    @property
    def writes_ents(self) -> bool:
        return self.predicts_entities and self.cfg["output"] in ("ents", "both")

    @property
    def writes_spans(self) -> bool:
        return self.predicts_entities and self.cfg["output"] in ("spans", "both")

    @property
    def entities_key(self) -> Optional[str]:
        """The span group the entities are in, or None where they are `doc.ents`."""
        return None if self.cfg["output"] == "ents" else self.cfg["spans_key"]

    def add_label(self, label: str) -> int:
        """Add a label of entities before the model is initialized.

        RETURNS: 1, or 0 if the label is already there.
        """
        if not self.predicts_entities:
            raise ValueError(Errors.S012.format(name=self.name))
        return self._add(label, "labels", "nO")

    def add_relation_label(self, label: str) -> int:
        """As `add_label`, for relations."""
        return self._add(label, "relation_labels", "nR")

    def _add(self, label: str, kind: str, dim: str) -> int:
        self._check_label(label)
        if label in self.cfg[kind]:
            return 0
        if self.model.has_dim(dim):
            raise ValueError(SpacyErrors.E922.format(name=self.name, nO=self.model.get_dim(dim)))
        self.cfg[kind].append(label)
        self.vocab.strings.add(label)
        return 1

    def predict(self, docs: Iterable[Doc]) -> RelationPrediction:
        """Find entities and relations without changing the documents."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            nothing = SpanPrediction(numpy.zeros((0, 4), "int64"), numpy.zeros(0, "float32"))
            return RelationPrediction(nothing, numpy.zeros((0, 6), "int64"), nothing.scores)
        batch = self._prediction_batch(docs)
        if not self.predicts_entities:
            given = [entities_of(doc, self.entities_key) for doc in docs]
            batch.given = row_entities(given, batch.rows)
            if all(spans is None for spans in given):
                key = self.entities_key
                source = "`doc.ents`" if key is None else f"`doc.spans[{key!r}]`"
                self._warn("given", Warnings.SW04.format(name=self.name, source=source))
        return self.model.predict(batch)

    def set_annotations(self, docs: Iterable[Doc], prediction: RelationPrediction) -> None:
        """Write what `predict` found, also where it found nothing."""
        docs = list(docs)
        labels = [self.vocab.strings.add(label) for label in self.labels]
        entities = prediction.entities
        if self.writes_spans:
            write_spans(docs, entities, labels, self.cfg["spans_key"])
        if self.writes_ents:
            thresholds = self.thresholds()[: len(labels)]
            flat = flatten_prediction(entities, thresholds, "best")
            write_ents(docs, flat, labels, self.cfg["ents_key"])
        write_relations(docs, prediction, self.relation_labels, self.entities_key)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Dict[str, List[str]]] = None,
    ) -> None:
        """Collect the labels, look at all gold once, and build the model.

        labels: Lists of labels under "entities" and "relations", instead of collecting them.
        """
        validate_get_examples(get_examples, "RelationPipe.initialize")
        if labels is None:
            self._collect_labels(get_examples())
        else:
            for label in labels.get("entities", []):
                self.add_label(label)
            for label in labels.get("relations", []):
                self.add_relation_label(label)
        if not self.relation_labels or (self.predicts_entities and not self.labels):
            raise ValueError(SpacyErrors.E143.format(name=self.name))
        dims = {"nO": len(self.labels), "nR": len(self.relation_labels)}
        self._build_model(get_examples, nlp, **dims)

    def _collect_labels(self, examples: Iterable[Example]) -> None:
        references = []
        for example in examples:
            reference = example.reference
            references.append(reference)
            for relation in get_relations(reference) or []:
                self.add_relation_label(relation.label)
            if self.predicts_entities:
                for span in entities_of(reference, self.entities_key) or []:
                    self.add_label(span.label_)
        if not self.relation_labels:
            raise ValueError(Errors.S011.format(name=self.name))
        if self.predicts_entities and not self.labels:
            self._fail_without_gold(references, self.entities_key)

    def thresholds(self) -> numpy.ndarray:
        """The thresholds of the entity labels, then those of the relation labels.  (C + R,)"""
        values = [self.cfg["threshold"]] * len(self.labels)
        values += [self.cfg["relation_threshold"]] * len(self.relation_labels)
        return numpy.array(values, dtype="float32")

    def _batch(self, docs: List[Doc], rows: Rows, gold: Optional[RowGold] = None) -> SpanBatch:
        if not within_sentences(self.cfg["seen"]):
            rows.sentence_starts = None
        return super()._batch(docs, rows, gold)

    def _read_gold(self, examples: List[Example], counts: Lost) -> List[Optional[RelationGold]]:
        numbers = {self.vocab.strings[label]: number for number, label in enumerate(self.labels)}
        return [
            read_relation_gold(
                example,
                spans_key=self.entities_key,
                label_ids=numbers if self.predicts_entities else None,
                relation_ids={label: i for i, label in enumerate(self.relation_labels)},
                counts=counts,
            )
            for example in examples
        ]

    def _row_gold(self, golds: List[Any], rows: Rows, counts: Lost) -> RowGold:
        max_width = self.model.attrs["max_width"]
        return relation_row_gold(golds, rows, max_width=max_width, counts=counts)

    def _report(self, counts: Lost) -> None:
        """Warn once of gold that cannot be learned, with numbers."""
        for lost, message in [(counts.spans, Warnings.SW01), (counts.relations, Warnings.SW03)]:
            reasons, total = reasons_of(lost)
            told = "; ".join(f"{n} {reason}" for reason, n in reasons.items())
            values = {"lost": sum(reasons.values()), "total": total, "reasons": told}
            if reasons:
                self._warn(message, message.format(name=self.name, **values))
