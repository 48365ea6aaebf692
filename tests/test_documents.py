"""Trained on sentences, right on documents: a law for every system.

The sentences of a test set joined to documents must give what they give one by one."""

import random

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_spanner.corpus.joining import join_docs
from spacy_spanner.pipeline.seen import SPAN
from spacy_spanner.readers import JoinedCorpus
from spacy_spanner.relations import StoredRelation, get_relations, set_relations

from .relations.examples import ARCHITECTURES
from .relations.examples import make_nlp as make_relation_nlp
from .systems import SYSTEMS, make_nlp

FACTORIES = [*SYSTEMS, *ARCHITECTURES]
FIRST = ["Ada", "Ines", "Mia", "Tom", "Olaf", "Per", "Liv", "Nils", "Siri", "Eva"]
LAST = ["Lind", "Calder", "Berg", "Holm", "Dahl", "Moe", "Vik", "Sund", "Ness", "Lie"]
PLACES = [
    "Torvik",
    "Merrow",
    "Riga",
    "Oslo",
    "Bergen",
    "Visby",
    "Malmo",
    "Turku",
    "Espoo",
    "Odense",
]
ODD = ["Nobody came to the harbour that night .", "It rained , and the boats stayed in ."]
TEMPLATES = [
    "{per} left the University of {loc} in {loc2} .",
    "The {loc} Gazette wrote about {per} .",
    "Yesterday {per} met {per2} in {loc} .",
    "The council of {loc} closed the bridge to {loc2} on Monday",
]


def make_sentence(rng):
    """A document of one sentence with nested spans and one relation at most."""
    people = [f"{rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(2)]
    places = rng.sample(PLACES, 2)
    fields = {"per": people[0], "per2": people[1], "loc": places[0], "loc2": places[1]}
    template = rng.choice(TEMPLATES + ODD)
    words, spans = [], []
    for part in template.split():
        name = part.strip("{}")
        value = fields[name].split() if name in fields else [part]
        if name in fields:
            label = "PER" if name.startswith("per") else "LOC"
            spans.append((len(words), len(words) + len(value), label))
        words += value
    if "University" in words:
        start = words.index("University")
        spans.append((start, start + 3, "ORG"))
    if "Gazette" in words:
        spans.append((1, words.index("Gazette") + 1, "ORG"))
    doc = Doc(spacy.blank("en").vocab, words=words)
    doc.spans["sc"] = [Span(doc, *span) for span in sorted(spans)]
    people = [span for span in spans if span[2] == "PER"]
    places = [span for span in spans if span[2] == "LOC"]
    links = [(p, q, "met") for p in people[:1] for q in people[1:]]
    links += [(people[-1], places[-1], "in")] if people and places else []
    set_relations(doc, [StoredRelation(*head, *tail, label) for head, tail, label in links])
    return doc


def corpus(seed, n_sentences):
    rng = random.Random(seed)
    return [make_sentence(rng) for _ in range(n_sentences)]


SENTENCES = corpus(1, 80)


def examples_of(nlp, docs):
    docs = [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    return [Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc) for doc in docs]


@pytest.fixture(scope="module", params=FACTORIES)
def nlp(request):
    if request.param in ARCHITECTURES:
        nlp = make_relation_nlp(architecture=request.param, join_training=0.5)
    else:
        nlp = make_nlp(request.param, output="both")
    singles = examples_of(nlp, corpus(0, 60))
    examples = list(JoinedCorpus(lambda nlp: iter(singles), max_tokens=60)(nlp))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    rng = random.Random(0)
    for _ in range(50):
        nlp.update(rng.sample(examples, 12), sgd=optimizer)
    return nlp


@pytest.fixture(scope="module")
def alone(nlp):
    """What is found sentence by sentence, as if all were one document."""
    docs = nlp.pipe([Doc(nlp.vocab, words=words_of(doc)) for doc in SENTENCES])
    return on_line(list(docs))


def words_of(doc):
    return [token.text for token in doc]


def results(doc, offset=0):
    """Spans and relations of a document, as if it began `offset` tokens later."""
    spans = {(s.start + offset, s.end + offset, s.label_) for s in doc.spans["sc"]}
    links = {tuple(r.shifted(offset)[:7]) for r in get_relations(doc) or []}
    return spans | links


def on_line(docs):
    """The results of documents that follow each other."""
    starts = numpy.cumsum([0, *map(len, docs)])
    return set().union(*(results(doc, int(start)) for doc, start in zip(docs, starts)))


def f_score(found, gold):
    return 2 * len(found & gold) / max(len(found) + len(gold), 1)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("size", [10, 80])
def test_sentences_joined_to_a_document_give_the_same(nlp, alone, size, marked):
    """At least 95 % the same, as good, as many, and none wider than the limit."""
    documents = []
    for i in range(0, len(SENTENCES), size):
        words = [words_of(doc) for doc in SENTENCES[i : i + size]]
        starts = [place == 0 for sentence in words for place in range(len(sentence))]
        joined = [word for sentence in words for word in sentence]
        documents.append(Doc(nlp.vocab, words=joined, sent_starts=starts if marked else None))
    documents = list(nlp.pipe(documents))
    limit = 2 * nlp.get_pipe(nlp.pipe_names[0]).cfg["seen"][SPAN]
    assert all(len(span) <= limit for doc in documents for span in doc.spans["sc"])
    together, gold = on_line(documents), on_line(SENTENCES)
    assert f_score(alone, gold) > 0.6  # it has learned something
    assert f_score(together, alone) >= 0.95
    assert f_score(together, gold) >= f_score(alone, gold) - 0.03
    assert len(together) == pytest.approx(len(alone), rel=0.05)


def test_joined_documents_keep_their_annotation():
    docs = corpus(3, 6)
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab).from_bytes(doc.to_bytes()) for doc in docs]
    joined = join_docs(docs)
    expected, offset = set(), 0
    for doc in docs:
        expected |= results(doc, offset)
        offset += len(doc)
    assert results(joined) == expected and len(joined) == offset
    assert [t.i for t in joined if t.is_sent_start] == numpy.cumsum(
        [0, *map(len, docs[:-1])]
    ).tolist()
