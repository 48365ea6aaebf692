"""Thresholds of a relation component: those of its entities, then those of its relations."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Iterator, List, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..batch import SpanPrediction
from ..corpus.pairs import DocPair
from ..relations import keyed_relations
from ..relations.component import RelationPipe
from .component import (
    Fit,
    changed_settings,
    fit_candidates,
    fit_spans,
    lowered_threshold,
    only_before,
    settings_for,
)
from .thresholds import Candidates

PREFIX = "relation_"  # of the settings for relations
# Entities found for each gold one. A model that has learned nothing yet has its best F with more, and
# the pairs of them all would fill the memory.
MOST_FOUND = 3


def fit_relations(
    nlp: Language, name: str, pipe: RelationPipe, pairs: List[DocPair], **options: Any
) -> Dict[str, Fit]:
    """Fits of entities, where the component finds them, and of relations, by the prefix of their
    settings. Neither F becomes lower: new thresholds of entities that cost relations are not taken."""
    docs = [(doc.copy(), gold) for doc, gold in pairs]
    found = fit_candidates(pipe, relation_candidates(nlp, name, pipe, docs), PREFIX, **options)
    if not pipe.predicts_entities:
        return {PREFIX: found}
    entities = fit_spans(nlp, name, pipe, pairs, **options)
    kept = {"": entities._replace(best=entities.now), PREFIX: found}
    counts = entities.best.counts
    if counts.tp + counts.fp > MOST_FOUND * max(entities.candidates.n_gold, 1):
        return kept
    with changed_settings(pipe, settings_for(pipe, entities.best)):
        candidates = relation_candidates(nlp, name, pipe, docs)
        again = fit_candidates(pipe, candidates, PREFIX, **options)
    is_worse = again.best.counts.f_score < found.now.counts.f_score
    return kept if is_worse else {"": entities, PREFIX: again._replace(now=found.now)}


def relation_candidates(
    nlp: Language, name: str, pipe: RelationPipe, pairs: List[DocPair]
) -> Candidates:
    """Every relation that the component would write with the lowest threshold. Documents whose
    relations are not annotated are left out."""
    keyed = partial(keyed_relations, symmetric=pipe.cfg["symmetric"])
    annotated = [(doc, keyed(gold)) for doc, gold in pairs if gold is not None]
    golds = [keys for _, keys in annotated if keys is not None]
    docs = [doc for doc, keys in annotated if keys is not None]
    numbers = {label: number for number, label in enumerate(pipe.relation_labels)}
    rows: List[Tuple[int, int, int, int]] = []  # document, starts of head and tail, label
    scores, correct = [], []
    with lowered_threshold(pipe, PREFIX) as floor, only_before(nlp, name):
        for number, doc in enumerate(predicted(nlp, pipe, docs)):
            for key, relation in (keyed(doc) or {}).items():
                if relation.label not in numbers:  # of another component
                    continue
                label = numbers[relation.label]
                rows.append((number, relation.head.start, relation.tail.start, label))
                scores.append(relation.score)
                correct.append(key in golds[number])
    labels = [label for keys in golds for _, _, label in keys]
    return Candidates(
        SpanPrediction(
            numpy.array(rows, dtype="int64").reshape(-1, 4), numpy.array(scores, dtype="float32")
        ),
        numpy.array(correct, dtype=bool),
        numpy.array([labels.count(label) for label in pipe.relation_labels], dtype="int64"),
        len(labels),
        numpy.full(len(pipe.relation_labels), floor),
    )


def predicted(nlp: Language, pipe: RelationPipe, docs: List[Doc]) -> Iterator[Doc]:
    """Copies of documents with what a component writes to them."""
    for batch in minibatch(nlp.pipe(docs), nlp.batch_size):
        copies = [doc.copy() for doc in batch]
        pipe.set_annotations(copies, pipe.predict(batch))
        yield from copies
