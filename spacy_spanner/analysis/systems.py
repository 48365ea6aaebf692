"""Gold and predicted spans of a corpus as arrays: the input of every analysis.

Legend: D documents, N spans, G gold spans, P predicted spans. Spans are compared by characters, so
gold and predictions may be tokenized differently; lengths are counted in tokens of the gold.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Collection, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import spacy
from spacy.tokens import Doc

from ..corpus.docs import doc_spans, judged_spans, scored_spans, source_name
from ..corpus.pairs import SUFFIX, choose_output, load_pairs, require_group
from ..corpus.record import CorpusError
from ..errors import Errors, Warnings
from ..relations import get_relations, keyed_relations, symmetric_labels
from ..span_scores import SpanKey
from .proposals import Proposals, find_proposals, locate, rows_in

DOC, START, END, LABEL = range(4)  # columns of a span table
TP, FN, FP = range(3)  # columns of a table of counts


@dataclass(frozen=True)
class SpanSet:
    """Distinct spans, sorted by document, start, end and label."""

    spans: numpy.ndarray  # (N, 4) int64: document, start, end (characters, exclusive), label
    tokens: numpy.ndarray  # (N, 2) int64: the gold tokens it touches, end exclusive
    scores: numpy.ndarray  # (N,) float64 in 0..1; nan where there is none

    def __len__(self) -> int:
        return len(self.spans)


@dataclass(frozen=True)
class GoldCorpus:
    """The annotated documents of a gold file."""

    docs: List[Doc]
    labels: List[str]  # names by number; also those that only predictions have
    gold: SpanSet
    embedded: Optional[FrozenSet[str]] = None  # words that have a vector; None: no vectors
    more: bool = False  # the file has more documents than were read

    @cached_property
    def n_tokens(self) -> numpy.ndarray:
        """(D,)"""
        return numpy.array([len(doc) for doc in self.docs], dtype="int64")

    @cached_property
    def words(self) -> List[List[str]]:
        """The tokens of each document."""
        return [[token.text for token in doc] for doc in self.docs]

    @cached_property
    def texts(self) -> List[str]:
        """The text of each document."""
        return [doc.text for doc in self.docs]

    @cached_property
    def has_relations(self) -> numpy.ndarray:
        """Which documents have an annotation of relations.  (D,) bool"""
        return numpy.array([get_relations(doc) is not None for doc in self.docs], dtype=bool)


class RelationCase(NamedTuple):
    """A relation of gold or of a system."""

    doc: int
    label: str
    distance: int  # gold tokens between both ends
    ends_right: bool  # both ends of a gold relation were predicted, of a predicted one are gold
    outcome: int  # TP, FN or FP


@dataclass(frozen=True)
class System:
    """The predictions of one system for a corpus, compared with gold."""

    name: str
    corpus: GoldCorpus
    pred: SpanSet
    found: numpy.ndarray = field(repr=False)  # (G,) bool: gold spans that were predicted
    correct: numpy.ndarray = field(repr=False)  # (P,) bool: predicted spans that are gold
    relations: List[RelationCase] = field(repr=False)  # of documents with annotation of relations
    proposals: Optional[Proposals] = field(default=None, repr=False)  # of systems that have them

    @cached_property
    def relation_counts(self) -> numpy.ndarray:
        """(D, 3) TP, FN, FP; 0 without annotation"""
        counts = numpy.zeros((len(self.corpus.docs), 3), dtype="int64")
        for case in self.relations:
            counts[case.doc, case.outcome] += 1
        return counts


def load_systems(
    sources: Sequence[str], gold: str, *, output: str, spans_key: str, limit: int = 0
) -> Tuple[List[System], str]:
    """Systems over the same gold file, and whether "spans" or "ents" are compared.

    sources: Pipelines or .spacy files of predictions.
    output: "spans", "ents" or "auto": what gold and all systems have (`choose_output`).
    limit: Read so many documents at the most; 0 for all.
    """
    pipelines = [None if source.endswith(SUFFIX) else spacy.load(source) for source in sources]
    read = [
        load_pairs(nlp or source, [gold], limit=limit)
        for nlp, source in zip(pipelines, sources, strict=True)
    ]
    loaded = [pairs for pairs, _ in read]
    golds = [gold_doc for _, gold_doc in loaded[0] if gold_doc is not None]
    preds = [[pred for pred, _ in pairs] for pairs in loaded]
    if not golds:
        raise CorpusError(Errors.S028.format(path=gold))
    output = choose_output(output, golds, preds, spans_key=spans_key)
    source = source_name(output, spans_key)
    annotated = [doc_spans(gold_doc, output=output, spans_key=spans_key) for gold_doc in golds]
    if not any(annotated):
        if any(spans is not None for spans in annotated):
            hint = ", or choose what is compared with --output and --spans-key"
            raise CorpusError(
                Errors.S034.format(path=gold, source=source, docs=len(golds), hint=hint)
            )
        if output == "ents":
            raise CorpusError(Errors.S027.format(path=gold, docs=len(golds), hint=""))
        require_group(golds, gold, spans_key=spans_key)
    names = short_names(sources)
    for name, docs in zip(names, preds, strict=True):
        if not any(doc.ents if output == "ents" else spans_key in doc.spans for doc in docs):
            warnings.warn(Warnings.SW07.format(name=name, source=source), stacklevel=2)
    more = any(has_more for _, has_more in read)
    proposals = [
        None if nlp is None else find_proposals(nlp, docs, output=output, spans_key=spans_key)
        for nlp, docs in zip(pipelines, preds, strict=True)
    ]
    systems = read_systems(
        names,
        preds,
        golds,
        output=output,
        spans_key=spans_key,
        proposals=proposals,
        more=more,
        symmetric={label for nlp in pipelines if nlp for label in symmetric_labels(nlp)},
    )
    return systems, output


def short_names(sources: Sequence[str]) -> List[str]:
    """Sources by as few of the last parts of their paths as distinguish them."""
    parts = [[part for part in Path(source).parts if part != "model-best"] for source in sources]
    for size in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-size:]).removesuffix(SUFFIX) for path in parts]
        if len(set(names)) == len(names):
            return names
    return list(sources)


def read_systems(
    names: Sequence[str],
    preds: Sequence[Sequence[Doc]],
    golds: Sequence[Doc],
    *,
    output: str,
    spans_key: str,
    proposals: Optional[Sequence[Optional[List[numpy.ndarray]]]] = None,
    more: bool = False,
    symmetric: Collection[str] = (),
) -> List[System]:
    """Systems that predicted the same documents. Documents without gold annotation are left out.

    output: "spans" compares `doc.spans[spans_key]`, "ents" compares `doc.ents`.
    proposals: Of each system and document, where it has any (`find_proposals`).
    more: The file has more documents than these.
    symmetric: Labels of relations whose direction does not count.
    """
    annotated = [scored_spans(gold, output=output, spans_key=spans_key) for gold in golds]
    use = [i for i, spans in enumerate(annotated) if spans is not None]
    docs = [golds[i] for i in use]
    used = [[system_docs[i] for i in use] for system_docs in preds]
    ids: Dict[str, int] = {}
    gold_spans = [annotated[i] for i in use]
    gold_set = span_set(docs, gold_spans, ids)
    found = [
        [
            judged_spans(scored_spans(doc, output=output, spans_key=spans_key), gold, output=output)
            for doc, gold in zip(system_docs, docs, strict=True)
        ]
        for system_docs in used
    ]
    pred_sets = [span_set(docs, spans, ids) for spans in found]
    corpus = GoldCorpus(docs, list(ids), gold_set, words_with_vectors(docs, used), more)
    located = [
        None
        if tables is None
        else locate(read, [tables[i] for i in use], tokens_of(gold_set, read))
        for tables, read in zip(proposals or [None] * len(names), used, strict=True)
    ]
    return [
        System(
            name,
            corpus,
            pred,
            found=rows_in(gold_set.spans, pred.spans),
            correct=rows_in(pred.spans, gold_set.spans),
            relations=compare_relations(system_docs, docs, pred_spans, gold_spans, symmetric),
            proposals=chosen,
        )
        for name, pred, system_docs, pred_spans, chosen in zip(
            names, pred_sets, used, found, located, strict=True
        )
    ]


def tokens_of(spans: SpanSet, docs: Sequence[Doc]) -> numpy.ndarray:
    """The tokens of other forms of the documents that spans touch.  (N, 2)"""
    bounds = doc_bounds(spans.spans, len(docs)).tolist()
    parts = [
        touched_tokens(doc, spans.spans[first:last, START : END + 1].tolist())
        for doc, first, last in zip(docs, bounds[:-1], bounds[1:], strict=True)
    ]
    return numpy.concatenate([numpy.zeros((0, 2), "int64"), *parts])


def doc_bounds(spans: numpy.ndarray, n_docs: int) -> numpy.ndarray:
    """The first row of each document in a sorted span table, and the end of the last.  (D + 1,)"""
    return numpy.searchsorted(spans[:, DOC], numpy.arange(n_docs + 1))


def span_set(
    docs: Sequence[Doc],
    spans: Sequence[Optional[Dict[SpanKey, Optional[float]]]],
    ids: Dict[str, int],
) -> SpanSet:
    """Spans of documents as arrays; labels that `ids` does not know are added to it."""
    rows: List[Tuple[int, int, int, int]] = []
    scores: List[float] = []
    tokens = [numpy.zeros((0, 2), "int64")]
    for number, (doc, spans_of_doc) in enumerate(zip(docs, spans, strict=True)):
        found = sorted(
            (start, end, ids.setdefault(label, len(ids)), numpy.nan if score is None else score)
            for (start, end, label), score in (spans_of_doc or {}).items()
        )
        rows += [(number, start, end, label) for start, end, label, _ in found]
        scores += [score for *_, score in found]
        tokens.append(touched_tokens(doc, [row[:2] for row in found]))
    table = numpy.array(rows, dtype="int64").reshape(-1, 4)
    return SpanSet(table, numpy.concatenate(tokens), numpy.array(scores, dtype="float64"))


def touched_tokens(doc: Doc, spans: Sequence[Tuple[int, int]]) -> numpy.ndarray:
    """The tokens of a document that character spans touch.  (N, 2)"""
    begins = numpy.array([token.idx for token in doc], dtype="int64")
    bounds = numpy.array(spans, dtype="int64").reshape(-1, 2)
    first = numpy.searchsorted(begins, bounds[:, 0], side="right") - 1
    last = numpy.searchsorted(begins, bounds[:, 1], side="left")
    return numpy.stack([first, last], axis=1)


def compare_relations(
    preds: Sequence[Doc],
    golds: Sequence[Doc],
    pred_spans: Sequence[Optional[Collection[SpanKey]]],
    gold_spans: Sequence[Optional[Collection[SpanKey]]],
    symmetric: Collection[str] = (),
) -> List[RelationCase]:
    """The relations of documents whose gold has an annotation of relations. Strict: label, and offsets
    and labels of both ends."""
    keyed = partial(keyed_relations, symmetric=symmetric)
    cases = []
    rows = zip(preds, golds, pred_spans, gold_spans, strict=True)
    for number, (pred, gold, pred_own, gold_own) in enumerate(rows):
        expected, found = keyed(gold), keyed(pred) or {}
        if expected is None:
            continue
        for key in sorted({*expected, *found}):
            head, tail, label = key
            outcome = FP if key not in expected else TP if key in found else FN
            others = (gold_own if outcome == FP else pred_own) or ()
            right = outcome == TP or (head in others and tail in others)
            ends = touched_tokens(gold, sorted([head[:2], tail[:2]]))  # (2, 2)
            distance = max(int(ends[1, 0] - ends[0, 1]), 0)
            cases.append(RelationCase(number, label, distance, right, outcome))
    return cases


def words_with_vectors(
    docs: Sequence[Doc], preds: Sequence[Sequence[Doc]]
) -> Optional[FrozenSet[str]]:
    """Words of the documents that the first system has vectors for, as they are or in lower case;
    None where it has no vectors."""
    if not preds or not preds[0] or not preds[0][0].vocab.vectors_length:
        return None
    vocab = preds[0][0].vocab
    words = {token.text for doc in docs for token in doc}
    return frozenset(w for w in words if vocab.has_vector(w) or vocab.has_vector(w.lower()))
