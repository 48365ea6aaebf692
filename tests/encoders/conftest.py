"""A small vocabulary with static vectors, and documents in it."""

from __future__ import annotations

from typing import Callable, List

import numpy
import pytest
from spacy.tokens import Doc
from spacy.vectors import Vectors
from spacy.vocab import Vocab

STATIC = ["the", "cat", "sat", "0000", "1995", "b0", "Haus", "moscow"]


@pytest.fixture
def vocab() -> Vocab:
    vocab = Vocab()
    data = numpy.random.default_rng(0).normal(size=(len(STATIC), 6)).astype("float32")
    keys = [vocab.strings.add(word) for word in STATIC]
    vocab.vectors = Vectors(strings=vocab.strings, data=data, keys=keys)
    return vocab


@pytest.fixture
def make_docs(vocab: Vocab) -> Callable[..., List[Doc]]:
    def make(*texts: str) -> List[Doc]:
        docs = []
        for text in texts:
            words = text.split()
            docs.append(Doc(vocab, words=words, tags=[f"T{len(word)}" for word in words]))
        return docs

    return make
