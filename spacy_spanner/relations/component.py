"""The trainable component that finds relations, and the spans they link unless those are given."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Set

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples

from ..batch import RelationPrediction, RowGold, Rows, SpanBatch, SpanPrediction
from ..errors import Errors, Warnings
from ..pipeline.gold import same_tokens
from ..pipeline.outputs import trim
from ..pipeline.seen import within_sentences
from ..sentences import marked_starts
from .configured import ConfiguredRelationPipe
from .gold import (
    Lost,
    RelationGold,
    count_other_labels,
    entities_of,
    read_relation_gold,
    relation_row_gold,
    row_entities,
    span_table,
    write_relations,
)
from .records import get_relations


class RelationPipe(ConfiguredRelationPipe):
    """Finds labelled relations between entities and writes them to `doc._.relations`."""

    def predict(self, docs: Iterable[Doc]) -> RelationPrediction:
        """Find entities and relations without changing the documents."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            nothing = SpanPrediction(numpy.zeros((0, 4), "int64"), numpy.zeros(0, "float32"))
            return RelationPrediction(nothing, numpy.zeros((0, 6), "int64"), nothing.scores)
        self._check_encoded(docs)
        batch = self._prediction_batch(docs)
        if not self.predicts_entities:
            given = [entities_of(doc, self.gold_key) for doc in docs]
            tables = [span_table(spans or [], self._given_ids()) for spans in given]
            batch.given = row_entities(tables, batch.rows)
            if all(spans is None for spans in given):
                key = self.gold_key
                source = "`doc.ents`" if key is None else f"`doc.spans[{key!r}]`"
                self._warn("given", Warnings.SW04.format(name=self.name, source=source))
        found = self.model.predict(batch)
        spans, relations = found.entities.spans, found.relations
        span_scores, scores = found.entities.scores, found.scores
        if self.predicts_entities:
            spans, kept = trim(docs, spans, span_scores)
            span_scores = span_scores[kept]
            relations, kept = trim(docs, relations, scores)
            scores = scores[kept]
        entities = SpanPrediction(spans, self.scaling().calibrate(span_scores, spans[:, 3]))
        scores = self.scaling("relation_").calibrate(scores, relations[:, 5])
        return RelationPrediction(entities, relations, scores)

    def set_annotations(self, docs: Iterable[Doc], prediction: RelationPrediction) -> None:
        """Write what `predict` found, also where it found nothing."""
        docs = list(docs)
        self._write_entities(docs, prediction.entities, "best")
        allowed = {(h, r, t) for h, r, t in self.cfg["label_pairs"]}
        key, only = self.gold_key, allowed if self.cfg["seen_pairs"] else None
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
        unknown = [label for label in self.symmetric if label not in self.relation_labels]
        if unknown:
            values = {"labels": unknown, "known": list(self.relation_labels)}
            self._warn("symmetric", Warnings.SW24.format(name=self.name, **values))
        dims = {"nO": len(self.labels), "nR": len(self.relation_labels)}
        if not self.predicts_entities:
            dims["nG"] = len(self.cfg["given_labels"])
        self._build_model(get_examples, nlp, **dims)

    def _collect_labels(self, examples: Iterable[Example]) -> None:
        given: Set[str] = set()
        references = []
        n_relations = n_other = 0
        for example in examples:
            reference = example.reference
            references.append(reference)
            entities = entities_of(reference, self.gold_key) or []
            stored = get_relations(reference) or []
            n_relations += len(stored)
            n_other += count_other_labels(stored, entities)
            for relation in stored:
                self.add_relation_label(relation.label)
                given.update((relation.head_label, relation.tail_label))
            for span in entities:
                given.add(span.label_)
                if self.predicts_entities:
                    self.add_label(span.label_)
        if n_other:
            values = {"name": self.name, "lost": n_other, "total": n_relations}
            self._warn("labels", Warnings.SW25.format(**values))
        if not self.predicts_entities:
            self.cfg["given_labels"] = sorted(given - {""})
        if not self.relation_labels:
            raise ValueError(Errors.S011.format(name=self.name))
        if self.predicts_entities and not self.labels:
            self._fail_without_gold(references, self.gold_key)

    def _batch(self, docs: List[Doc], rows: Rows, gold: Optional[RowGold] = None) -> SpanBatch:
        if not within_sentences(self.cfg["seen"]):
            rows.sentence_starts = rows.marked = None
        return super()._batch(docs, rows, gold)

    def _marked(self, examples: List[Example]) -> List[Doc]:
        """As annotated, because which pairs are negative depends on it; but in half of the batches as in
        prediction, if the model does not learn boundaries: texts also come without them."""
        if not self.model.attrs["learns_boundaries"] and numpy.random.random() < 0.5:
            return super()._marked(examples)
        return [
            eg.reference if marked_starts(eg.reference) and same_tokens(eg) else eg.predicted
            for eg in examples
        ]

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
                spans_key=self.gold_key,
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
        self._warn_lost(counts.spans, Warnings.SW01)
        self._warn_lost(counts.relations, Warnings.SW03)
