"""The thresholds found are the best there are, never worse than before, and are kept."""

from itertools import product

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_spanner.analysis.scores import Counts
from spacy_spanner.batch import SpanPrediction
from spacy_spanner.pipeline.outputs import flatten_prediction
from spacy_spanner.pipeline.scaling import Scaling
from spacy_spanner.tuning.component import collect_candidates, find_pipe, write_setting
from spacy_spanner.tuning.thresholds import Candidates, best_threshold, label_thresholds, tune

from ..systems import make_examples, make_nlp, train

SPANS = st.tuples(
    st.integers(0, 1), st.integers(0, 4), st.integers(1, 2), st.integers(0, 1)
)  # document, start, width, label
ITEMS = st.dictionaries(
    SPANS, st.tuples(st.sampled_from([i / 20 for i in range(1, 20)]), st.booleans()), max_size=10
)

GRID = numpy.arange(0.025, 1, 0.05)


def make_candidates(items, *, rule=None, more_gold=1):
    rows = sorted((doc, start, start + width, label) for doc, start, width, label in items)
    values = [items[doc, start, end - start, label] for doc, start, end, label in rows]
    spans = numpy.array(rows, dtype="int64").reshape(-1, 4)
    scores = numpy.array([score for score, _ in values], dtype="float32")
    correct = numpy.array([right for _, right in values], dtype=bool)
    gold = numpy.bincount(spans[correct, 3], minlength=2) + more_gold
    return Candidates(
        SpanPrediction(spans, scores), correct, gold, int(gold.sum()), numpy.full(2, 0.01), rule
    )


def all_f_scores(candidates, grids):
    """F of every combination of thresholds."""
    for values in product(*grids):
        yield candidates.counts(numpy.array(values, dtype="float32")).f_score


def label_grid(candidates, label, common):
    """Thresholds that leave a label at least one span, and the common one, which may leave none."""
    scores = candidates.prediction.scores[candidates.labels == label]
    return [common, *(t for t in GRID if t < scores.max(initial=0))]


@settings(max_examples=40)
@given(ITEMS)
def test_best_of_all(items):
    candidates = make_candidates(items)
    best = best_threshold(candidates)
    start = numpy.full(3, best, dtype="float32")
    f_score = candidates.counts(start[:-1]).f_score
    shared = (candidates.counts(numpy.full(2, t)).f_score for t in GRID)
    assert f_score == pytest.approx(max(shared))
    own = label_thresholds(candidates, start, min_gold=1)
    grids = [label_grid(candidates, label, best) for label in range(2)]
    assert candidates.counts(own[:-1]).f_score == pytest.approx(
        max(all_f_scores(candidates, grids))
    )
    kept = label_thresholds(candidates, start, min_gold=100)
    assert (kept == start).all()


@settings(max_examples=40)
@given(
    ITEMS,
    st.sampled_from([None, "best", "greedy"]),
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.77, 0.9]), min_size=3, max_size=3),
    st.sampled_from([Scaling(0.5), Scaling(), Scaling(2.0, -0.7), Scaling(2.0, 0.1, (0.9, -0.9))]),
    st.booleans(),
    st.booleans(),
)
def test_never_lower_than_before(items, rule, values, scaling, per_label, fit):
    candidates = make_candidates(items, rule=rule)
    *current, common = numpy.array(values, dtype="float32")
    now, best = tune(
        candidates,
        numpy.array(current),
        threshold=float(common),
        scaling=scaling,
        per_label=per_label,
        fit=fit,
        min_gold=1,
    )
    assert now.thresholds.tolist() == [float(value) for value in current]
    assert best.counts.f_score >= now.counts.f_score
    assert fit or best.scaling == scaling


@settings(max_examples=40)
@given(ITEMS, st.sampled_from(["best", "greedy"]), st.sampled_from([0.1, 0.4, 0.7]))
def test_flat_choice_is_made_anew(items, rule, threshold):
    """What is kept is what the component would choose among the spans over the threshold."""
    candidates = make_candidates(items, rule=rule)
    thresholds = numpy.full(2, threshold, dtype="float32")
    spans, scores = candidates.prediction.spans, candidates.prediction.scores
    over = scores > numpy.float32(threshold)
    chosen = flatten_prediction(SpanPrediction(spans[over], scores[over]), thresholds, rule)
    assert spans[candidates.keep(thresholds)].tolist() == chosen.spans.tolist()


def test_by_hand():
    """Label 0: right .9, wrong .8, right .3; label 1: wrong .6, right .4; one gold of each unseen."""
    items = {
        (0, 0, 1, 0): (0.9, True),
        (0, 1, 1, 0): (0.8, False),
        (0, 2, 1, 0): (0.3, True),
        (1, 0, 1, 1): (0.6, False),
        (1, 1, 1, 1): (0.4, True),
    }
    candidates = make_candidates(items)
    assert candidates.n_gold == 5 and candidates.gold_counts.tolist() == [3, 2]
    now, best = tune(candidates, numpy.float32([0.5, 0.5]))
    assert now.counts == Counts(1, 4, 2)
    # all: 3 hits of 5 predicted and 5 gold; each higher cut has fewer hits for as many errors
    assert best.counts == Counts(3, 2, 2) and best.threshold < 0.3
    assert now.calibration.size == 3 and best.calibration.size == 5


@pytest.fixture(scope="module")
def trained():
    nlp = make_nlp("global_pointer")
    train(nlp, make_examples(nlp), steps=12)
    return nlp


def pairs(nlp):
    return [(nlp.make_doc(eg.text), eg.reference) for eg in make_examples(nlp)]


def component_f(nlp):
    examples = make_examples(nlp)
    key = "ents_f" if find_pipe(nlp, None)[1].cfg["output"] == "ents" else "spans_sc_f"
    return nlp.evaluate(examples)[key] or 0.0


@pytest.mark.parametrize("output,fit", [("spans", False), ("spans", True), ("ents", True)])
def test_a_component_scores_what_was_promised_and_keeps_it(trained, tmp_path, output, fit):
    nlp = trained
    name, pipe = find_pipe(nlp, None)
    pipe.cfg.update(output=output, threshold=0.5, label_thresholds={}, temperature=1.0, bias=0.0)
    before = component_f(nlp)
    candidates = collect_candidates(nlp, name, pairs(nlp))
    now, best = tune(candidates, pipe.thresholds(), per_label=True, fit=fit, min_gold=1)
    assert now.counts.f_score == pytest.approx(before)
    write_setting(nlp, name, best)
    assert component_f(nlp) == pytest.approx(best.counts.f_score) and best.counts.f_score >= before
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    cfg = again.get_pipe(name).cfg
    assert cfg["label_thresholds"] == pytest.approx(pipe.cfg["label_thresholds"])
    assert again.get_pipe(name).thresholds() == pytest.approx(best.thresholds, abs=1e-8)
    for stored in (cfg, again.config["components"][name]):
        assert stored["threshold"] == pytest.approx(best.threshold, abs=1e-8)
        assert stored["temperature"] == pytest.approx(best.scaling.temperature)
        assert stored["bias"] == pytest.approx(best.scaling.bias)
    assert again.get_pipe(name).scaling() == pipe.scaling()
    assert component_f(again) == pytest.approx(best.counts.f_score)
    # a second search starts from what is there, and finds nothing better
    now, _ = tune(
        collect_candidates(again, name, pairs(again)),
        again.get_pipe(name).thresholds(),
        threshold=cfg["threshold"],
        scaling=again.get_pipe(name).scaling(),
    )
    assert now.counts == best.counts


def test_collecting_leaves_the_component_as_it_was(trained):
    name, pipe = find_pipe(trained, None)
    pipe.cfg.update(
        output="spans", threshold=0.4, label_thresholds={"PER": 0.001}, temperature=2.0, bias=0.0
    )
    before = dict(pipe.cfg)
    unannotated = (trained.make_doc("Ada Lind left"), Doc(trained.vocab, words=["Ada"]))
    candidates = collect_candidates(trained, name, [*pairs(trained), unannotated])
    assert pipe.cfg == before and candidates.n_gold == 10
    assert (candidates.floors < 0.001).all()  # .001 of a score whose log-odds were halved
    with pytest.raises(ValueError, match="global_pointer"):
        find_pipe(trained, "other")
    two = spacy.blank("en")
    two.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"S032.*no component of spacy-spanner.*: sentencizer\."):
        find_pipe(two, None)
    two.add_pipe("seq_ner")
    two.add_pipe("span_ner")
    with pytest.raises(ValueError, match=r"S033.*several components.*: seq_ner, span_ner\."):
        find_pipe(two, None)


def test_spans_that_gold_cannot_judge_do_not_count(trained):
    name, pipe = find_pipe(trained, None)
    pipe.cfg.update(output="ents", threshold=0.5, label_thresholds={}, temperature=1.0, bias=0.0)
    examples = make_examples(trained)
    for example in examples:
        half = len(example.reference) // 2
        kept = [ent for ent in example.reference.ents if ent.end <= half]
        missing = [example.reference[half:]]
        example.reference.set_ents(kept, missing=missing, default="outside")
    data = [(trained.make_doc(eg.text), eg.reference) for eg in examples]
    counts = collect_candidates(trained, name, data).counts(pipe.thresholds())
    scores = trained.evaluate(examples)
    assert 0 < counts.precision == pytest.approx(scores["ents_p"])
    assert counts.f_score == pytest.approx(scores["ents_f"])


def test_classes_that_decide_by_themselves_are_chosen_as_the_component_does():
    """With a threshold of 0, flat entities are those with the largest margins over no entity."""
    nlp = make_nlp("span_ner", output="ents")
    train(nlp, make_examples(nlp), steps=5)
    collected = collect_candidates(nlp, "span_ner", pairs(nlp)).prediction
    expected = nlp.get_pipe("span_ner").predict([eg.predicted for eg in make_examples(nlp)])
    assert collected.margins.tolist() == pytest.approx(expected.margins.tolist(), abs=1e-4)
    spans = numpy.array([[0, 0, 2, 0], [0, 1, 3, 0]])
    prediction = SpanPrediction(spans, numpy.float32([0.9, 0.8]), numpy.float32([1, 2]))
    right = numpy.array([False, True])
    candidates = Candidates(prediction, right, numpy.array([1]), 1, numpy.zeros(1), "best")
    assert candidates.keep(numpy.zeros(1, "float32")).tolist() == [False, True]


def test_temperature_only_changes_confidences(trained):
    _, pipe = find_pipe(trained, None)
    pipe.cfg.update(output="both", threshold=0.5, label_thresholds={}, temperature=1.0, bias=0.0)
    doc = trained("Ada Lind left the University of Torvik in Norway.")
    pipe.cfg["temperature"] = 3.0
    warm = trained(doc.text)
    for key in ("sc", "ents"):  # at .5 the log-odds are 0, whatever they are divided by
        assert [str(span) for span in doc.spans[key]] == [str(span) for span in warm.spans[key]]
    raw, cooled = doc.spans["sc"].attrs["scores"], warm.spans["sc"].attrs["scores"]
    assert len(raw) and (cooled < raw).all()
    sure = numpy.clip(raw.astype("float64"), None, 1 - 1e-7)  # as the component takes a score of 1
    odds = sure / (1 - sure)
    assert cooled == pytest.approx(odds ** (1 / 3) / (1 + odds ** (1 / 3)), abs=1e-4)
    with pytest.raises(ValueError, match="temperature"):
        make_nlp("global_pointer", temperature=0.0)
