"""Between thinc and heads that also find relations; made of the pieces of `bridge`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Protocol, Tuple

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from ..batch import START, RelationPrediction, SpanBatch
from ..bridge import line_vectors, on_host, row_groups, shim_of, table_model, to_documents
from ..contract import Decoded, Facts, SpanModule, Tokens
from ..row_tensors import take_rows

RelationModel = Model[SpanBatch, Any]


@dataclass
class Links:
    """The relations a head found."""

    relations: Tensor  # (M, 6) int64: row, head start, head end, tail start, tail end, label
    scores: Tensor  # (M,) float: probabilities in 0..1


class Linker(Protocol):
    """What a head must be able to do here: a `SpanModule` with `link`."""

    n_relations: int

    def encode(self, tokens: Tokens) -> Tokens: ...

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded: ...

    def link(self, encoded: Tokens, ends: Tensor, thresholds: Tensor) -> Links: ...


def relation_table_model(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]],
    maker: Callable[..., SpanModule],
    *,
    facts: Facts,
    learn_rate_scale: float,
) -> RelationModel:
    """The model of a relation component: tok2vec, then a head that is also a `Linker`. The maker
    is called with width=, n_labels= (of entities), n_relations= and, where entities are given,
    n_given= (their labels)."""
    attrs = {
        "max_width": facts.max_width,
        "needs_sentences": True,
        "learns_boundaries": facts.learns_boundaries,
    }
    scale, dims = learn_rate_scale, ("nR", "nG")
    return table_model("relation_table", tok2vec, maker, predict_rows, attrs, scale, dims)


def predict_rows(
    model: RelationModel, batch: SpanBatch, tokvecs: List[Floats2d]
) -> RelationPrediction:
    """`batch.thresholds` holds those of the entity labels, then those of the relation labels."""
    module = shim_of(model).module
    module.eval()
    found: List[Tuple[numpy.ndarray, ...]] = [empty_results()]
    with torch.inference_mode():
        flat = line_vectors(model, batch, tokvecs)  # (T, D)
        thresholds = torch.from_numpy(batch.thresholds).to(flat.device)  # (C + R,)
        for rows, tokens in row_groups(module, batch, flat):
            found.append(find(module, batch, tokens, rows, thresholds))
    spans, span_scores, links, link_scores = map(numpy.concatenate, zip(*found, strict=True))
    entities = to_documents(batch, spans, span_scores)
    return RelationPrediction(entities, *links_to_documents(batch, links, link_scores))


def empty_results() -> Tuple[numpy.ndarray, ...]:
    no_scores = numpy.zeros(0, dtype="float32")
    return numpy.zeros((0, 4), "int64"), no_scores, numpy.zeros((0, 6), "int64"), no_scores


def find(
    module: Linker, batch: SpanBatch, tokens: Tokens, rows: numpy.ndarray, thresholds: Tensor
) -> Tuple[numpy.ndarray, ...]:
    """Spans, relations and their scores on the host, numbered by the rows of the batch."""
    n_labels = len(thresholds) - module.n_relations
    encoded = module.encode(tokens)
    found = module.decode(encoded, thresholds[:n_labels])
    ends = found.spans  # (N, 4)
    if batch.given is not None:
        given = take_rows(batch.given, rows, len(batch.rows))
        ends = torch.from_numpy(given).to(thresholds.device)
    if (batch.thresholds[n_labels:] >= 1).all():  # where only entities are asked for
        ends = ends[:0]
    links = module.link(encoded, ends, thresholds[n_labels:])
    of_spans = on_host(found.spans, found.scores, rows)
    return of_spans + on_host(links.relations, links.scores, rows)


def links_to_documents(
    batch: SpanBatch, links: numpy.ndarray, scores: numpy.ndarray
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Relations in row coordinates (M, 6) as relations in documents. Each row answers only for
    those whose first token it owns, be that of the head or of the tail, and none for those that
    reach further than `max_reach`."""
    row, label = links[:, 0], links[:, 5]
    ends = links[:, 1:5] + batch.rows.table[row, START][:, None]  # (M, 4)
    first = ends.min(1, initial=numpy.iinfo("int64").max)  # (M,)
    kept = batch.rows.owns(row, first)
    if batch.max_reach is not None:
        kept &= ends.max(1, initial=0) - first <= batch.max_reach
    doc, start = batch.rows.locate(first[kept])
    ends = ends[kept] + (start - first[kept])[:, None]
    table = numpy.column_stack([doc, ends, label[kept]])
    order = numpy.lexsort(table.T[::-1])
    return table[order], scores[kept][order]
