"""Random documents through every factory: no crash, and the batch does not matter."""

import random
import time

import numpy
import pytest
from spacy.tokens import Doc

from ..systems import SYSTEMS, TEXTS, found, trained

pytestmark = pytest.mark.soak
KNOWN = " ".join(TEXTS).split()
ODD = [
    "",
    " ",
    "\n",
    "\t\u00a0",
    "\u200b",
    "\u202e",
    "\ufeff",
    "e\u0301",
    "👩‍👩‍👧",
    "ﬁ",
    "İ",
    "\U0001f1e9",
]
ODD += [
    "x" * 500,
    "0" * 40,
    "<script>",
    "'\"&",
    "\x00",
    "\x1b[31m",
    "\ud7ff",
    "\U0001d518",
    "漢字",
    "العربية",
]


def random_doc(vocab, generator):
    """Known words, odd ones and any characters; with sentences or without."""
    n_tokens = generator.choice([0, 1, 2, 5, 20, 60, 300])
    words = []
    for _ in range(generator.randint(0, n_tokens)):
        kind = generator.random()
        if kind < 0.6:
            words.append(generator.choice(KNOWN))
        elif kind < 0.8:
            words.append(generator.choice(ODD) or "\0")
        else:
            points = (generator.randrange(1, 0xD7FF) for _ in range(generator.randint(1, 8)))
            words.append("".join(map(chr, points)))
    spaces = [generator.random() < 0.8 for _ in words]
    doc = Doc(vocab, words=words, spaces=spaces)
    if generator.random() < 0.3:
        for token in doc[1:]:
            token.is_sent_start = generator.random() < 0.2
    return doc


def near(left, right):
    """The same spans but for those at the threshold, with the same scores but for rounding."""
    left, right = ({s[:3]: s[3] for s in spans} for spans in (left, right))
    if any(abs(left[s] - right[s]) > 1e-4 for s in left.keys() & right.keys()):
        return False
    return len(left.keys() ^ right.keys()) <= 1 + 0.02 * len(left)


@pytest.mark.parametrize("factory", SYSTEMS)
def test_documents__of_any_kind(soak, factory):
    nlp = trained(factory, output="both", steps=30)
    pipe = nlp.get_pipe(factory)
    seed = time.time_ns()
    for number in soak.rounds():
        generator = random.Random(f"{seed} {number}")
        docs = [random_doc(nlp.vocab, generator) for _ in range(generator.randint(1, 64))]
        list(pipe.pipe(iter(docs), batch_size=generator.choice([1, 7, 64])))
        soak.counts["documents"] += len(docs)
        soak.counts["tokens"] += sum(map(len, docs))
        for doc in docs:
            for key in ("sc", "ents"):
                scores = doc.spans[key].attrs["scores"]
                assert scores.shape == (len(doc.spans[key]),)
                assert numpy.isfinite(scores).all() and (scores >= 0).all() and (scores <= 1).all()
            assert [(e.start, e.end) for e in doc.ents] == [
                (s.start, s.end) for s in doc.spans["ents"]
            ], (seed, number)
        doc = generator.choice(docs)
        before = found(doc)
        pipe(doc)
        soak.counts["asked again alone"] += 1
        assert near(before, found(doc)), (seed, number)
