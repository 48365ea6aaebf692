"""What a full memory costs in prediction."""

import time

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

N_SLOTS, N_WORDS = 400_000, 30_000
MODEL = {
    "@architectures": "spacy-spanner.HierarchicalNER.v1",
    "word_width": 100,
    "hidden_width": 256,
    "tok2vec": {
        "@architectures": "spacy-spanner.JoinedEncoder.v1",
        "*": {
            "words": {"@architectures": "spacy-spanner.TunedVectors.v1", "width": 100},
            "characters": {"@architectures": "spacy-spanner.IntNet.v1"},
        },
    },
}


def draw_docs(vocab, rng, n_docs, length, unseen=0.0):
    """Documents of words whose frequency falls with their rank."""
    chances = 1 / numpy.arange(1, N_WORDS + 1)
    ranks = rng.choice(N_WORDS, size=(n_docs, length), p=chances / chances.sum())
    is_new = rng.random(ranks.shape) < unseen
    for row, new in zip(ranks.tolist(), is_new.tolist(), strict=True):
        words = [
            f"new{rank}" if is_new else f"w{rank}" for rank, is_new in zip(row, new, strict=True)
        ]
        yield Doc(vocab, words=words)


def make_nlp(document_level):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    model = {**MODEL, "document_level": document_level}
    nlp.add_pipe("hierarchical_ner", config={"model": model})
    examples = []
    for doc in draw_docs(nlp.vocab, numpy.random.default_rng(0), N_SLOTS // 1000, 1000):
        reference = Doc(nlp.vocab, words=[token.text for token in doc])
        reference.ents = [Span(reference, 0, 1, "A")]
        examples.append(Example(doc, reference))
    nlp.initialize(lambda: examples)
    memory = nlp.get_pipe("hierarchical_ner").model.shims[0].module.memory
    if memory is not None:
        memory.keys.normal_()
        memory.values.normal_(std=0.1)
        memory.index.table[3] = memory.index.table[1]
    return nlp


@pytest.mark.slow
def test_a_full_memory_costs_at_most_a_quarter():
    nlps = {level: make_nlp(level) for level in ("off", "cosine")}
    memory = nlps["cosine"].get_pipe("hierarchical_ner").model.shims[0].module.memory
    assert memory.values.shape == (N_SLOTS, 256)
    seconds = dict.fromkeys(nlps, 0.0)
    rng = numpy.random.default_rng(1)
    for nlp in nlps.values():
        list(nlp.pipe(draw_docs(nlp.vocab, numpy.random.default_rng(2), 64, 25)))
    for seed in rng.integers(1000, size=20):
        for level, nlp in nlps.items():
            docs = list(draw_docs(nlp.vocab, numpy.random.default_rng(seed), 100, 25, unseen=0.1))
            start = time.process_time()
            list(nlp.pipe(docs))
            seconds[level] += time.process_time() - start
    ratio = seconds["cosine"] / seconds["off"]
    print(f"{ratio:.3f} of the time without a memory; {memory.megabytes:.0f} MB")
    assert ratio < 1.25
