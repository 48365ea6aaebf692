"""Biases of labels: what a component does with them, and what is fitted where labels differ."""

from itertools import product

import numpy
import pytest
import spacy
import srsly
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_spanner.pipeline.scaling import Scaling, log_odds, sigmoid
from spacy_spanner.relations import get_relations
from spacy_spanner.tuning.component import collect_candidates, fit_settings, write_setting
from spacy_spanner.tuning.scaling import HIGHEST, LOWEST, RAW
from spacy_spanner.tuning.thresholds import best_threshold, label_thresholds, tune

from ..relations import examples as relations
from ..systems import TEXTS, found, make_examples, make_nlp, train, trained
from .test_thresholds import GRID, ITEMS, make_candidates

NAME = "global_pointer"
BIASES = {"PER": -0.9, "LOC": 0.7, "ORG": 2.5}
WORDS = " ".join(TEXTS).replace(".", "").split()


def expected(scored, biases, *, temperature, bias):
    """Those over .5 of confidences computed one by one. scored: keys, labels and scores of the head."""
    confidences = {
        key: float(sigmoid(log_odds(numpy.array(score)) / temperature + bias + biases[label]))
        for key, label, score in scored
    }
    return {key: value for key, value in confidences.items() if value > 0.5}


def spans_of(nlp, key):
    return [
        ((number, *span[:3]), span[2], span[3])
        for number, doc in enumerate(nlp.pipe(TEXTS))
        for span in found(doc, key)
    ]


@pytest.fixture(scope="module")
def half_trained():
    return trained(NAME, steps=12, output="both")


@pytest.mark.parametrize("key", ["sc", "ents"])
def test_confidences_by_hand_and_stored(half_trained, tmp_path, key):
    nlp = half_trained
    pipe = nlp.get_pipe(NAME)
    try:
        pipe.threshold = 0.02
        scored = spans_of(nlp, "sc")
        pipe.configure(threshold=0.5, temperature=1.6, bias=-0.2, label_bias=BIASES)
        wanted = expected(scored, BIASES, temperature=1.6, bias=-0.2)
        shown = {span: score for span, _, score in spans_of(nlp, key)}
        assert shown and (key == "ents" or shown.keys() == wanted.keys())
        assert shown == pytest.approx({span: wanted[span] for span in shown}, abs=1e-4)
        nlp.to_disk(tmp_path)
        again = spacy.load(tmp_path)
        assert dict(again.get_pipe(NAME).label_bias) == pytest.approx(BIASES)
        stored = {span: score for span, _, score in spans_of(again, key)}
        assert stored == pytest.approx(shown)
        pipe.add_label("NEW")  # has none
        assert pipe.scaling().label_bias[-1] == 0 and len(pipe.scaling().label_bias) == 4
    finally:
        pipe.configure(threshold=0.5, temperature=1.0, bias=0.0, label_bias={})


def test_a_pipeline_stored_before_there_were_biases_has_none(half_trained):
    pipe = half_trained.get_pipe(NAME)
    stored = srsly.msgpack_loads(pipe.to_bytes())
    cfg = srsly.json_loads(stored["cfg"])
    del cfg["label_bias"], cfg["label_thresholds"]
    old = srsly.msgpack_dumps({**stored, "cfg": srsly.json_dumps(cfg)})
    again = spacy.util.load_model_from_config(half_trained.config).get_pipe(NAME)
    again.from_bytes(pipe.to_bytes())
    again.configure(label_bias=BIASES, label_thresholds={"PER": 0.3})
    again.from_bytes(old)
    assert again.label_bias == again.label_thresholds == {}


def test_values_are_checked_and_set_as_a_whole(half_trained):
    pipe = half_trained.get_pipe(NAME)
    pipe.label_bias = {"PER": numpy.float32(0.5)}
    assert type(pipe.cfg["label_bias"]["PER"]) is float
    with pytest.raises(TypeError):
        pipe.label_bias["PER"] = 1000
    pipe.label_bias = {}


def test_relations_by_hand_and_stored():
    nlp = relations.train(
        relations.make_nlp(), relations.make_examples(relations.make_nlp()), steps=14
    )
    pipe = nlp.get_pipe(relations.NAME)
    biases = dict(zip(pipe.relation_labels, (1.3, -0.8, 0.4, -1.0), strict=True))

    def scored():
        return [
            ((number, *relation[:7]), relation.label, relation.score)
            for number, doc in enumerate(nlp.pipe(relations.TEXTS))
            for relation in get_relations(doc)
        ]

    pipe.relation_threshold = 0.01
    wanted = expected(scored(), biases, temperature=1.5, bias=0.2)
    own = {"relation_temperature": 1.5, "relation_bias": 0.2, "relation_label_bias": biases}
    pipe.configure(relation_threshold=0.5, **own)
    shown = {key: score for key, _, score in scored()}
    assert shown and shown == pytest.approx(wanted, abs=1e-4)
    again = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert dict(again.get_pipe(relations.NAME).relation_label_bias) == pytest.approx(biases)
    for wrong in ({"PER": 1.0}, {"in": float("inf")}, None):
        with pytest.raises(ValueError, match=r"S003.*relation_label_bias"):
            pipe.relation_label_bias = wrong


def unlike_labels(output):
    """A pipeline, and texts whose gold is drawn from what it finds, by odds that depend on the label."""
    nlp = make_nlp(NAME, output=output)
    train(nlp, make_examples(nlp), steps=8)
    pipe, rng = nlp.get_pipe(NAME), numpy.random.default_rng(0)
    pipe.threshold = 0.02
    pairs = []
    for _ in range(120):
        words = [str(word) for word in rng.choice(WORDS, 12)]
        doc, gold = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words)
        prediction = pipe.predict([doc])
        spans, labels = prediction.spans, numpy.array(pipe.labels)[prediction.spans[:, 3]]
        odds = 0.6 * log_odds(prediction.scores) + [BIASES[label] for label in labels]
        is_gold = rng.uniform(size=len(odds)) < sigmoid(odds)
        gold.spans["sc"] = [
            Span(gold, start, end, label=str(label))
            for (_, start, end, _), label in zip(spans[is_gold].tolist(), labels[is_gold])
        ]
        gold.set_ents(spacy.util.filter_spans(gold.spans["sc"]), default="outside")
        pairs.append((doc, gold))
    pipe.threshold = 0.5
    return nlp, pairs


def counts_of(nlp, pairs, output):
    right = wrong = missed = 0
    for doc, gold in pairs:
        nlp.get_pipe(NAME)(predicted := doc.copy())
        (a, b) = (
            {
                (s.start, s.end, s.label_)
                for s in (own.ents if output == "ents" else own.spans["sc"])
            }
            for own in (predicted, gold)
        )
        right, wrong, missed = right + len(a & b), wrong + len(a - b), missed + len(b - a)
    return right, missed, wrong


@pytest.mark.parametrize("output", ["spans", "ents"])
def test_labels_that_differ_get_biases_and_the_component_what_was_promised(output):
    nlp, pairs = unlike_labels(output)
    pipe = nlp.get_pipe(NAME)

    def fit(**options):
        copies = [(doc.copy(), gold) for doc, gold in pairs]
        return fit_settings(nlp, NAME, copies, fit=True, **options)[""]

    first = fit()
    write_setting(nlp, NAME, first.best)
    assert pipe.label_bias["ORG"] > pipe.label_bias["PER"] + 0.2
    assert pipe.scaling() == first.best.scaling
    assert tuple(first.best.counts)[:3] == counts_of(nlp, pairs, output)
    assert first.best.counts.f_score > first.now.counts.f_score
    assert first.best.calibration.error < first.now.calibration.error
    # What was fitted to other weights leaves no trace, unless it is better.
    pipe.configure(threshold=0.4, temperature=3.0, bias=1.0, label_bias={"PER": 2.0, "ORG": -2.0})
    again = fit().best
    is_better = again.counts.f_score > first.best.counts.f_score
    assert again.scaling == first.best.scaling or (output == "ents" and is_better)
    per_label = fit(per_label=True, min_gold=5)
    write_setting(nlp, NAME, per_label.best)
    assert tuple(per_label.best.counts)[:3] == counts_of(nlp, pairs, output)
    assert per_label.best.counts.f_score >= again.counts.f_score
    candidates = collect_candidates(nlp, NAME, [(doc.copy(), gold) for doc, gold in pairs])
    assert candidates.counts(pipe.thresholds(), pipe.scaling()) == per_label.best.counts


@settings(max_examples=60)
@given(ITEMS, st.sampled_from([(2.0, -2.0), (-1.0, 1.5), (0.5, 0.0)]))
def test_thresholds_are_the_best_where_labels_have_unlike_floors(items, biases):
    """No threshold lies under what was looked at: lower candidates of that label are unknown."""
    candidates = make_candidates(items).scaled(Scaling(1.0, 0.0, biases))
    best = best_threshold(candidates)
    lowest = candidates.floors.max()
    assert best >= lowest - 1e-6
    common = numpy.full(3, best, dtype="float32")
    f_score = candidates.counts(common[:-1]).f_score
    tried = [candidates.counts(numpy.full(2, t)).f_score for t in GRID if t > lowest]
    assert f_score >= max(tried, default=0) - 1e-9
    own = label_thresholds(candidates, common, min_gold=1)
    assert (own[:-1] >= candidates.floors - 1e-6).all()
    scores, labels = candidates.prediction.scores, candidates.labels
    grids = [
        [best, *(t for t in GRID if floor < t < scores[labels == label].max(initial=0))]
        for label, floor in enumerate(candidates.floors)
    ]
    most = max(candidates.counts(numpy.array(t, dtype="float32")).f_score for t in product(*grids))
    assert candidates.counts(own[:-1]).f_score >= most - 1e-9


@pytest.mark.parametrize("correct", [True, False])
def test_fitting_again_and_again_stays_within_bounds(correct):
    items = {(0, i, 1, i % 2): (0.5 + i / 100, correct or i % 3 > 0) for i in range(40)}
    candidates = make_candidates(items)
    thresholds, threshold, scaling = numpy.float32([0.5, 1.0]), 0.5, RAW
    for _ in range(4):
        now, best = tune(candidates, thresholds, threshold=threshold, scaling=scaling, fit=True)
        assert LOWEST - 1e-3 <= best.scaling.temperature <= HIGHEST + 1e-3
        assert best.counts.f_score >= now.counts.f_score
        thresholds, threshold, scaling = best.thresholds, best.threshold, best.scaling


def test_where_nothing_right_is_found_settings_stay():
    items = {(0, i, 1, i % 2): (0.2 + i / 20, False) for i in range(10)}
    for candidates in (make_candidates(items), make_candidates({})):
        current, scaling = numpy.float32([0.4, 0.6]), Scaling(2.0, 0.3, (0.1, 0.0))
        now, best = tune(candidates, current, threshold=0.4, scaling=scaling, fit=True)
        assert best is now and best.scaling == scaling and best.threshold == 0.4
