"""Every system that the contract tests run over, small and quick, and the data they learn."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.training import Example
from thinc.api import fix_random_seed

TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 32,
    "depth": 2,
    "embed_size": 200,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}

# From the factory to settings of its model block: what makes it learn four sentences in seconds.
SYSTEMS: Dict[str, Dict[str, Any]] = {
    "global_pointer": {"head_size": 16, "content_width": 16},
    "efficient_global_pointer": {"head_size": 16},
    "locate_and_label": {"seed_lengths": [1, 2, 3, 4], "dropout": 0.0},
    "seq_ner": {"tagging": "crf", "levels": 2, "dropout": 0.0},
    "span_ner": {"max_width": 5, "dropout": 0.0, "content_width": 16},
    "bundled_ner": {},
    "modularized_interaction": {"hidden": 16, "dropout": 0.0},
    "hierarchical_ner": {"dropout": 0.0},
    "biaffine_ner": {"hidden_width": 16, "dropout": 0.0},
    "hscrf": {"dropout": 0.0},
    "bilstm_pointer": {"hidden": 32, "dropout": 0.0, "width_scores": True},
}

TRAIN_DATA = [
    (
        "Ada Lind left the University of Torvik in Norway.",
        [(0, 8, "PER"), (18, 38, "ORG"), (32, 38, "LOC"), (42, 48, "LOC")],
    ),
    (
        "The Port Merrow Gazette wrote about Ines Calder.",
        [(4, 23, "ORG"), (4, 15, "LOC"), (36, 47, "PER")],
    ),
    ("Nobody came to the harbour that night.", []),
    ("Calder met Lind in Torvik.", [(0, 6, "PER"), (11, 15, "PER"), (19, 25, "LOC")]),
]
TEXTS = [text for text, _ in TRAIN_DATA]


def is_outermost(span: tuple, spans: List[tuple]) -> bool:
    return not any(a <= span[0] and span[1] <= b and (a, b) != span[:2] for a, b, _ in spans)


def make_examples(nlp: Language, *, spans_key: str = "sc") -> List[Example]:
    """The training data with all spans in a group and the outermost ones as entities."""
    examples = []
    for text, spans in TRAIN_DATA:
        reference = nlp.make_doc(text)
        reference.spans[spans_key] = [reference.char_span(*span) for span in spans]
        outer = [reference.char_span(*span) for span in spans if is_outermost(span, spans)]
        reference.set_ents(outer, default="outside")
        examples.append(Example(nlp.make_doc(text), reference))
    return examples


def make_nlp(
    factory: str,
    *,
    model: Optional[Dict[str, Any]] = None,
    tok2vec: Optional[Dict[str, Any]] = None,
    name: Optional[str] = None,
    **settings: Any,
) -> Language:
    """A blank pipeline with one of our systems in it."""
    fix_random_seed(0)
    torch.manual_seed(0)
    nlp = spacy.blank("en")
    block = {**SYSTEMS[factory], **(model or {}), "tok2vec": tok2vec or TOK2VEC}
    nlp.add_pipe(factory, name=name, config={"model": block, **settings})
    return nlp


def train(nlp: Language, examples: List[Example], *, steps: int = 60) -> Dict[str, float]:
    """Initialize and learn the examples by heart; gives the losses of the last step."""
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    losses: Dict[str, float] = {}
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    return losses


def trained(factory: str, *, steps: int = 60, **settings: Any) -> Language:
    nlp = make_nlp(factory, **settings)
    train(nlp, make_examples(nlp, spans_key=settings.get("spans_key", "sc")), steps=steps)
    return nlp


def found(doc, key: str = "sc") -> List[tuple]:
    """What a component wrote: start, end, label and score of each span."""
    group = doc.spans[key]
    return [
        (span.start, span.end, span.label_, float(score))
        for span, score in zip(group, group.attrs["scores"])
    ]


def close(left: List[tuple], right: List[tuple]) -> bool:
    """The same spans, with scores that differ by rounding only."""
    same = [x[:3] for x in left] == [x[:3] for x in right]
    return same and numpy.allclose([x[3] for x in left], [x[3] for x in right], atol=1e-5)
