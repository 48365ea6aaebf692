"""Gold relations as row tables, the entities to link, and found relations back to documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Collection, Dict, List, Optional, Sequence, Set, Tuple

import numpy
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..batch import END, START, RelationPrediction, RowGold, Rows
from ..errors import Errors
from ..pipeline.gold import (
    MISALIGNED,
    UNKNOWN_LABEL,
    DocGold,
    align,
    on_line,
    read_gold,
    row_gold,
    row_masks,
    same_tokens,
    spans_in_rows,
    touching,
)
from ..span_scores import group_scores
from .records import StoredRelation, get_relations, set_relations

# Why a gold relation cannot be learned, in the words of the warning.
APART = "with ends too far apart for one row (see `window` and `overlap`)"
NO_ENTITY = "with an end that is no gold entity"

LabelPair = Tuple[str, str, str]  # labels of head, relation and tail


@dataclass
class Lost:
    """How much gold there is in `total`, and for which reasons some of it is lost."""

    spans: Counter = field(default_factory=Counter)
    relations: Counter = field(default_factory=Counter)


@dataclass
class RelationGold:
    """The annotation of one document in the tokens of its prediction."""

    entities: DocGold
    relations: numpy.ndarray  # (m, 5) int64: head start, head end, tail start, tail end, label
    ends: numpy.ndarray  # (n, 3) int64: start, end, label (-1: unknown) of spans that may be linked
    is_linked: bool = True  # whether its relations are annotated


def read_relation_gold(
    example: Example,
    *,
    spans_key: Optional[str],
    label_ids: Optional[Dict[int, int]],
    relation_ids: Dict[str, int],
    given_ids: Dict[str, int],
    learn_unlinked: bool,
    symmetric: Collection[str],
    counts: Lost,
) -> Optional[RelationGold]:
    """The gold of one example.

    spans_key: Span group of the gold entities; None where they are `reference.ents`.
    label_ids: From an entity label's hash to its number; None where entities are not learned.
    relation_ids: From a relation label to its number.
    given_ids: From a label of given entities to its number.
    symmetric: Relation labels that hold in both directions.
    learn_unlinked: Entities are learned also where there is no annotation of relations.
    RETURNS: None if the example has no annotation of relations, or of the entities to be learned.
    """
    stored = get_relations(example.reference)
    if stored is None and (label_ids is None or not learn_unlinked):
        return None
    entities: Optional[DocGold] = DocGold(numpy.zeros((0, 3), dtype="int64"), None)
    if label_ids is not None:
        entities = read_gold(example, spans_key=spans_key, label_ids=label_ids, counts=counts.spans)
    if entities is None:
        return None
    if stored is None:
        no_relations = numpy.zeros((0, 5), dtype="int64")
        return RelationGold(entities, no_relations, entities.spans, is_linked=False)
    counts.relations["total"] += len(stored)
    known = numpy.ones(len(example.predicted), dtype=bool)
    same = same_tokens(example)
    table = set()
    for relation in stored:
        if not relation.label:
            raise ValueError(
                Errors.S126.format(place=f"of a gold relation in {example.text[:50]!r}")
            )
        head: Optional[Tuple[int, int]] = (relation.head_start, relation.head_end)
        tail: Optional[Tuple[int, int]] = (relation.tail_start, relation.tail_end)
        if not same:
            head = align_end(example, relation.head_start, relation.head_end, known)
            tail = align_end(example, relation.tail_start, relation.tail_end, known)
        if head is None or tail is None:
            counts.relations[MISALIGNED] += 1
        elif relation.label not in relation_ids:
            counts.relations[UNKNOWN_LABEL] += 1
        else:
            table.add((*head, *tail, relation_ids[relation.label]))
            if relation.label in symmetric:
                table.add((*tail, *head, relation_ids[relation.label]))
    if label_ids is not None:
        spans = set(map(tuple, entities.spans[:, :2].tolist()))
        counts.relations[NO_ENTITY] += sum(not {r[:2], r[2:4]} <= spans for r in table)
    if not known.all():
        entities.known = known if entities.known is None else known & entities.known
    relations = numpy.array(sorted(table), dtype="int64").reshape(-1, 5)
    ends = [entities.spans, without_labels(relations[:, :2]), without_labels(relations[:, 2:4])]
    if label_ids is None:
        ends.append(given_entities(example, spans_key, given_ids))
    return RelationGold(entities, relations, numpy.concatenate(ends))


def without_labels(spans: numpy.ndarray) -> numpy.ndarray:
    """Spans (n, 2) with a label that is not known.  (n, 3)"""
    return numpy.pad(spans, ((0, 0), (0, 1)), constant_values=-1)


def given_entities(
    example: Example, spans_key: Optional[str], label_ids: Dict[str, int]
) -> numpy.ndarray:
    """The entities between which links are learned where others find them: those that are there,
    as a component before this one annotates in training, otherwise the gold entities.  (n, 3)"""
    spans = entities_of(example.predicted, spans_key)
    if spans is None:
        gold = entities_of(example.reference, spans_key) or []
        spans = example.get_aligned_spans_y2x(gold, allow_overlap=True)
    return span_table(spans, label_ids)


def span_table(spans: Sequence[Span], label_ids: Dict[str, int]) -> numpy.ndarray:
    """Start, end and number of the label of spans, -1 for other labels.  (n, 3)"""
    rows = [(span.start, span.end, label_ids.get(span.label_, -1)) for span in spans]
    return numpy.array(rows, dtype="int64").reshape(-1, 3)


def count_other_labels(relations: Sequence[StoredRelation], entities: Sequence[Span]) -> int:
    """How many relations have an end with another label than all entities of the same tokens."""
    labels: Dict[Tuple[int, int], Set[str]] = {}
    for span in entities:
        labels.setdefault((span.start, span.end), set()).add(span.label_)
    return sum(
        any(
            label not in labels.get((start, end), {label})
            for start, end, label in (relation[:3], relation[3:6])
        )
        for relation in relations
    )


def align_end(
    example: Example, start: int, end: int, known: numpy.ndarray
) -> Optional[Tuple[int, int]]:
    """`align` for the tokens of an end of a relation."""
    aligned = align(example, example.reference[start:end], known)
    return None if aligned is None else (aligned.start, aligned.end)


def relation_row_gold(
    golds: Sequence[Optional[RelationGold]],
    rows: Rows,
    *,
    max_width: Optional[int],
    counts: Lost,
) -> RowGold:
    """The gold of documents in the coordinates of their rows. Rows must be annotated."""
    entities = [None if gold is None else gold.entities for gold in golds]
    gold = row_gold(entities, rows, levels=None, max_width=max_width, counts=counts.spans)
    gold.relations = row_relations(golds, rows, counts.relations)
    gold.ends = row_entities(
        [None if doc_gold is None else doc_gold.ends for doc_gold in golds], rows
    )
    if any(doc_gold is not None and not doc_gold.is_linked for doc_gold in golds):
        gold.linked = rows_linked(golds, rows, gold.known)
    return gold


def rows_linked(
    golds: Sequence[Optional[RelationGold]],
    rows: Rows,
    known: Optional[List[numpy.ndarray]],
) -> List[numpy.ndarray]:
    """The tokens of each row, among those known, that are in documents with annotated relations."""
    pairs = zip(golds, rows.lengths, strict=True)
    masks = [numpy.full(length, gold is not None and gold.is_linked) for gold, length in pairs]
    linked = row_masks(masks, rows)
    if known is None:
        return linked
    return [mask & others for mask, others in zip(linked, known, strict=True)]


def row_relations(
    golds: Sequence[Optional[RelationGold]], rows: Rows, counts: Counter
) -> numpy.ndarray:
    """The relations of documents that their rows hold with both ends.  (M, 6)"""
    tables = [None if gold is None else gold.relations for gold in golds]
    links = on_line(tables, rows, n_ends=4)  # (M, 5)
    first, last = links[:, :4].min(1), links[:, :4].max(1)  # (M,)
    order = numpy.argsort(first, kind="stable")
    number, which = touching(first[order], last[order], rows.table)
    which = order[which]
    start = rows.table[number, START]
    inside = (first[which] >= start) & (last[which] <= rows.table[number, END])
    counts[APART] += int((rows.owns(number, first[which]) & ~inside).sum())
    held = links[which] - start[:, None] * numpy.array([1, 1, 1, 1, 0])
    return numpy.column_stack([number, held])[inside]


def entities_of(doc: Doc, spans_key: Optional[str]) -> Optional[List[Span]]:
    """The entities that a document has, the most probable first, without those that hold no token; None
    where they are not annotated."""
    if spans_key is None:
        return list(doc.ents) if doc.has_annotation("ENT_IOB") else None
    if spans_key not in doc.spans:
        return None
    spans = list(doc.spans[spans_key])
    scores = group_scores(doc.spans[spans_key])
    if scores is not None:
        spans = [spans[i] for i in numpy.argsort(-numpy.asarray(scores), kind="stable")]
    return [span for span in spans if len(span)]


def row_entities(tables: Sequence[Optional[numpy.ndarray]], rows: Rows) -> numpy.ndarray:
    """The spans of documents (n, 3) that rows hold: row, start, end, label.  (N, 4)"""
    spans, inside = spans_in_rows(tables, rows)
    return spans[inside]


def write_relations(
    docs: Sequence[Doc],
    prediction: RelationPrediction,
    labels: Sequence[str],
    spans_key: Optional[str],
    allowed: Optional[Set[LabelPair]] = None,
    symmetric: Collection[str] = (),
) -> None:
    """Set the relations of each document between entities that it has, also where there are none.
    A span with more than one label takes part under the most probable of them. Relations of other labels
    that another component found stay.

    allowed: Relations between entities of other labels are left out; None for none.
    symmetric: Labels of relations that are written once, from the entity that begins first (of two, the
        shorter), with the larger of the scores of both directions."""
    table = prediction.relations
    bounds = numpy.searchsorted(table[:, 0], numpy.arange(len(docs) + 1)).tolist()
    rows, scores = table[:, 1:].tolist(), prediction.scores.tolist()
    for number, doc in enumerate(docs):
        names: Dict[Tuple[int, int], str] = {}
        for span in entities_of(doc, spans_key) or []:
            names.setdefault((span.start, span.end), span.label_)
        found: Dict[Tuple, StoredRelation] = {}
        for i in range(bounds[number], bounds[number + 1]):
            *ends, label = rows[i]
            head, tail = tuple(ends[:2]), tuple(ends[2:])
            if head not in names or tail not in names:
                continue
            if allowed is not None and (names[head], labels[label], names[tail]) not in allowed:
                continue
            if labels[label] in symmetric:
                head, tail = sorted((head, tail))
            ends_and_names = (*head, names[head], *tail, names[tail])
            relation = StoredRelation(*ends_and_names, labels[label], scores[i])
            same = found.setdefault((head, tail, label), relation)
            if scores[i] > same.score:
                found[head, tail, label] = relation
        others = [
            relation
            for relation in get_relations(doc) or []
            if relation.label not in labels and relation.score is not None  # gold has none
        ]
        set_relations(doc, sorted([*others, *found.values()]))
