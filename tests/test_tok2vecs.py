"""Any tok2vec: own, shared, a transformer, frozen; each trains, saves, loads and predicts the same."""

import numpy
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_loop
from thinc.api import Adam, Config, fix_random_seed

from spacy_spanner.training_config import complete, join_config

from .minilm import FOLDER
from .systems import SYSTEMS, TEXTS, TOK2VEC, found, make_examples, make_nlp, train, trained

TRANSFORMERS = [
    pytest.param("huggingface", marks=pytest.mark.huggingface),
    pytest.param("transformer", marks=pytest.mark.spacy_transformers),
]
ENCODERS = ["hash", "lstm", *TRANSFORMERS]


def shared_nlp(encoder, factory="global_pointer"):
    """A pipeline as our configs make it: the encoder is a component, the head listens."""
    fix_random_seed(0)
    config = join_config(factory, encoder, transformer=str(FOLDER))
    rate = {"hash": 0.001, "lstm": 0.01}.get(encoder, 1e-4)
    config["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": rate}
    return spacy.util.load_model_from_config(complete(config))


def learn(nlp, examples, *, steps, annotates=()):
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses, annotates=list(annotates))
    return losses


def same(left, right):
    for a, b in zip(left, right):
        assert [x[:3] for x in a] == [x[:3] for x in b]
        numpy.testing.assert_allclose([x[3] for x in a], [x[3] for x in b], atol=1e-5)


def predictions(nlp):
    return [found(doc) for doc in list(nlp.pipe([*TEXTS, "", " "]))]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_shared_encoder_trains_saves_and_loads(encoder, tmp_path):
    nlp = shared_nlp(encoder)
    losses = learn(nlp, make_examples(nlp), steps=40)
    assert losses["global_pointer"] < 1.5
    assert nlp.evaluate(make_examples(nlp))["spans_sc_f"] > 0.8
    expected = predictions(nlp)
    assert any(expected)
    nlp.to_disk(tmp_path)
    same(predictions(spacy.load(tmp_path)), expected)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_empty_documents_among_others(encoder):
    nlp = shared_nlp(encoder)
    empty = Example(nlp.make_doc(""), nlp.make_doc(""))
    examples = [empty, *make_examples(nlp), empty]
    learn(nlp, examples, steps=2)
    assert len(list(nlp.pipe(["", "Torvik", ""]))) == 3


@pytest.mark.parametrize("encoder", ENCODERS)
def test_replaced_listeners_predict_the_same(encoder):
    nlp = shared_nlp(encoder)
    examples = make_examples(nlp)
    learn(nlp, examples, steps=3)
    expected = predictions(nlp)
    upstream = nlp.pipe_names[0]
    nlp.replace_listeners(upstream, "global_pointer", ["model.tok2vec"])
    nlp.remove_pipe(upstream)
    same(predictions(nlp), expected)
    nlp.update(examples, sgd=Adam(0.001))  # the copy still learns


@pytest.mark.parametrize("encoder", ENCODERS)
def test_frozen_encoder_keeps_its_weights(encoder):
    nlp = shared_nlp(encoder)
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    upstream, head = (nlp.get_pipe(name) for name in nlp.pipe_names)
    before = upstream.model.to_bytes(), head.model.to_bytes()
    for _ in range(2):
        nlp.update(examples, sgd=optimizer, exclude=[upstream.name], annotates=[upstream.name])
    assert upstream.model.to_bytes() == before[0]
    assert head.model.to_bytes() != before[1]


def two_components():
    nlp = shared_nlp("hash")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}
    block = {"@architectures": "spacy-spanner.EfficientGlobalPointer.v1", "tok2vec": listener}
    nlp.add_pipe("efficient_global_pointer", config={"model": block, "spans_key": "other"})
    return nlp


def test_two_components_share_one_encoder():
    nlp = two_components()
    examples = make_examples(nlp)
    for example in examples:
        example.reference.spans["other"] = example.reference.spans["sc"]
    losses = learn(nlp, examples, steps=60)
    assert set(losses) == {"tok2vec", "global_pointer", "efficient_global_pointer"}
    scores = nlp.evaluate(examples)
    assert scores["spans_sc_f"] > 0.6 and scores["spans_other_f"] > 0.6


def test_last_listener_without_gold_does_not_stop_the_others():
    nlp = two_components()
    examples = make_examples(nlp)
    examples[0].reference.spans["other"] = examples[0].reference.spans["sc"]
    optimizer = nlp.initialize(lambda: examples)
    before = nlp.get_pipe("tok2vec").model.to_bytes()
    optimizer.L2 = 0.0
    nlp.update(examples[1:], sgd=False)  # the second component has nothing to learn here
    nlp.get_pipe("tok2vec").finish_update(optimizer)
    assert nlp.get_pipe("tok2vec").model.to_bytes() != before


@pytest.mark.parametrize("factory", SYSTEMS)
def test_every_system_listens(factory):
    nlp = make_nlp(factory, tok2vec={"@architectures": "spacy.Tok2VecListener.v1", "width": 32})
    nlp.add_pipe("tok2vec", first=True, config={"model": TOK2VEC})
    losses = train(nlp, make_examples(nlp), steps=3)
    assert losses[factory] > 0 and losses["tok2vec"] > 0


def listening(factory, **settings):
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32}
    nlp = make_nlp(factory, tok2vec=listener, **settings)
    nlp.add_pipe("tok2vec", first=True, config={"model": TOK2VEC})
    return nlp


def test_heads_start_from_vectors_of_a_shared_encoder():
    """Label embeddings of Hire-NER start from the mean vectors of entities, not from zeros."""
    nlp = listening("hierarchical_ner")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    module = nlp.get_pipe("hierarchical_ner").model.shims[0].module
    assert module.sentence.attention.labels.abs().amax(1).min() > 0
    assert not any(example.predicted.tensor.size for example in examples)


def test_documents_that_the_shared_encoder_did_not_read_are_refused():
    nlp = listening("seq_ner")
    train(nlp, make_examples(nlp), steps=2)
    with nlp.select_pipes(disable="tok2vec"), pytest.raises(ValueError, match=r"S270.*Enable"):
        nlp(TEXTS[0])
    assert list(nlp.pipe(["", TEXTS[0]]))


def test_annotating_component_feeds_a_later_one():
    nlp = trained("global_pointer", output="both", name="first")
    examples = make_examples(nlp)
    seen = []

    @spacy.Language.component("watcher")
    def watcher(doc):
        seen.append(len(doc.ents))
        return doc

    nlp.add_pipe("watcher")
    nlp.update(examples, sgd=Adam(0.001), annotates=["first", "watcher"], exclude=["first"])
    assert sum(seen) > 0


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_gpu_config_of_the_project_trains_two_steps_on_cpu(encoder, tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "train.spacy"
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(path)
    config = complete(join_config("global_pointer", encoder, transformer=str(FOLDER)))
    assert config["system"]["gpu_allocator"] == "pytorch"
    assert config["components"]["global_pointer"]["model"]["learn_rate_scale"] > 1
    overrides = {"paths": {"train": str(path), "dev": str(path)}}
    config = (
        Config(config).merge(overrides).merge({"training": {"max_steps": 2, "eval_frequency": 1}})
    )
    (tmp_path / "out").mkdir()
    train_loop(init_nlp(config, use_gpu=-1), tmp_path / "out", use_gpu=-1)
    loaded = spacy.load(tmp_path / "out" / "model-last")
    assert "sc" in loaded(TEXTS[0]).spans


@pytest.mark.gpu
@pytest.mark.parametrize("factory", SYSTEMS)
def test_gpu_gives_what_the_cpu_gives(factory):
    nlp = trained(factory, output="both")
    expected = predictions(nlp)
    data = nlp.to_bytes()
    spacy.require_gpu()
    try:
        on_gpu = make_nlp(factory, output="both").from_bytes(data)
        same(predictions(on_gpu), expected)
        train(on_gpu, make_examples(on_gpu), steps=2)
    finally:
        spacy.require_cpu()
