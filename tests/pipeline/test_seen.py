"""What training showed is measured, stored, and not exceeded in prediction."""

import warnings

import pytest
import spacy
from spacy.tokens import Doc

from spacy_spanner.pipeline.seen import NOTHING, REACH, ROW, SPAN, UNKNOWN, limit, row_sizes

from ..relations.examples import NAME
from ..relations.examples import make_examples as relation_examples
from ..relations.examples import make_nlp as relation_nlp
from ..systems import SYSTEMS, TEXTS, make_examples, make_nlp, train


def test_the_training_data_are_measured_at_the_start():
    nlp = make_nlp("global_pointer")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    seen = nlp.get_pipe("global_pointer").cfg["seen"]
    assert seen[ROW] == max(len(eg.predicted) for eg in examples)
    assert seen[SPAN] == max(len(s) for eg in examples for s in eg.reference.spans["sc"])
    assert seen[REACH] == 0


def test_relations_are_measured_from_end_to_end():
    nlp = relation_nlp()
    examples = relation_examples(nlp)
    nlp.initialize(lambda: examples)
    reach = []
    for example in examples:
        for relation in example.reference._.relations:
            ends = [x for s in (relation.head, relation.tail) for x in (s.start, s.end)]
            reach.append(max(ends) - min(ends))
    assert nlp.get_pipe(NAME).cfg["seen"][REACH] == max(reach)


def test_updates_add_to_what_was_seen():
    nlp = make_nlp("global_pointer", join_training=1.0)
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples[:1])
    cfg = nlp.get_pipe("global_pointer").cfg
    assert cfg["seen"] == {**NOTHING, ROW: 10, SPAN: 3}
    nlp.update(examples, sgd=optimizer)
    assert cfg["seen"][ROW] == sum(len(eg.predicted) for eg in examples)


@pytest.mark.parametrize("factory", SYSTEMS)
def test_no_span_is_wider_than_the_limit(factory):
    nlp = make_nlp(factory, threshold=0.0)
    train(nlp, make_examples(nlp), steps=2)
    pipe = nlp.get_pipe(factory)
    widest = pipe.cfg["seen"][SPAN]
    for factor in (1.0, 2.0):
        pipe.cfg["width_factor"] = factor
        table = pipe.predict([nlp.make_doc(" ".join(TEXTS * 5))]).spans
        assert (table[:, 2] - table[:, 1] <= factor * widest).all()


def test_limits():
    seen = {ROW: 40, SPAN: 7, REACH: 20}
    assert limit(seen, SPAN, 2.0) == 14 and limit(seen, REACH, 1.5) == 30
    assert limit(seen, SPAN, None) is None and limit(NOTHING, SPAN, 2.0) == 1
    assert limit(None, SPAN, 2.0) == 2 * UNKNOWN[SPAN]


@pytest.mark.parametrize(
    "longest,width,expected",
    [
        (300, 12, {"window": 256, "overlap": 64}),
        (100, 12, {"window": 100, "overlap": 50}),  # no row longer than in training,
        (10, 12, {"window": 32, "overlap": 16}),  # but long enough for the widest spans
        (300, 60, {"window": 256, "overlap": 80}),  # three quarters of the overlap hold a span
        (10, None, {"window": 256, "overlap": 64}),
    ],
)
def test_rows_of_prediction_are_like_those_of_training(longest, width, expected):
    cfg = {"window": 256, "overlap": 64, "seen": {ROW: longest, SPAN: 0, REACH: 0}}
    assert row_sizes(cfg, width) == expected


@pytest.mark.parametrize("model,width", [({}, 30), ({"max_width": 8}, 8)])
def test_a_pipeline_of_an_earlier_version_predicts_with_a_safe_limit(model, width, tmp_path):
    nlp = make_nlp("global_pointer", model=model, threshold=0.0)
    train(nlp, make_examples(nlp), steps=2)
    del nlp.get_pipe("global_pointer").cfg["seen"]  # as it was stored before
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    with pytest.warns(UserWarning, match=rf"SW06.*earlier version.*up to {width} tokens"):
        doc = loaded(Doc(loaded.vocab, words=["Torvik"] * 300))
    assert max(len(span) for span in doc.spans["sc"]) == width
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded("Ada Lind left.")  # once is enough


def test_training_goes_on_from_a_pipeline_of_an_earlier_version():
    nlp = make_nlp("global_pointer")
    examples = make_examples(nlp)
    train(nlp, examples, steps=2)
    cfg = nlp.get_pipe("global_pointer").cfg
    cfg["seen"] = None
    nlp.update(examples, sgd=nlp.resume_training())
    assert cfg["seen"] == UNKNOWN


@pytest.mark.parametrize("option,value", [("join_training", 1.5), ("width_factor", 0.5)])
def test_impossible_settings_are_refused(option, value):
    with pytest.raises(ValueError, match=rf"S003.*{option} = {value}"):
        make_nlp("global_pointer", **{option: value})


def test_relations_reach_no_further_than_the_limit():
    nlp = relation_nlp()
    examples = relation_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    pipe.cfg.update(threshold=0.0, relation_threshold=0.0)
    doc = Doc(nlp.vocab, words=["Ada", "Lind"] * 40)
    for reach in (2, 9):
        pipe.cfg["seen"][REACH] = reach
        table = pipe.predict([doc]).relations
        ends = table[:, 1:5]
        assert 0 < (ends.max(1) - ends.min(1)).max() <= 2 * reach
