"""Settings, labels and thresholds of the relation component."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Dict, List, Optional, Sequence, Tuple

import numpy
from spacy.vocab import Vocab
from thinc.api import Model

from ..batch import SpanBatch
from ..errors import Errors, Rule
from ..pipeline.base import TablePipe
from ..pipeline.loading import MOST_BIAS, are_labels, is_number
from ..pipeline.settings import (
    BIAS,
    LABELS,
    OUTPUTS,
    PROBABILITY,
    Setting,
    label_rules,
)
from .gold import Lost
from .records import register_extensions
from .scorer import score_relation_table

ENTITIES = ("predict", "given")


class ConfiguredRelationPipe(TablePipe):
    """Base of the relation component. The subclass predicts and learns."""

    model_name = "relation_table"
    label_dims: ClassVar[Dict[str, str]] = {
        "labels": "nO",
        "relation_labels": "nR",
        "given_labels": "nG",
    }
    new_counts = Lost
    prefixes = ("", "relation_")

    entities_key = TablePipe.gold_key  # its former name here

    relation_threshold, relation_temperature, relation_bias = Setting(), Setting(), Setting()
    relation_label_thresholds, relation_label_bias = Setting(), Setting()
    symmetric = Setting()
    seen_pairs, learn_unlinked = Setting(), Setting()

    def __init__(
        self,
        vocab: Vocab,
        model: Model[SpanBatch, Any],
        name: str,
        *,
        entities: str = "predict",
        output: Optional[str] = None,
        threshold: float = 0.5,
        relation_threshold: float = 0.5,
        relation_temperature: float = 1.0,
        relation_bias: float = 0.0,
        symmetric: Sequence[str] = (),
        seen_pairs: bool = False,
        learn_unlinked: bool = True,
        scorer: Optional[Callable] = score_relation_table,
        **shared: Any,
    ):
        """
        vocab: The shared vocabulary.
        model: Made by `spacy-spanner.RelationPointer.v1` or `spacy-spanner.RelationClassifier.v1`.
        name: The component's name in the pipeline.
        entities: "predict" learns and finds entities too; "given" links those that another component
            wrote before.
        output: Where entities are: "spans" for `doc.spans[spans_key]`, "ents" for `doc.ents`, and
            where they are predicted "both". Without it "spans" if they are predicted, else "ents".
        threshold: An entity is kept if its probability is over it.
        relation_threshold: A relation is kept if its probability is over it.
        relation_temperature, relation_bias: As `temperature` and `bias`, of the scores of relations.
        symmetric: Labels of relations that hold in both directions. They are learned so, and written once,
            from the entity that begins first.
        seen_pairs: Only relations between entities whose labels a gold relation of the same label linked
            in training.
        learn_unlinked: Documents whose relations were never set still teach their entities.
        scorer: Scoring function.
        shared: Settings that all components have. Both ends of a relation must be in one row, see
            `window`.
        """
        settings: Dict[str, Any] = {
            "relation_labels": [],
            "given_labels": [],  # of the entities in training, where others find them
            "label_pairs": [],  # labels of head, relation and tail of the gold relations
            "entities": entities,
            "output": output,
            "threshold": threshold,
            "relation_threshold": relation_threshold,
            "relation_label_thresholds": {},
            "relation_label_bias": {},
            "relation_temperature": relation_temperature,
            "relation_bias": relation_bias,
            "symmetric": list(symmetric),
            "seen_pairs": seen_pairs,
            "learn_unlinked": learn_unlinked,
        }
        super().__init__(vocab, model, name, settings, **shared)
        self.scorer = scorer
        register_extensions()

    def configure(self, **values: Any) -> None:
        """Change settings. Those that cannot work are refused, with what to change."""
        if values.get("output", "") is None:
            entities = values.get("entities", self.cfg.get("entities"))
            values["output"] = "spans" if entities == "predict" else "ents"
        super().configure(**values)

    def _rules(self, cfg: Dict[str, Any]) -> List[Rule]:
        labels, warmth, bias = (
            cfg[f"relation_{name}"] for name in ("labels", "temperature", "bias")
        )
        outputs = OUTPUTS if cfg["entities"] == "predict" else ("spans", "ents")
        return [
            ("entities", cfg["entities"] in ENTITIES, f"it must be one of {ENTITIES}"),
            ("output", cfg["output"] in outputs, f"it must be one of {outputs}"),
            ("relation_labels", are_labels(labels), LABELS),
            ("symmetric", are_labels(cfg["symmetric"]), LABELS),
            ("given_labels", are_labels(cfg["given_labels"]), LABELS),
            (
                "label_pairs",
                are_label_pairs(cfg["label_pairs"]),
                "it must be a list of three labels each",
            ),
            ("relation_threshold", 0 <= cfg["relation_threshold"] <= 1, PROBABILITY),
            *label_rules(cfg, "relation_"),
            ("relation_temperature", is_number(warmth, least=1e-9), "it must be positive"),
            ("relation_bias", is_number(bias, least=-MOST_BIAS, most=MOST_BIAS), BIAS),
            *super()._rules(cfg),
        ]

    @property
    def entities(self) -> str:
        """Either "predict" or "given"; no setting that can be changed, as the model depends on it."""
        return self.cfg["entities"]

    @property
    def relation_labels(self) -> Tuple[str, ...]:
        return tuple(self.cfg["relation_labels"])

    @property
    def label_data(self) -> Dict[str, List[str]]:
        """What `spacy init labels` stores and `initialize(labels=)` takes."""
        labels = {"entities": list(self.labels), "relations": list(self.relation_labels)}
        return (
            labels
            if self.predicts_entities
            else {**labels, "given": list(self.cfg["given_labels"])}
        )

    @property
    def predicts_entities(self) -> bool:
        return self.entities == "predict"

    def add_label(self, label: str) -> int:
        """Add a label of entities. A trained model keeps what it learned; the new label has to be
        learned.

        RETURNS: 1, or 0 if the label is already there.
        """
        if not self.predicts_entities:
            raise ValueError(Errors.S012.format(name=self.name))
        return self._add_label(label)

    def add_relation_label(self, label: str) -> int:
        """As `add_label`, for relations."""
        return self._add_label(label, "relation_labels", "nR")

    def relation_thresholds(self) -> numpy.ndarray:
        """The threshold of each relation label.  (R,)"""
        return self.thresholds("relation_")

    def _given_ids(self) -> Dict[str, int]:
        return {label: number for number, label in enumerate(self.cfg["given_labels"])}


def are_label_pairs(value: Any) -> bool:
    """Whether it is a list of the labels of a head, a relation and a tail each."""
    return isinstance(value, list) and all(
        isinstance(triple, list)
        and len(triple) == 3
        and all(isinstance(label, str) for label in triple)
        for triple in value
    )
