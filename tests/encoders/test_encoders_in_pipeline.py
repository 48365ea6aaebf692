"""Encoders in whole pipelines: from a config, trained, saved and loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

import numpy
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config
from spacy.vectors import Vectors
from thinc.api import Config

PARTS = """
[{path}]
@architectures = "spacy-spanner.JoinedEncoder.v1"
lstm_width = 16
dropout = 0.1

[{path}.*.words]
@architectures = "spacy-spanner.TunedVectors.v1"
width = 10
min_count = 1

[{path}.*.inner]
@architectures = "spacy-spanner.JoinedEncoder.v1"

[{path}.*.inner.*.chars]
@architectures = "spacy-spanner.CharBiLSTM.v1"
char_width = 5
hidden_width = 4
pool = "mean"

[{path}.*.inner.*.ints]
@architectures = "spacy-spanner.IntNet.v1"
char_width = 4
first_filters = 4
filters = 2
kernels = [3,5]

[{path}.*.cnn]
@architectures = "spacy-spanner.CharCNN.v1"
filters = 6

[{path}.*.tags]
@architectures = "spacy-spanner.TagEmbed.v1"
width = 4
attr = "TAG"
"""
OWN = """
[nlp]
lang = "en"
pipeline = ["pointer"]

[components]

[components.pointer]
factory = "global_pointer"

[components.pointer.model]
@architectures = "spacy-spanner.GlobalPointer.v1"
""" + PARTS.format(path="components.pointer.model.tok2vec")
SHARED = """
[nlp]
lang = "en"
pipeline = ["tok2vec", "pointer", "second"]

[components]

[components.tok2vec]
factory = "tok2vec"

[components.pointer]
factory = "global_pointer"

[components.pointer.model]
@architectures = "spacy-spanner.GlobalPointer.v1"

[components.pointer.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 16

[components.second]
factory = "global_pointer"

[components.second.model]
@architectures = "spacy-spanner.GlobalPointer.v1"

[components.second.model.tok2vec]
@architectures = "spacy-spanner.JoinedEncoder.v1"

[components.second.model.tok2vec.*.shared]
@architectures = "spacy.Tok2VecListener.v1"
width = 16

[components.second.model.tok2vec.*.own]
@architectures = "spacy-spanner.TunedVectors.v1"
min_count = 1
""" + PARTS.format(path="components.tok2vec.model")
SENTENCES = [
    ("Anna flew to Moscow in 1995 .", [(0, 1, "PER"), (3, 4, "LOC")]),
    ("Moscow sleeps", [(0, 1, "LOC")]),
    ("nothing here", []),
]


def make_nlp(config: str) -> Language:
    nlp = load_model_from_config(Config().from_str(config), auto_fill=True)
    data = numpy.random.default_rng(0).normal(size=(3, 8)).astype("float32")
    keys = [nlp.vocab.strings.add(word) for word in ("moscow", "to", "0000")]
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=keys)
    return nlp


def make_examples(nlp: Language) -> List[Example]:
    examples = []
    for text, spans in SENTENCES:
        words = text.split()
        tags = ["X" if word[0].isupper() else "Y" for word in words]
        predicted, reference = (Doc(nlp.vocab, words=words, tags=tags) for _ in range(2))
        reference.spans["sc"] = [
            spacy.tokens.Span(reference, start, end, label=label) for start, end, label in spans
        ]
        examples.append(Example(predicted, reference))
    return examples


def tuned_nodes(nlp: Language) -> List:
    pipes = [pipe for _, pipe in nlp.pipeline]
    return [node for pipe in pipes for node in pipe.model.walk() if node.name == "TunedVectors"]


@pytest.mark.parametrize("config", [OWN, SHARED], ids=["own", "shared"])
def test_train_save_load(config, tmp_path):
    fix_random_seed(0)
    nlp = make_nlp(config)
    table = nlp.vocab.vectors.data.copy()
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.learn_rate = 0.01
    assert all(len(node.shims[0].module.keys) >= 8 for node in tuned_nodes(nlp))
    started = [node.shims[0].module.rows.detach().clone() for node in tuned_nodes(nlp)]
    losses = []
    for _ in range(12):
        step: dict = {}
        nlp.update(make_examples(nlp), sgd=optimizer, losses=step)
        losses.append(step["pointer"])
    assert sum(losses[-4:]) < sum(losses[:4])  # a batch may be joined to one row
    for node, start in zip(tuned_nodes(nlp), started, strict=True):
        assert (node.shims[0].module.rows.detach() != start).any()
    assert_array_equal(nlp.vocab.vectors.data, table)

    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    again = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    for other in (loaded, again):
        for eg, eg_other in zip(make_examples(nlp), make_examples(other), strict=True):
            doc, doc_other = nlp(eg.predicted), other(eg_other.predicted)
            group, group_other = doc.spans["sc"], doc_other.spans["sc"]
            assert [(s.start, s.end, s.label_) for s in group] == [
                (s.start, s.end, s.label_) for s in group_other
            ]
            assert_array_equal(group.attrs["scores"], group_other.attrs["scores"])


def test_words_are_learned_in_a_shared_encoder():
    nlp = make_nlp(SHARED)
    nlp.initialize(lambda: make_examples(nlp))
    shared, _ = tuned_nodes(nlp)
    assert shared.get_dim("nO") == 8  # of the static vectors, not the setting
    seen, unseen = shared.predict([Doc(nlp.vocab, words=["sleeps", "zebra"])])[0]
    assert (seen != unseen).any()


def test_processes_give_the_same():
    nlp = make_nlp(OWN)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.get_pipe("pointer").cfg["threshold"] = 0.0
    texts = [text for text, _ in SENTENCES] * 3
    alone = [len(doc.spans["sc"]) for doc in nlp.pipe(texts)]
    assert alone == [len(doc.spans["sc"]) for doc in nlp.pipe(texts, n_process=2, batch_size=3)]
    assert sum(alone)


DOCS = Path(__file__).parents[2] / "docs" / "encoders.md"
BLOCKS = [
    block
    for block in re.findall(r"```ini\n(.*?)```", DOCS.read_text(encoding="utf8"), re.DOTALL)
    if "components.ner" in block
]
HEAD = """
[nlp]
lang = "en"
pipeline = ["ner"]

[components]

[components.ner]
factory = "global_pointer"

[components.ner.model]
@architectures = "spacy-spanner.GlobalPointer.v1"

"""


MARKS = [(), pytest.mark.spacy_transformers, ()]


@pytest.mark.parametrize(
    "block, width",
    [
        pytest.param(block, width, marks=marks)
        for block, width, marks in zip(BLOCKS, [8 + 50, 1024, 8 + 160], MARKS, strict=True)
    ],
)
def test_documented_blocks_work(block, width):
    nlp = make_nlp(HEAD + block)
    encoder = nlp.get_pipe("ner").model.get_ref("tok2vec")
    if "transformer" in block:
        assert encoder.get_dim("nO") == width
    else:
        nlp.initialize(lambda: make_examples(nlp))
        assert [v.shape[1] for v in encoder.predict([Doc(nlp.vocab, words=["a"])])] == [width]


def test_listeners_among_the_parts_can_be_replaced():
    nlp = make_nlp(SHARED)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.get_pipe("second").cfg["threshold"] = 0.0
    before = nlp(make_examples(nlp)[0].predicted).spans["sc"].attrs["scores"]
    nlp.replace_listeners("tok2vec", "second", ["model.tok2vec.*.shared"])
    nlp.remove_pipe("pointer")
    nlp.remove_pipe("tok2vec")
    assert_array_equal(nlp(make_examples(nlp)[0].predicted).spans["sc"].attrs["scores"], before)
