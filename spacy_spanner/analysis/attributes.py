"""Attributes of entities and of their documents that scores are broken down by.

Ji et al. 2022 (Bundling Learning), eq 21 and 23 and Table 5; the share of entity tokens is the density
of Su et al. 2022 (Global Pointer), section 4.5; in and out of vocabulary as in Luo et al. 2020
(Hire-NER), Table 7. Every attribute of a predicted span is a function of its offsets, its label, the
gold and the training data, so that a true positive has the same value as its gold span.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, NamedTuple, Set, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.docs import scored_spans
from ..corpus.nesting import nesting
from .systems import DOC, END, START, GoldCorpus, SpanSet, doc_bounds

IV, OOTV, OOEV, OOBV = range(4)  # in vocabulary; out of training, embedding, both vocabularies
FOUR_SIZES = ("XS", "S", "L", "XL")


@dataclass
class TrainingFacts:
    """The words of the training data, and how often each entity text has each label."""

    words: Set[str] = field(default_factory=set)
    labels: Dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))


def training_facts(docs: Iterable[Doc], *, output: str, spans_key: str) -> TrainingFacts:
    """Read the training data; `output` and `spans_key` as for the gold."""
    facts = TrainingFacts()
    for doc in docs:
        facts.words.update(token.text for token in doc)
        text = doc.text
        for start, end, label in scored_spans(doc, output=output, spans_key=spans_key) or {}:
            facts.labels[normalize_space(text[start:end])][label] += 1
    return facts


def normalize_space(text: str) -> str:
    """The text with one blank between words."""
    return " ".join(text.split())


def entity_length(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """Tokens of the entity (eq 23a).  (N,)"""
    return spans.tokens[:, 1] - spans.tokens[:, 0]


def text_length(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """Tokens of its document (eq 23b).  (N,)"""
    return corpus.n_tokens[spans.spans[:, DOC]]


def label_consistency(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """Of the training entities with the same words, the share with the same label; 0 for words that
    are never an entity there (eq 23c).  (N,)"""
    values = numpy.zeros(len(spans))
    for i, (doc, start, end, label) in enumerate(spans.spans.tolist()):
        seen = train.labels.get(normalize_space(corpus.texts[doc][start:end]))
        if seen:
            values[i] = seen[corpus.labels[label]] / sum(seen.values())
    return values


def entity_density(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """Gold entities per token of its document (eq 23d).  (N,)"""
    counts = numpy.bincount(corpus.gold.spans[:, DOC], minlength=len(corpus.docs))
    return (counts / numpy.maximum(corpus.n_tokens, 1))[spans.spans[:, DOC]]


def entity_tokens(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """The share of tokens of its document that are part of a gold entity.  (N,)"""
    covered = [numpy.zeros(n, dtype=bool) for n in corpus.n_tokens]
    for doc, (start, end) in zip(corpus.gold.spans[:, DOC], corpus.gold.tokens, strict=True):
        covered[doc][start:end] = True
    shares = numpy.array([tokens.mean() if len(tokens) else 0.0 for tokens in covered])
    return shares[spans.spans[:, DOC]]


def nesting_depth(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """1 outside every gold entity, 2 inside one of depth 1, and so on.  (N,)"""
    gold, values = corpus.gold.spans, numpy.ones(len(spans), dtype="int64")
    gold_bounds = doc_bounds(gold, len(corpus.docs))
    bounds = doc_bounds(spans.spans, len(corpus.docs))
    for doc in range(len(corpus.docs)):
        spans_of_doc = gold[gold_bounds[doc] : gold_bounds[doc + 1], START : END + 1]
        depth = numpy.array(nesting(spans_of_doc.tolist()).depth, dtype="int64")
        for i in range(bounds[doc], bounds[doc + 1]):
            start, end = spans.spans[i, START : END + 1]
            holds = (spans_of_doc[:, 0] <= start) & (spans_of_doc[:, 1] >= end)
            holds &= (spans_of_doc[:, 0] < start) | (spans_of_doc[:, 1] > end)
            values[i] += depth[holds].max(initial=0)
    return values


def nested(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """1 if it lies inside, around or across a gold entity with other offsets, else 0.  (N,)"""
    gold, values = corpus.gold.spans, numpy.zeros(len(spans), dtype="int64")
    gold_bounds = doc_bounds(gold, len(corpus.docs))
    for i, (doc, start, end, _) in enumerate(spans.spans.tolist()):
        others = gold[gold_bounds[doc] : gold_bounds[doc + 1]]
        touches = (others[:, START] < end) & (others[:, END] > start)
        values[i] = (touches & ((others[:, START] != start) | (others[:, END] != end))).any()
    return values


def oov_density(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """The share of tokens of its document that the training data does not have (eq 21).  (N,)"""
    return count_unseen(corpus, train)[spans.spans[:, DOC]] / text_length(corpus, spans, train)


def corpus_oov_density(corpus: GoldCorpus, train: TrainingFacts) -> float:
    """Eq 21 over all documents."""
    return float(count_unseen(corpus, train).sum() / max(corpus.n_tokens.sum(), 1))


def count_unseen(corpus: GoldCorpus, train: TrainingFacts) -> numpy.ndarray:
    """Tokens of each document that the training data does not have.  (D,)"""
    return numpy.array([sum(w not in train.words for w in words) for words in corpus.words])


def vocabulary(corpus: GoldCorpus, spans: SpanSet, train: TrainingFacts) -> numpy.ndarray:
    """IV if all words of the entity are known; OOTV, OOEV or OOBV if at least one word is not in the
    training data, in the vectors, in either. Without vectors every word counts as having one.  (N,)"""
    values = numpy.full(len(spans), IV, dtype="int64")
    for i, (doc, (start, end)) in enumerate(zip(spans.spans[:, DOC], spans.tokens, strict=True)):
        words = corpus.words[doc][start:end]
        unseen = any(word not in train.words for word in words)
        bare = corpus.embedded is not None and any(w not in corpus.embedded for w in words)
        values[i] = OOTV * unseen + OOEV * bare
    return values


class Attribute(NamedTuple):
    """An attribute of spans, and the default buckets of its values."""

    key: str
    title: str
    values: Callable[[GoldCorpus, SpanSet, TrainingFacts], numpy.ndarray]
    bounds: Tuple[float, ...]  # upper, inclusive, of all but the last bucket; none: quartiles
    names: Tuple[str, ...] = FOUR_SIZES
    integer: bool = False
    categorical: bool = False  # never cut at quartiles
    needs_train: bool = False


THREE_SIZES, DEPTHS = ("S", "M", "L"), ("outer", "2nd", "3rd +")
VOCABULARIES = ("IV", "OOTV", "OOEV", "OOBV")
VOCABULARY = "vocabulary"

ATTRIBUTES: List[Attribute] = [
    Attribute("entity_length", "Entity length", entity_length, (1, 2, 4), integer=True),
    Attribute("text_length", "Text length", text_length, (7, 16, 31), integer=True),
    Attribute("entity_density", "Entities per token", entity_density, (0.01, 0.025, 0.05)),
    Attribute("entity_tokens", "Entity tokens per token", entity_tokens, (0.1, 0.3), THREE_SIZES),
    Attribute(
        "nesting_depth",
        "Nesting depth",
        nesting_depth,
        (1, 2),
        DEPTHS,
        integer=True,
        categorical=True,
    ),
    Attribute("nested", "Flat or nested", nested, (0,), ("flat", "nested"), categorical=True),
    Attribute(
        "label_consistency",
        "Label consistency",
        label_consistency,
        (0.1, 0.5, 0.9),
        needs_train=True,
    ),
    Attribute("oov_density", "Unseen words per token", oov_density, (), needs_train=True),
    Attribute(
        VOCABULARY,
        "Vocabulary",
        vocabulary,
        (IV, OOTV, OOEV),
        VOCABULARIES,
        categorical=True,
        needs_train=True,
    ),
]
