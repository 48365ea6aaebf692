"""Settings of a loaded component: read and changed as attributes, with the checks of the constructor."""

import json

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_spanner.pipeline.settings import settings_of
from spacy_spanner.relations import Relation
from spacy_spanner.span_scores import register_extensions, span_score

from ..relations.examples import make_nlp as make_relations
from ..systems import TEXTS, found, trained

# A setting, a value that works, and values that do not.
ENTITY_SETTINGS = [
    ("output", "both", ["all", 3, None]),
    ("threshold", 0.25, [-0.1, 1.5, float("nan"), "high", True]),
    ("temperature", 1.5, [0, -1.0, "warm", None]),
    ("bias", -1.5, [51.0, "more", None, float("nan")]),
    ("overlaps", "greedy", ["none", None]),
    ("spans_key", "mine", ["ents", 3, None]),
    ("ents_key", "flat", ["sc", None]),
    ("window", 128, [0, 64, 12.5, None]),
    ("overlap", 32, [-1, 256, "a"]),
    ("pack_sentences", False, [0, "yes"]),
    ("join_training", 0.0, [-0.5, 2, None]),
    ("width_factor", 3.0, [0.5, "wide"]),
    ("max_cells", 1000, [0, 1e6]),
    ("label_thresholds", {"PER": 0.7}, [{"XYZ": 0.5}, {"PER": 2}, {"PER": "a"}, [0.5]]),
    (
        "label_bias",
        {"PER": -0.7},
        [{"XYZ": 0.5}, {"PER": 51.0}, {"PER": 10**400}, {"PER": True}, None],
    ),
]
OF_LABELS = {"label_thresholds", "label_bias"}  # of the component's data, not of its config


@pytest.fixture(scope="module")
def nlp():
    return trained("global_pointer", steps=40)


@pytest.fixture(scope="module")
def names(nlp):
    return set(settings_of(type(nlp.get_pipe("global_pointer"))))


def test_every_setting_is_an_attribute(nlp, names):
    pipe = nlp.get_pipe("global_pointer")
    assert {name for name, _, _ in ENTITY_SETTINGS} == (names - {"scorer"}) | OF_LABELS
    for name in names - {"scorer"}:
        assert getattr(pipe, name) == pipe.cfg[name]
    assert pipe.key == pipe.spans_key == "sc"


@pytest.mark.parametrize("name,good,bad", ENTITY_SETTINGS, ids=lambda value: str(value)[:16])
def test_settings_are_checked_when_they_are_changed(nlp, names, name, good, bad):
    pipe = nlp.get_pipe("global_pointer")
    before = dict(pipe.cfg)
    try:
        for value in bad:
            with pytest.raises(ValueError, match=rf"S003.*{name}"):
                setattr(pipe, name, value)
            assert pipe.cfg == before
            if name in names:  # as when a component is made
                with pytest.raises(ValueError, match=rf"S003.*{name}"):
                    type(pipe)(pipe.vocab, pipe.model, "other", **{name: value})
        setattr(pipe, name, good)
        assert pipe.cfg == {**before, name: good} and getattr(pipe, name) == good
    finally:
        pipe.cfg.update(before)


@pytest.mark.parametrize(
    "name, value, why",
    [
        ("label_thresholds", {"XYZ": 0.5}, "keys are among the `labels` of the .* from 0 to 1"),
        ("label_bias", {"XYZ": 0.5}, "keys are among the `labels` of the .* from -50 to 50"),
        ("overlap", -1, "from 0 to less than `window`"),
    ],
)
def test_refusals_say_what_is_possible(nlp, name, value, why):
    with pytest.raises(ValueError, match=why):
        setattr(nlp.get_pipe("global_pointer"), name, value)


def test_changed_settings_take_effect_and_are_stored(nlp, tmp_path):
    nlp = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    pipe = nlp.get_pipe("global_pointer")
    assert found(nlp(TEXTS[0]))
    pipe.threshold, pipe.key = numpy.float32(1.0), "mine"
    assert len(nlp(TEXTS[0]).spans["mine"]) == 0 and pipe.spans_key == "mine"
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("global_pointer").threshold == 1.0
    pipe.threshold = None  # that of the architecture
    assert pipe.threshold == 0.5 and found(nlp(TEXTS[0]), "mine")


def test_unknown_settings_are_refused(nlp):
    pipe = nlp.get_pipe("global_pointer")
    with pytest.raises(TypeError, match="treshold"):
        type(pipe)(pipe.vocab, pipe.model, "other", treshold=0.3)


def test_settings_of_relations():
    pipe = make_relations().get_pipe("global_pointer_relations")
    pipe.relation_threshold, pipe.output = 0.75, "both"
    assert pipe.cfg["relation_threshold"] == 0.75
    for name, value in [("relation_threshold", 2), ("output", "all"), ("window", 0)]:
        with pytest.raises(ValueError, match=rf"S003.*{name}"):
            setattr(pipe, name, value)
    for name in ("relation_label_thresholds", "relation_label_bias"):
        with pytest.raises(ValueError, match="keys are among the `relation_labels` of the"):
            setattr(pipe, name, {"PER": 0.5})
    given = make_relations(entities="given").get_pipe("global_pointer_relations")
    assert given.output == "ents"
    with pytest.raises(ValueError, match=r"S003.*output"):
        given.output = "both"


def test_json_keeps_scores():
    nlp = trained("seq_ner", output="both", steps=40)
    doc = nlp(TEXTS[0])
    assert doc._.span_scores["sc"] == [span[3] for span in found(doc)] != []
    text = json.dumps(doc.to_json(underscore=["span_scores"]))
    again = Doc(nlp.vocab).from_json(json.loads(text))
    for key in ("sc", "ents"):
        assert found(again, key) == found(doc, key)
        assert again.spans[key].attrs["scores"].dtype == numpy.float32
    assert [span_score(ent) for ent in again.ents] == again._.span_scores["ents"]
    assert span_score(doc[0:1]) is None


def test_groups_without_a_score_for_each_span_are_left_out():
    register_extensions()
    doc = spacy.blank("en")("Ada left.")
    doc.spans["a"], doc.spans["b"] = [doc[0:1]], [doc[0:1], doc[1:2]]
    doc.spans["b"].attrs["scores"] = [0.5]
    assert doc._.span_scores == {}
    doc.spans["a"].attrs["scores"] = [0.5]
    assert doc._.span_scores == {"a": [0.5]}


def test_json_keeps_relations():
    nlp = make_relations()
    doc = nlp.make_doc("Ada left Torvik.")
    doc._.relations = [Relation(doc[0:1], doc[2:3], "left", 0.75)]
    text = json.dumps(doc.to_json(underscore=["plain_relations"]))
    again = Doc(nlp.vocab).from_json(json.loads(text))
    assert again.user_data == doc.user_data and again._.relations[0].score == 0.75
