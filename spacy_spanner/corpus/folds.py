"""Documents in equal parts, each of which is the test part once."""

from __future__ import annotations

from random import Random
from typing import Dict, Hashable, Iterator, List, Sequence, Tuple

from spacy.tokens import Doc

from .docs import DOC_ID


def split_folds(docs: Sequence[Doc], n_folds: int) -> Iterator[Tuple[List[Doc], List[Doc]]]:
    """The training and the test part of each fold. Documents with the same id are in the same part;
    the split depends on the documents alone."""
    groups: Dict[Hashable, List[int]] = {}
    for number, doc in enumerate(docs):
        groups.setdefault(doc.user_data.get(DOC_ID, ("", number)), []).append(number)
    order = list(groups.values())
    Random(0).shuffle(order)
    folds = [sorted(i for group in order[fold::n_folds] for i in group) for fold in range(n_folds)]
    for test in folds:
        held = set(test)
        yield [doc for i, doc in enumerate(docs) if i not in held], [docs[i] for i in test]
