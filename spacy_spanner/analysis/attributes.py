"""Attributes of entities and of their texts that scores are broken down by.

Ji et al. 2022 (Bundling Learning), eq 21 and 23 and Table 5; the share of entity tokens is the density
of Su et al. 2022 (Global Pointer), section 4.5; in and out of vocabulary as in Luo et al. 2020
(Hire-NER), Table 7. Every attribute of a predicted span is a function of its offsets, its label, the
gold and the training data, so that a hit has the same value as the gold span it is equal to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.nesting import nesting
from .marks import doc_spans
from .tables import DOC, END, START, Corpus, SpanSet

IV, OOTV, OOEV, OOBV = range(4)  # in vocabulary; out of training, embedding, both vocabularies
FOUR = ("XS", "S", "L", "XL")


@dataclass
class TrainingFacts:
    """What is known of the training data: its words, and the labels of each entity's text."""

    words: Set[str] = field(default_factory=set)
    labels: Dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))


def training_facts(docs: Iterable[Doc], *, output: str, spans_key: str) -> TrainingFacts:
    facts = TrainingFacts()
    for doc in docs:
        facts.words.update(token.text for token in doc)
        for start, end, label in doc_spans(doc, output=output, spans_key=spans_key) or {}:
            facts.labels[surface(doc.text[start:end])][label] += 1
    return facts


def surface(text: str) -> str:
    """The words of an entity, whatever white space is between them."""
    return " ".join(text.split())


def entity_length(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """Tokens of the entity (eq 23a).  (N,)"""
    return spans.tokens[:, 1] - spans.tokens[:, 0]


def text_length(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """Tokens of its text (eq 23b).  (N,)"""
    return corpus.n_tokens[spans.spans[:, DOC]]


def label_consistency(
    corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]
) -> numpy.ndarray:
    """Of the training entities with the same words, the share with the same label; 0 for words that
    are no entity there (eq 23c).  (N,)"""
    assert train is not None
    values = numpy.zeros(len(spans))
    for i, (doc, start, end, label) in enumerate(spans.spans.tolist()):
        seen = train.labels.get(surface(corpus.texts[doc][start:end]))
        if seen:
            values[i] = seen[corpus.labels[label]] / sum(seen.values())
    return values


def entity_density(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """Gold entities of its text by tokens (eq 23d).  (N,)"""
    counts = numpy.bincount(corpus.gold.spans[:, DOC], minlength=len(corpus.docs))
    return (counts / numpy.maximum(corpus.n_tokens, 1))[spans.spans[:, DOC]]


def entity_tokens(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """The share of tokens of its text that are part of a gold entity.  (N,)"""
    covered = [numpy.zeros(n, dtype=bool) for n in corpus.n_tokens]
    for doc, (start, end) in zip(corpus.gold.spans[:, DOC], corpus.gold.tokens, strict=True):
        covered[doc][start:end] = True
    shares = numpy.array([own.mean() if len(own) else 0.0 for own in covered])
    return shares[spans.spans[:, DOC]]


def nesting_depth(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """1 outside every gold entity, 2 inside one of depth 1, and so on.  (N,)"""
    gold, values = corpus.gold.spans, numpy.ones(len(spans), dtype="int64")
    gold_bounds = numpy.searchsorted(gold[:, DOC], numpy.arange(len(corpus.docs) + 1))
    bounds = numpy.searchsorted(spans.spans[:, DOC], numpy.arange(len(corpus.docs) + 1))
    for doc in range(len(corpus.docs)):
        own = gold[gold_bounds[doc] : gold_bounds[doc + 1], START : END + 1]
        depth = numpy.array(nesting(own.tolist()).depth, dtype="int64")
        for i in range(bounds[doc], bounds[doc + 1]):
            start, end = spans.spans[i, START : END + 1]
            holds = (own[:, 0] <= start) & (own[:, 1] >= end)
            holds &= (own[:, 0] < start) | (own[:, 1] > end)
            values[i] += depth[holds].max(initial=0)
    return values


def oov_density(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """The share of tokens of its text that the training data does not have (eq 21).  (N,)"""
    assert train is not None
    return unseen_counts(corpus, train)[spans.spans[:, DOC]] / text_length(corpus, spans, train)


def corpus_oov_density(corpus: Corpus, train: TrainingFacts) -> float:
    """Eq 21 over all texts."""
    return float(unseen_counts(corpus, train).sum() / max(corpus.n_tokens.sum(), 1))


def unseen_counts(corpus: Corpus, train: TrainingFacts) -> numpy.ndarray:
    """(D,)"""
    return numpy.array([sum(w not in train.words for w in words) for words in corpus.words])


def vocabulary(corpus: Corpus, spans: SpanSet, train: Optional[TrainingFacts]) -> numpy.ndarray:
    """IV if all words of the entity are known; OOTV, OOEV or OOBV if at least one word is not in the
    training data, in the vectors, in either. Without vectors every word counts as having one.  (N,)"""
    assert train is not None
    values = numpy.full(len(spans), IV, dtype="int64")
    for i, (doc, (start, end)) in enumerate(zip(spans.spans[:, DOC], spans.tokens, strict=True)):
        words = corpus.words[doc][start:end]
        unseen = any(word not in train.words for word in words)
        bare = corpus.embedded is not None and any(w not in corpus.embedded for w in words)
        values[i] = OOTV * unseen + OOEV * bare
    return values


class Attribute(NamedTuple):
    """How to cut the values of an attribute into buckets."""

    key: str
    title: str
    values: Callable[[Corpus, SpanSet, Optional[TrainingFacts]], numpy.ndarray]
    edges: Tuple[float, ...]  # upper bounds (inclusive) of all but the last; none: quartiles
    names: Tuple[str, ...] = FOUR
    whole: bool = False  # values are whole numbers
    fixed: bool = False  # categories, never cut at quartiles
    needs_train: bool = False


DEPTHS, SHARES = ("outer", "2nd", "3rd +"), ("S", "M", "L")
VOCABULARIES = ("IV", "OOTV", "OOEV", "OOBV")
VOCABULARY = "vocabulary"

ATTRIBUTES: List[Attribute] = [
    Attribute("entity_length", "Entity length", entity_length, (1, 2, 4), whole=True),
    Attribute("text_length", "Text length", text_length, (7, 16, 31), whole=True),
    Attribute("entity_density", "Entities per token", entity_density, (0.01, 0.025, 0.05)),
    Attribute("entity_tokens", "Entity tokens per token", entity_tokens, (0.1, 0.3), SHARES),
    Attribute(
        "nesting_depth", "Nesting depth", nesting_depth, (1, 2), DEPTHS, whole=True, fixed=True
    ),
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
        fixed=True,
        needs_train=True,
    ),
]
