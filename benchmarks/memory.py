"""What a full memory of Hire-NER costs in prediction, over the same pipeline without a memory."""

from __future__ import annotations

import time
from statistics import median
from typing import Any, Dict, Iterator, List

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from tqdm import tqdm

from spacy_spanner.models.memory_index import SIZE, WRITES

HIDDEN_WIDTH = 256
MODEL: Dict[str, Any] = {
    "@architectures": "spacy-spanner.HierarchicalNER.v1",
    "word_width": 100,
    "hidden_width": HIDDEN_WIDTH,
    "tok2vec": {
        "@architectures": "spacy-spanner.JoinedEncoder.v1",
        "*": {
            "words": {"@architectures": "spacy-spanner.TunedVectors.v1", "width": 100},
            "characters": {"@architectures": "spacy-spanner.IntNet.v1"},
        },
    },
}


def measure(*, slots: int, words: int, rounds: int, sentences: int) -> Dict[str, Any]:
    """Seconds with a memory over seconds without one, the median over rounds.

    slots: Of the memory, all filled.
    words: Distinct words of the training data; their frequency falls with their rank.
    sentences: Of 25 tokens, in each round, one token in ten unseen.
    """
    torch.set_num_threads(1)
    pipelines = {level: make_pipeline(level, slots, words) for level in ("off", "cosine")}
    memory = pipelines["cosine"].get_pipe("hierarchical_ner").model.shims[0].module.memory
    ratios: List[float] = []
    for number in tqdm(range(rounds + 1), "rounds"):
        seconds = {
            level: pipe_seconds(nlp, number, words, sentences) for level, nlp in pipelines.items()
        }
        if number:  # the first one warms up
            ratios.append(seconds["cosine"] / seconds["off"])
    return {
        "slots": slots,
        "width": HIDDEN_WIDTH,
        "words": words,
        "megabytes": round(memory.megabytes, 1),
        "rounds": rounds,
        "sentences": sentences,
        "time_ratio": round(median(ratios), 3),
        "time_ratios": [round(ratio, 3) for ratio in ratios],
    }


def make_pipeline(document_level: str, slots: int, words: int) -> Language:
    """An untrained pipeline whose memory, if it has one, is full of random numbers."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    model = {**MODEL, "document_level": document_level}
    nlp.add_pipe("hierarchical_ner", config={"model": model})
    length = min(1000, slots)
    examples = []
    for doc in draw_docs(nlp.vocab, slots // length, length, seed=0, words=words):
        reference = Doc(nlp.vocab, words=[token.text for token in doc])
        reference.ents = [Span(reference, 0, 1, "A")]
        examples.append(Example(doc, reference))
    nlp.initialize(lambda: examples)
    memory = nlp.get_pipe("hierarchical_ner").model.shims[0].module.memory
    if memory is not None:
        memory.keys.normal_()
        memory.values.normal_(std=0.1)
        memory.index.table[WRITES] = memory.index.table[SIZE]  # as if every slot had been written
    return nlp


def pipe_seconds(nlp: Language, number: int, words: int, sentences: int) -> float:
    docs = list(draw_docs(nlp.vocab, sentences, 25, seed=1000 + number, words=words, unseen=0.1))
    start = time.perf_counter()
    for _ in nlp.pipe(docs):
        pass
    return time.perf_counter() - start


def draw_docs(
    vocab: Vocab, n_docs: int, length: int, *, seed: int, words: int, unseen: float = 0.0
) -> Iterator[Doc]:
    """Documents of words whose frequency falls with their rank."""
    rng = numpy.random.default_rng(seed)
    chances = 1 / numpy.arange(1, words + 1)
    ranks = rng.choice(words, size=(n_docs, length), p=chances / chances.sum())
    is_new = rng.random(ranks.shape) < unseen
    for row, new in zip(ranks.tolist(), is_new.tolist(), strict=True):
        yield Doc(vocab, words=[f"new{r}" if n else f"w{r}" for r, n in zip(row, new, strict=True)])
