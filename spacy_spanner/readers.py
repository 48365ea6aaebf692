"""A corpus reader that also shows what prediction will meet: documents of many sentences."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Callable, Iterable, Optional

from spacy.language import Language
from spacy.training import Example
from spacy.training.corpus import create_docbin_reader

from .acceleration import remember_codecs
from .corpus.joining import join_examples, neighbours


class JoinedCorpus:
    """Every document of a corpus as it is, and once more joined to its neighbours.

    A model trained on single sentences alone has never seen text before or after a sentence.
    Long documents, which no neighbour fits beside, come once.

    corpus: The examples one by one.
    max_tokens: Most tokens of a joined document.
    alone: Share of the joined documents that also come alone, sampled again in each epoch.
    """

    def __init__(
        self,
        corpus: Callable[[Language], Iterable[Example]],
        *,
        max_tokens: int = 256,
        alone: float = 1.0,
    ):
        self.corpus = corpus
        self.max_tokens, self.alone = max_tokens, alone

    def __call__(self, nlp: Language) -> Iterable[Example]:
        for run in neighbours(self.corpus(nlp), max_tokens=self.max_tokens):
            yield from (eg for eg in run if len(run) == 1 or random.random() < self.alone)
            if len(run) > 1:
                yield join_examples(run)


def create_joined_corpus(
    path: Optional[Path],
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Optional[Callable] = None,
    max_tokens: int = 256,
    alone: float = 1.0,
) -> JoinedCorpus:
    """`spacy.Corpus.v1` with joined documents beside the single ones; options as there, and

    max_tokens: Most tokens of a joined document; 0 for no joined documents.
    alone: Share of the documents that also come alone, sampled again in each epoch.
    """
    remember_codecs()  # the file is read again in each epoch
    options = {"gold_preproc": gold_preproc, "max_length": max_length, "limit": limit}
    corpus = create_docbin_reader(path, augmenter=augmenter, **options)
    return JoinedCorpus(corpus, max_tokens=max_tokens, alone=alone)
