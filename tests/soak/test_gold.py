"""Random gold of every kind in training: no crash, and losses stay finite."""

import random
import time
import warnings

import numpy
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..systems import SYSTEMS, make_nlp
from .test_documents import random_doc

pytestmark = pytest.mark.soak
ODD_LABELS = [
    "O",
    "B-X",
    " ",
    "\n",
    "ä",
    "漢",
    "a b",
    "<b>",
    "'",
    '"',
    "\\",
    "-",
    "x" * 300,
    "PER\0",
]


def labels(generator, count):
    names = ODD_LABELS if generator.random() < 0.3 else []
    return [*names, *(f"L{i}" for i in range(max(count - len(names), 1)))][:count]


def random_spans(doc, names, generator):
    """Single tokens, crossing, doubled, nested, the whole document, wider than any window."""
    spans = []
    for _ in range(generator.choice([0, 1, 3, 10]) if len(doc) else 0):
        start = generator.randrange(len(doc))
        kind = generator.random()
        end = min(len(doc), start + generator.choice([1, 1, 2, 3, 8, 100]))
        if kind < 0.05:
            start, end = 0, len(doc)
        spans.append(Span(doc, start, end, label=generator.choice(names)))
        if kind > 0.9:
            spans.append(
                Span(doc, start, end, label=generator.choice([names[0], spans[-1].label_]))
            )
    return spans


def random_example(nlp, names, generator):
    predicted = random_doc(nlp.vocab, generator)
    reference = predicted.copy()
    if generator.random() < 0.1 and len(predicted):  # other tokens of the same text
        reference = nlp.make_doc(predicted.text)
    if generator.random() < 0.9:
        reference.spans["sc"] = random_spans(reference, names, generator)
        reference.set_ents(
            filtered(reference.spans["sc"]), default=generator.choice(["outside", "missing"])
        )
    return Example(Doc(nlp.vocab, words=[t.text for t in predicted]), reference)


def filtered(spans):
    kept, free = [], 0
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.start >= free:
            kept.append(span)
            free = span.end
    return kept


@pytest.mark.parametrize("factory", SYSTEMS)
def test_gold__of_any_kind(soak, factory):
    seed = time.time_ns()
    warnings.simplefilter("ignore")
    for number in soak.rounds():
        generator = random.Random(f"{seed} {number}")
        window = generator.choice([2, 16, 64, 256])
        output = generator.choice(["spans", "ents", "both"])
        nlp = make_nlp(
            factory, output=output, window=window, overlap=generator.choice([0, window // 2])
        )
        names = labels(generator, generator.choice([1, 2, 5, 20, 100, 500]))
        examples = [random_example(nlp, names, generator) for _ in range(generator.randint(1, 24))]
        if not any(len(eg.predicted) for eg in examples):
            continue
        pipe = nlp.get_pipe(factory)
        pipe.initialize(lambda examples=examples: examples, nlp=nlp, labels=names)
        optimizer = nlp.create_optimizer()
        for _ in range(3):
            losses = nlp.update(examples, sgd=optimizer)
            assert numpy.isfinite(losses[factory]), (seed, number)
        again = make_nlp(factory).get_pipe(factory).from_bytes(pipe.to_bytes(exclude=["vocab"]))
        list(again.pipe(eg.predicted for eg in examples))
        soak.counts["trainings"] += 1
        soak.counts["examples"] += len(examples)
        soak.counts["most labels"] = max(soak.counts["most labels"], len(names))
