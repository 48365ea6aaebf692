"""Spans that a system chooses before it labels them: how many, how much of the gold, how far they move.

Shen et al. 2021 (Locate and Label), section 4.3 and Figure 3. K proposals, G gold spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

BATCH = 64  # documents
NEAR = 0.7  # IoU from which a proposal belongs to a gold span: alpha 1 of the paper
MOST = 4  # this many tokens and more are one group
SIDES = ("left", "right")


@dataclass(frozen=True)
class Proposals:
    """Columns of the tables: start and end as chosen, start and end as labelled."""

    doc: numpy.ndarray  # (K,)
    tokens: numpy.ndarray  # (K, 4)
    chars: numpy.ndarray  # (K, 4)
    gold: numpy.ndarray  # (G, 2): gold spans in the same tokens


def find_proposals(
    nlp: Language, docs: Sequence[Doc], *, output: str = "spans", spans_key: str = "sc"
) -> Optional[List[numpy.ndarray]]:
    """The proposals of each document, which went through the pipeline, from the last component that
    has any and writes what is compared: one of ours, or spaCy's `spancat`; None where there is none.

    output: "spans" for `doc.spans[spans_key]`, "ents" for `doc.ents`.
    RETURNS: (K, 4) each
    """
    pipes: List[Any] = [pipe for _, pipe in reversed(nlp.pipeline)]
    for pipe in pipes:
        if hasattr(pipe, "suggester") and output == "spans" and pipe.key == spans_key:
            return [suggested(pipe, doc) for doc in docs]
        if hasattr(pipe, "proposals") and (
            pipe.writes_ents
            if output == "ents"
            else pipe.writes_spans and pipe.cfg["spans_key"] == spans_key
        ):
            found: List[numpy.ndarray] = []
            for batch in minibatch(docs, BATCH):
                table = pipe.proposals(batch)  # (K, 5)
                if table is None and any(len(doc) for doc in batch):
                    break
                table = numpy.zeros((0, 5), "int64") if table is None else table
                found += [table[table[:, 0] == i, 1:] for i in range(len(batch))]
            else:
                return found
    return None


def suggested(pipe: Any, doc: Doc) -> numpy.ndarray:
    """What a span categorizer labels.  (K, 4)"""
    spans = pipe.model.ops.to_numpy(pipe.suggester([doc], ops=pipe.model.ops).dataXd)
    spans = spans.reshape(-1, 2).astype("int64")
    return numpy.concatenate([spans, spans], axis=1)


def locate(docs: Sequence[Doc], tables: Sequence[numpy.ndarray], gold: numpy.ndarray) -> Proposals:
    """Proposals of documents as one table, also in characters."""
    chars = [numpy.zeros((0, 4), "int64")]
    for doc, table in zip(docs, tables, strict=True):
        if len(table):
            begins = numpy.array([token.idx for token in doc])
            ends = begins + [len(token) for token in doc]
            starts, stops = begins[table[:, ::2]], ends[table[:, 1::2] - 1]  # (K, 2) each
            chars.append(numpy.stack([starts, stops], axis=2).reshape(-1, 4))
    number = numpy.repeat(numpy.arange(len(docs)), [len(table) for table in tables])
    tokens = numpy.concatenate([numpy.zeros((0, 4), "int64"), *tables])
    return Proposals(number, tokens, numpy.concatenate(chars), gold)


def describe_proposals(
    proposals: Optional[Proposals], gold: numpy.ndarray, pred: numpy.ndarray
) -> Optional[Dict[str, Any]]:
    """The part of the report; None for a system without proposals.

    gold, pred: Document, start and end in characters, label.  (G, 4), (P, 4)
    """
    if proposals is None:
        return None
    chosen, labelled = (
        numpy.column_stack([proposals.doc, proposals.chars[:, columns]])
        for columns in ([0, 1], [2, 3])
    )
    spans = numpy.unique(gold[:, :3], axis=0)
    covered = {
        name: float(rows_in(spans, table).mean()) if len(spans) else 0.0
        for name, table in (("chosen", chosen), ("labelled", labelled))
    }
    moves = numpy.abs(proposals.tokens[:, 2:] - proposals.tokens[:, :2])  # (K, 2)
    reported = rows_in(labelled, pred[:, :3])
    distances = gold_distances(proposals, gold[:, 0])  # (N, 4)
    return {
        "count": len(proposals.doc),
        "per_gold": len(proposals.doc) / max(len(gold), 1),
        "covered": covered,
        "moves": shares(moves[reported], shared_weights(labelled[reported])),
        "distance": {
            "chosen": shares(distances[:, :2]),
            "labelled": shares(distances[:, 2:]),
        },
    }


def rows_in(rows: numpy.ndarray, others: numpy.ndarray) -> numpy.ndarray:
    """Which rows are among the others.  (N,) bool"""
    known = set(map(tuple, others.tolist()))
    return numpy.array([tuple(row) in known for row in rows.tolist()], dtype=bool)


def shared_weights(spans: numpy.ndarray) -> numpy.ndarray:
    """Several proposals that became the same span count as one.  (N,)"""
    _, which, sizes = numpy.unique(spans, axis=0, return_inverse=True, return_counts=True)
    return 1 / sizes[which.reshape(-1)]


def shares(
    values: numpy.ndarray, weights: Optional[numpy.ndarray] = None
) -> Dict[str, List[float]]:
    """Of the left and of the right boundaries, the share with the value 0, 1, ... MOST and more;
    values (N, 2)."""
    found = {}
    for number, side in enumerate(SIDES):
        groups = numpy.minimum(values[:, number], MOST)
        counts = numpy.bincount(groups, weights=weights, minlength=MOST + 1)
        found[side] = (counts / max(counts.sum(), 1e-9)).tolist()
    return found


def gold_distances(proposals: Proposals, gold_docs: numpy.ndarray) -> numpy.ndarray:
    """How far the boundaries of proposals that are near a gold span are from it: as chosen, as
    labelled. Of several, the span with the largest IoU counts.  (N, 4)"""
    found = [numpy.zeros((0, 4), "int64")]
    for doc in numpy.unique(proposals.doc):
        gold = proposals.gold[gold_docs == doc]  # (G, 2)
        table = proposals.tokens[proposals.doc == doc]  # (K, 4)
        if not len(gold):
            continue
        first = numpy.maximum(table[:, :1], gold[:, 0])  # (K, G)
        last = numpy.minimum(table[:, 1:2], gold[:, 1])
        both = numpy.maximum(last - first, 0)
        sizes = (table[:, 1:2] - table[:, :1]) + (gold[:, 1] - gold[:, 0])
        overlap = both / (sizes - both)
        near = overlap.max(axis=1) >= NEAR
        target = gold[overlap.argmax(axis=1)[near]]  # (N, 2)
        found.append(numpy.abs(table[near] - numpy.tile(target, 2)))
    return numpy.concatenate(found)
