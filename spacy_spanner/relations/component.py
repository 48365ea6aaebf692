"""The trainable component that finds relations, and the spans they link unless those are given."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Dict, Iterable, List, Optional, Sequence, Set, Tuple

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model

from ..batch import RelationPrediction, RowGold, Rows, SpanBatch, SpanPrediction
from ..errors import Errors, Rule, Warnings
from ..pipeline.base import BY_LABEL, LABELS, OUTPUTS, PROBABILITY, TablePipe, fits, reasons_of
from ..pipeline.gold import same_tokens
from ..pipeline.loading import are_labels, is_number
from ..pipeline.outputs import (
    calibrate,
    flatten_prediction,
    raw_thresholds,
    write_ents,
    write_spans,
)
from ..pipeline.seen import within_sentences
from ..pipeline.sentences import marked_starts
from ..pipeline.settings import Setting
from .gold import (
    Lost,
    RelationGold,
    entities_of,
    read_relation_gold,
    relation_row_gold,
    row_entities,
    span_table,
    write_relations,
)
from .records import get_relations, register_extensions
from .scorer import score_relation_table

ENTITIES = ("predict", "given")


class RelationPipe(TablePipe):
    """Finds labelled relations between entities and writes them to `doc._.relations`."""

    model_name = "relation_table"
    label_dims: ClassVar[Dict[str, str]] = {
        "labels": "nO",
        "relation_labels": "nR",
        "given_labels": "nG",
    }
    new_counts = Lost
    longest_sentence = 128  # relations are looked for inside sentences

    relation_threshold, relation_temperature = Setting(), Setting()
    relation_label_thresholds, symmetric = Setting(), Setting()
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
        relation_temperature: As `temperature`, of the scores of relations.
        symmetric: Labels of relations that hold in both directions. They are learned so, and written once,
            from the entity that begins first.
        seen_pairs: Only relations between entities whose labels a gold relation of the same label linked
            in training.
        learn_unlinked: Documents whose relations were never set still teach their entities.
        scorer: Scoring function.
        shared: Settings that all components have. Both ends of a relation must be in one row, see
            `window`.
        """
        own: Dict[str, Any] = {
            "relation_labels": [],
            "given_labels": [],  # of the entities in training, where others find them
            "label_pairs": [],  # labels of head, relation and tail of the gold relations
            "entities": entities,
            "output": output,
            "threshold": threshold,
            "relation_threshold": relation_threshold,
            "relation_label_thresholds": {},
            "relation_temperature": relation_temperature,
            "symmetric": list(symmetric),
            "seen_pairs": seen_pairs,
            "learn_unlinked": learn_unlinked,
        }
        super().__init__(vocab, model, name, own, **shared)
        self.scorer = scorer
        register_extensions()

    def configure(self, **values: Any) -> None:
        """Change settings. Those that cannot work are refused, with what to change."""
        if values.get("output", "") is None:
            entities = values.get("entities", self.cfg.get("entities"))
            values["output"] = "spans" if entities == "predict" else "ents"
        super().configure(**values)

    def _rules(self, cfg: Dict[str, Any]) -> List[Rule]:
        of_labels, warmth = cfg["relation_label_thresholds"], cfg["relation_temperature"]
        outputs = OUTPUTS if cfg["entities"] == "predict" else ("spans", "ents")
        return [
            ("entities", cfg["entities"] in ENTITIES, f"it must be one of {ENTITIES}"),
            ("output", cfg["output"] in outputs, f"it must be one of {outputs}"),
            ("relation_labels", are_labels(cfg["relation_labels"]), LABELS),
            ("symmetric", are_labels(cfg["symmetric"]), LABELS),
            ("given_labels", are_labels(cfg["given_labels"]), LABELS),
            (
                "label_pairs",
                are_label_pairs(cfg["label_pairs"]),
                "it must be a list of three labels each",
            ),
            ("relation_threshold", 0 <= cfg["relation_threshold"] <= 1, PROBABILITY),
            ("relation_label_thresholds", fits(of_labels, cfg["relation_labels"]), BY_LABEL),
            ("relation_temperature", is_number(warmth, least=1e-9), "it must be positive"),
            *super()._rules(cfg),
        ]

    @property
    def relation_labels(self) -> Tuple[str, ...]:
        return tuple(self.cfg["relation_labels"])

    @property
    def label_data(self) -> Dict[str, List[str]]:
        """What `spacy init labels` stores and `initialize(labels=)` takes."""
        own = {"entities": list(self.labels), "relations": list(self.relation_labels)}
        return own if self.predicts_entities else {**own, "given": list(self.cfg["given_labels"])}

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

    def predict(self, docs: Iterable[Doc]) -> RelationPrediction:
        """Find entities and relations without changing the documents."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            nothing = SpanPrediction(numpy.zeros((0, 4), "int64"), numpy.zeros(0, "float32"))
            return RelationPrediction(nothing, numpy.zeros((0, 6), "int64"), nothing.scores)
        batch = self._prediction_batch(docs)
        if not self.predicts_entities:
            given = [entities_of(doc, self.entities_key) for doc in docs]
            tables = [span_table(spans or [], self._given_ids()) for spans in given]
            batch.given = row_entities(tables, batch.rows)
            if all(spans is None for spans in given):
                key = self.entities_key
                source = "`doc.ents`" if key is None else f"`doc.spans[{key!r}]`"
                self._warn("given", Warnings.SW04.format(name=self.name, source=source))
        found = self.model.predict(batch)
        scores = calibrate(found.entities.scores, self.cfg["temperature"])
        entities = SpanPrediction(found.entities.spans, scores)
        scores = calibrate(found.scores, self.cfg["relation_temperature"])
        return RelationPrediction(entities, found.relations, scores)

    def set_annotations(self, docs: Iterable[Doc], prediction: RelationPrediction) -> None:
        """Write what `predict` found, also where it found nothing."""
        docs = list(docs)
        labels = [self.vocab.strings.add(label) for label in self.labels]
        entities = prediction.entities
        if self.writes_spans:
            write_spans(docs, entities, labels, self.cfg["spans_key"])
        if self.writes_ents:
            flat = flatten_prediction(entities, self.thresholds(), "best")
            write_ents(docs, flat, labels, self.cfg["ents_key"])
        allowed = {(h, r, t) for h, r, t in self.cfg["label_pairs"]}
        key, only = self.entities_key, allowed if self.cfg["seen_pairs"] else None
        write_relations(docs, prediction, self.relation_labels, key, only, self.cfg["symmetric"])

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Dict[str, List[str]]] = None,
    ) -> None:
        """Collect the labels, look at all gold once, and build the model.

        labels: Lists of labels under "entities" and "relations" and, where entities are given, their
            labels under "given", instead of collecting them.
        """
        validate_get_examples(get_examples, "RelationPipe.initialize")
        if labels is None:
            self._collect_labels(get_examples())
        else:
            for label in labels.get("entities", []):
                self.add_label(label)
            for label in labels.get("relations", []):
                self.add_relation_label(label)
            self.cfg["given_labels"] = list(labels.get("given", []))
        if not self.relation_labels or (self.predicts_entities and not self.labels):
            raise ValueError(SpacyErrors.E143.format(name=self.name))
        dims = {"nO": len(self.labels), "nR": len(self.relation_labels)}
        if not self.predicts_entities:
            dims["nG"] = len(self.cfg["given_labels"])
        self._build_model(get_examples, nlp, **dims)

    def _collect_labels(self, examples: Iterable[Example]) -> None:
        given: Set[str] = set()
        references = []
        for example in examples:
            reference = example.reference
            references.append(reference)
            for relation in get_relations(reference) or []:
                self.add_relation_label(relation.label)
                given.update((relation.head_label, relation.tail_label))
            for span in entities_of(reference, self.entities_key) or []:
                given.add(span.label_)
                if self.predicts_entities:
                    self.add_label(span.label_)
        if not self.predicts_entities:
            self.cfg["given_labels"] = sorted(given - {""})
        if not self.relation_labels:
            raise ValueError(Errors.S011.format(name=self.name))
        if self.predicts_entities and not self.labels:
            self._fail_without_gold(references, self.entities_key)

    def relation_thresholds(self) -> numpy.ndarray:
        """The threshold of each relation label.  (R,)"""
        own, common = self.cfg["relation_label_thresholds"], self.cfg["relation_threshold"]
        values = [own.get(label, common) for label in self.relation_labels]
        return numpy.array(values, dtype="float32")

    def head_thresholds(self) -> numpy.ndarray:
        """Those of the entity labels, then those of the relation labels.  (C + R,)"""
        of_relations = raw_thresholds(self.relation_thresholds(), self.cfg["relation_temperature"])
        return numpy.concatenate([super().head_thresholds(), of_relations])

    def _batch(self, docs: List[Doc], rows: Rows, gold: Optional[RowGold] = None) -> SpanBatch:
        if not within_sentences(self.cfg["seen"]):
            rows.sentence_starts = rows.marked = None
        return super()._batch(docs, rows, gold)

    def _marked(self, examples: List[Example]) -> List[Doc]:
        """As annotated: which pairs are negative depends on it."""
        return [
            eg.reference if marked_starts(eg.reference) and same_tokens(eg) else eg.predicted
            for eg in examples
        ]

    def _given_ids(self) -> Dict[str, int]:
        return {label: number for number, label in enumerate(self.cfg["given_labels"])}

    def _remember_pairs(self, examples: List[Example]) -> None:
        """Keep which labels the gold relations link."""
        stored = [relation for eg in examples for relation in get_relations(eg.reference) or []]
        known = {tuple(pair) for pair in self.cfg["label_pairs"]}
        found = {(r.head_label, r.label, r.tail_label) for r in stored}
        found |= {(tail, r, head) for head, r, tail in found if r in self.cfg["symmetric"]}
        if not found <= known:
            self.cfg["label_pairs"] = sorted(map(list, found | known))

    def _read_gold(self, examples: List[Example], counts: Lost) -> List[Optional[RelationGold]]:
        self._remember_pairs(examples)
        numbers = {self.vocab.strings[label]: number for number, label in enumerate(self.labels)}
        return [
            read_relation_gold(
                example,
                spans_key=self.entities_key,
                label_ids=numbers if self.predicts_entities else None,
                relation_ids={label: i for i, label in enumerate(self.relation_labels)},
                given_ids=self._given_ids(),
                learn_unlinked=self.cfg["learn_unlinked"],
                symmetric=self.cfg["symmetric"],
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


def are_label_pairs(value: Any) -> bool:
    """Whether it is a list of the labels of a head, a relation and a tail each."""
    return isinstance(value, list) and all(
        isinstance(own, list) and len(own) == 3 and all(isinstance(label, str) for label in own)
        for own in value
    )
