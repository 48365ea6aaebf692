"""What every system promises a spaCy user, run over all of them unchanged."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from thinc.api import Adam, Config

from .systems import (
    SYSTEMS,
    TEXTS,
    TRAIN_DATA,
    close,
    found,
    is_outermost,
    make_examples,
    make_nlp,
    train,
    trained,
)

OUTPUTS = ["spans", "ents", "both"]


@pytest.fixture(scope="module", params=SYSTEMS)
def nlp(request):
    """Each system once, trained on nested spans where it can learn them, writing both outputs."""
    return trained(request.param, output="both")


def predictions(nlp, texts=TEXTS):
    return [found(doc) for doc in [nlp(text) for text in texts]]


def test_learns_the_training_data(nlp):
    flat = nlp.get_pipe(nlp.pipe_names[0]).model.attrs["levels"] == 1
    for text, spans in TRAIN_DATA:
        doc = nlp(text)
        learnable = [s for s in spans if not flat or is_outermost(s, spans)]
        got = {(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]}
        assert got == set(learnable)
        outer = {s for s in spans if is_outermost(s, spans)}
        assert {(e.start_char, e.end_char, e.label_) for e in doc.ents} <= set(spans)
        assert len(doc.ents) >= len(outer) > 0 or not spans


def test_scores_are_probabilities_of_each_span(nlp):
    for doc in nlp.pipe(TEXTS):
        for key in ("sc", "ents"):
            scores = doc.spans[key].attrs["scores"]
            assert scores.shape == (len(doc.spans[key]),) and scores.dtype == numpy.float32
            assert ((scores >= 0) & (scores <= 1)).all()
        assert [s.text for s in doc.spans["ents"]] == [e.text for e in doc.ents]


@pytest.mark.filterwarnings("ignore:.*score_weights")
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("factory", SYSTEMS)
def test_output_decides_what_is_read_and_written(factory, output):
    nlp = make_nlp(factory, output=output, spans_key="mine", ents_key="flat")
    examples = make_examples(nlp, spans_key="mine")
    for example in examples:  # take away what this output must not look at
        if output == "ents":
            del example.reference.spans["mine"]
        else:
            example.reference.set_ents([], default="missing")
    train(nlp, examples, steps=2)
    doc = nlp(TEXTS[0])
    assert ("mine" in doc.spans) == (output != "ents")
    assert ("flat" in doc.spans) == (output != "spans")
    assert doc.has_annotation("ENT_IOB") == (output != "spans")
    scores = nlp.evaluate(make_examples(nlp, spans_key="mine"))
    assert ("spans_mine_f" in scores) == (output != "ents")
    assert ("ents_f" in scores) == (output != "spans")


def test_batch_and_order_do_not_matter(nlp):
    texts = [*TEXTS, "", "  ", "Lind", "Torvik " * 40]
    alone = [found(doc) for doc in [nlp(text) for text in texts]]
    together = [found(doc) for doc in list(nlp.pipe(texts, batch_size=100))]
    backwards = [found(doc) for doc in list(nlp.pipe(texts[::-1], batch_size=3))][::-1]
    for a, b, c in zip(alone, together, backwards):
        assert close(a, b) and close(a, c)


def test_empty_documents_get_empty_groups(nlp):
    docs = list(nlp.pipe(["", " ", "\n\n"]))
    for doc in docs:
        assert "sc" in doc.spans and doc.spans["sc"].attrs["scores"].shape == (
            len(doc.spans["sc"]),
        )
        assert [ent.text for ent in doc.ents] == [span.text for span in doc.spans["ents"]]
    assert nlp.get_pipe(nlp.pipe_names[0]).predict([]).spans.shape == (0, 4)


def test_long_documents_are_cut_into_windows_of_equal_worth(nlp):
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    before = dict(pipe.cfg)
    try:
        pipe.cfg.update(window=24, overlap=12)
        doc = nlp(" ".join(TEXTS * 6))
        starts = [s.start for s in doc.spans["sc"]]
        assert starts == sorted(starts)
        unique = {(s.start, s.end, s.label_) for s in doc.spans["sc"]}
        assert len(unique) == len(doc.spans["sc"])  # nothing is found twice
        assert starts and starts[-1] > len(doc) - 15  # the last window is looked at
    finally:
        pipe.cfg.update(before)


def test_bytes_and_disk(nlp, tmp_path):
    expected = predictions(nlp)
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert predictions(loaded) == expected
    empty = spacy.util.load_model_from_config(nlp.config)
    assert predictions(empty.from_bytes(nlp.to_bytes())) == expected
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    again = make_nlp(nlp.pipe_names[0], output="both").get_pipe(nlp.pipe_names[0])
    again.from_bytes(pipe.to_bytes())
    assert again.labels == pipe.labels
    assert again.to_bytes(exclude=["vocab"]) == pipe.to_bytes(exclude=["vocab"])


def test_pickle_and_copy(nlp):
    expected = predictions(nlp)
    assert predictions(pickle.loads(pickle.dumps(nlp))) == expected
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    doc = Doc(nlp.vocab, words=TEXTS[0].split())
    copied = pipe.model.copy()
    before = pipe.predict([doc]).scores
    original, pipe.model = pipe.model, copied
    numpy.testing.assert_array_equal(pipe.predict([doc]).scores, before)
    pipe.model = original


def test_threads(nlp):
    texts = [*TEXTS, "Lind left Torvik.", "Calder met Ines Calder."] * 3
    expected = predictions(nlp, texts)
    with ThreadPoolExecutor(8) as threads:
        got = [found(doc) for doc in list(threads.map(nlp, texts))]
    assert all(close(a, b) for a, b in zip(got, expected, strict=True))


def test_worker_processes(nlp):
    expected = [found(doc) for doc in list(nlp.pipe(TEXTS * 2, batch_size=2))]
    got = [found(doc) for doc in list(nlp.pipe(TEXTS * 2, n_process=2, batch_size=2))]
    assert got == expected


@pytest.mark.parametrize("factory", SYSTEMS)
def test_never_initialized_component_is_saved_and_loaded(factory, tmp_path):
    nlp = make_nlp(factory)
    nlp.get_pipe(factory).add_label("PER")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe(factory).labels == ("PER",)
    with pytest.raises(ValueError, match=r"not been initialized|E\d+|initialize"):
        loaded("Some text.")


@pytest.mark.parametrize("factory", SYSTEMS)
def test_labels(factory):
    nlp = make_nlp(factory)
    pipe = nlp.get_pipe(factory)
    assert pipe.labels == () and pipe.add_label("LOC") == 1 and pipe.add_label("LOC") == 0
    with pytest.raises(ValueError, match="E187"):
        pipe.add_label(3)
    nlp.initialize(lambda: make_examples(nlp))
    assert pipe.labels[0] == "LOC" and set(pipe.label_data) == set(pipe.labels)


@pytest.mark.parametrize("factory", SYSTEMS)
def test_initialize_with_given_labels_ignores_others(factory):
    nlp = make_nlp(factory)
    pipe = nlp.get_pipe(factory)
    with pytest.warns(UserWarning, match="a label the component does not have"):
        pipe.initialize(lambda: make_examples(nlp), nlp=nlp, labels=["PER", "LOC"])
    assert pipe.labels == ("PER", "LOC")
    nlp.update(make_examples(nlp), losses={})


@pytest.mark.parametrize("factory", SYSTEMS)
def test_initialize_without_labels_fails(factory):
    nlp = make_nlp(factory)
    empty = nlp.make_doc("Nothing here.")
    empty.spans["sc"] = []
    empty.set_ents([], default="outside")
    with pytest.raises(ValueError, match=r"E143|S002"):
        nlp.initialize(lambda: [Example(nlp.make_doc("Nothing here."), empty)])


@pytest.mark.parametrize("factory", SYSTEMS)
def test_initialize_without_tokens_fails(factory):
    pipe = make_nlp(factory).get_pipe(factory)
    empty = Example(Doc(pipe.vocab), Doc(pipe.vocab))
    with pytest.raises(ValueError, match=r"S114.*no document with a token"):
        pipe.initialize(lambda: [empty], labels=["A"])
    with pytest.raises(TypeError, match="E930"):  # spaCy's own word for no examples at all
        pipe.initialize(list)


def test_update_before_initialize_fails():
    nlp = make_nlp("seq_ner")
    with pytest.raises(ValueError, match=r"S007.*nlp.initialize"):
        nlp.update(make_examples(nlp))


@pytest.mark.parametrize("factory", SYSTEMS)
def test_gradient_accumulates_without_optimizer(factory):
    nlp = make_nlp(factory)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(factory)

    def weights():
        return torch.cat([p.flatten() for p in pipe.model.shims[0].module.parameters()])

    before = weights().clone()
    losses = pipe.update(examples, losses={"other": 1.0})
    assert losses["other"] == 1.0 and losses[factory] > 0
    assert torch.equal(weights(), before)
    pipe.finish_update(nlp.create_optimizer())
    assert not torch.equal(weights(), before)


def test_weights_stay_in_their_storage():
    """A new tensor over the same numbers at each update would hold on to the one before."""
    nlp = make_nlp("seq_ner")
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    module = nlp.get_pipe("seq_ner").model.shims[0].module

    def storages():
        return [p.untyped_storage()._cdata for p in module.parameters()]

    before = storages()
    for _ in range(2):
        nlp.update(examples, sgd=optimizer)
    assert storages() == before


def test_updates_with_empty_documents(nlp):
    nlp = pickle.loads(pickle.dumps(nlp))
    optimizer = nlp.resume_training()
    empty = Example(nlp.make_doc(""), nlp.make_doc(""))
    (name,) = nlp.pipe_names
    assert nlp.update([empty], sgd=optimizer)[name] == 0
    assert nlp.update([empty, *make_examples(nlp), empty], sgd=optimizer)[name] > 0


def test_error_handler_sees_failing_batches(nlp):
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    seen = []
    model = pipe.model
    pipe.set_error_handler(lambda name, proc, docs, error: seen.append((name, len(docs))))
    try:
        pipe.model = None
        assert list(nlp.pipe(TEXTS)) == []
    finally:
        pipe.model = model
        pipe.set_error_handler(lambda name, proc, docs, error: (_ for _ in ()).throw(error))
    assert seen == [(pipe.name, len(TEXTS))]


def test_as_tuples_and_disabled(nlp):
    got = list(nlp.pipe([(text, i) for i, text in enumerate(TEXTS)], as_tuples=True))
    assert [context for _, context in got] == list(range(len(TEXTS)))
    with nlp.select_pipes(disable=nlp.pipe_names[0]):
        assert "sc" not in nlp(TEXTS[0]).spans


def test_results_survive_a_docbin(nlp):
    doc = nlp(TEXTS[0])
    again = next(iter(DocBin().from_bytes(DocBin(docs=[doc]).to_bytes()).get_docs(nlp.vocab)))
    assert found(again) == found(doc) and found(again, "ents") == found(doc, "ents")


def test_config_round_trip(nlp):
    config = Config().from_str(nlp.config.to_str(), interpolate=False)
    assert spacy.util.load_model_from_config(config).config == nlp.config


def test_sourced_component_predicts_the_same(nlp):
    expected = predictions(nlp)
    other = spacy.blank("en")
    other.add_pipe(nlp.pipe_names[0], source=nlp)
    assert predictions(other) == expected


@pytest.mark.parametrize("factory", SYSTEMS)
def test_unannotated_documents_teach_nothing(factory):
    nlp = make_nlp(factory)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(factory)
    before = pipe.model.to_bytes()
    blank = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
    losses = pipe.update(blank, sgd=Adam(0.1, L2=0.0), losses={})
    assert losses[factory] == 0
    assert pipe.model.to_bytes() == before
