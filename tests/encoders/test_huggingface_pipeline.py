"""Whole pipelines over the encoder: our heads and spaCy's, trained, saved, loaded, in processes."""

from __future__ import annotations

import pickle

import numpy
import pytest
import spacy
from spacy.training import Example
from thinc.api import fix_random_seed

from ..systems import SYSTEMS, TEXTS, found, make_examples
from .tiny_transformers import WIDTH, save

pytestmark = pytest.mark.huggingface
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "*"}
ENCODER = {"@architectures": "spacy-spanner.HuggingFaceEncoder.v1", "width": WIDTH}
TAGGER = {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}
NER = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "ner",
    "extra_state_tokens": False,
    "hidden_width": 16,
    "maxout_pieces": 2,
    "use_upper": True,
    "tok2vec": LISTENER,
}
OWN = {
    **{name: {"learn_rate_scale": 1.0, **block} for name, block in SYSTEMS.items()},
    "bundled_ner": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("bert"), "bert")


def make_nlp(folder, pipes, **options):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {**ENCODER, "name": str(folder), **options}})
    for name, block in pipes.items():
        nlp.add_pipe(name, config={"model": block})
    return nlp


def tagged_examples(nlp):
    examples = make_examples(nlp)
    for example in examples:
        for token in example.reference:
            token.tag_ = "UPPER" if token.text[0].isupper() else "LOWER"
    return examples


def learn(nlp, *, steps=8, rate=0.01):
    examples = tagged_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = rate
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    return losses


def outputs(nlp, **options):
    docs = list(nlp.pipe([*TEXTS, "", " ", "Torvik " * 200], **options))
    spans = [[span[:3] for span in found(doc)] if "sc" in doc.spans else [] for doc in docs]
    ents = [[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs]
    return spans, ents, [[t.tag_ for t in doc] for doc in docs]


@pytest.mark.parametrize("factory", OWN)
def test_life_of_every_system_of_ours(folder, factory, tmp_path):
    block = {"@architectures": architecture(factory), "tok2vec": LISTENER, **OWN[factory]}
    nlp = make_nlp(folder, {factory: block})
    losses = learn(nlp, steps=4)
    assert losses[factory] > 0 and losses["tok2vec"] > 0
    expected = outputs(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert outputs(loaded) == expected
    assert outputs(pickle.loads(pickle.dumps(loaded))) == expected


def architecture(factory):
    return (
        spacy.blank("en").add_pipe(factory)
        and (spacy.blank("en").get_factory_meta(factory).default_config["model"]["@architectures"])
    )


def test_heads_of_spacy_share_it_with_ours(folder, tmp_path):
    pointer = {"@architectures": "spacy-spanner.GlobalPointer.v1", "tok2vec": LISTENER}
    nlp = make_nlp(folder, {"ner": NER, "tagger": TAGGER, "global_pointer": pointer})
    losses = learn(nlp, steps=200, rate=0.005)
    assert set(losses) == {"tok2vec", "ner", "tagger", "global_pointer"}
    scores = nlp.evaluate(tagged_examples(nlp))
    assert scores["ents_f"] > 0.8 and scores["tag_acc"] > 0.9 and scores["spans_sc_f"] > 0.5
    expected = outputs(nlp)
    nlp.to_disk(tmp_path / "nlp")
    assert outputs(spacy.load(tmp_path / "nlp")) == expected
    empty = spacy.util.load_model_from_config(nlp.config)
    assert outputs(empty.from_bytes(nlp.to_bytes())) == expected
    assert outputs(nlp, n_process=2, batch_size=2) == expected
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
    assert outputs(nlp) == expected


def test_averages_are_used_in_evaluation(folder):
    nlp = make_nlp(folder, {"tagger": TAGGER})
    examples = tagged_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.averages = {}
    for _ in range(3):
        nlp.update(examples, sgd=optimizer)
    last = nlp.get_pipe("tok2vec").predict([nlp.make_doc(TEXTS[0])])[0]
    with nlp.use_params(optimizer.averages):
        averaged = nlp.get_pipe("tok2vec").predict([nlp.make_doc(TEXTS[0])])[0]
    assert abs(averaged - last).max() > 1e-6
    again = nlp.get_pipe("tok2vec").predict([nlp.make_doc(TEXTS[0])])[0]
    numpy.testing.assert_array_equal(again, last)


def test_frozen_encoder_needs_no_frozen_component(folder):
    nlp = make_nlp(folder, {"tagger": TAGGER}, frozen=True)
    examples = tagged_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    before = nlp.get_pipe("tok2vec").model.to_bytes()
    nlp.update([*examples, Example(nlp.make_doc(""), nlp.make_doc(""))], sgd=optimizer)
    assert nlp.get_pipe("tok2vec").model.to_bytes() == before
