"""Thresholds of entities and relations are the best there are, and neither F becomes lower."""

import numpy
import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_spanner.callbacks import make_fit_thresholds
from spacy_spanner.cli import spanner
from spacy_spanner.relations import get_relations
from spacy_spanner.tuning.component import fit_settings, write_setting

from ..relations.examples import FLAT, NAME, make_examples, make_nlp, train


def pairs(nlp, data):
    examples = make_examples(nlp, data)
    return [(nlp.make_doc(eg.text), eg.reference) for eg in examples * 3]


def half_trained(steps=12, **settings):
    """A pipeline that is right about some of what it finds."""
    nlp = make_nlp(**settings)
    return train(nlp, make_examples(nlp, FLAT), steps=steps)


def scores(nlp):
    found = nlp.evaluate([eg for eg in make_examples(nlp, FLAT)])
    return found["rel_f"], found.get("spans_sc_f", found.get("ents_f"))


@pytest.mark.parametrize("start", [0.5, 0.95, 0.02])
@pytest.mark.parametrize("per_label", [True, False])
@pytest.mark.parametrize("output", ["spans", "ents"])
def test_no_f_becomes_lower(start, per_label, output, architecture):
    nlp = half_trained(architecture=architecture, output=output, relation_threshold=start)
    nlp.get_pipe(NAME).threshold = start
    before = scores(nlp)
    options = {"per_label": per_label, "fit": True, "min_gold": 1}
    fits = fit_settings(nlp, NAME, pairs(nlp, FLAT), **options)
    assert list(fits) == ["", "relation_"]
    assert fits["relation_"].now.counts.f_score == pytest.approx(before[0])
    for prefix, fit in fits.items():
        write_setting(nlp, NAME, fit.best, prefix)
    after = scores(nlp)
    assert after[0] == pytest.approx(fits["relation_"].best.counts.f_score)
    assert after[0] >= before[0] and after[1] >= before[1]
    again = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert scores(again) == after


def test_best_of_all_thresholds_and_calibrated_scores():
    nlp = half_trained(entities="given", output="spans")
    pipe = nlp.get_pipe(NAME)

    def f_score(nlp):
        docs = [eg.reference.copy() for eg in make_examples(nlp)]
        gold = [{r[:7] for r in get_relations(doc)} for doc in docs]
        found = [{r[:7] for r in get_relations(pipe(doc))} for doc in docs]
        hits = sum(len(a & b) for a, b in zip(gold, found, strict=True))
        return 2 * hits / sum(map(len, [*gold, *found]))

    docs = []
    for example in make_examples(nlp):
        doc = nlp.make_doc(example.text)
        doc.spans["sc"] = [
            doc.char_span(s.start_char, s.end_char, s.label) for s in example.reference.spans["sc"]
        ]
        docs.append((doc, example.reference))
    fits = fit_settings(nlp, NAME, docs, fit=True)
    assert list(fits) == ["relation_"]
    tried = []
    for threshold in numpy.linspace(0.01, 0.99, 99):
        pipe.relation_threshold = float(threshold)
        tried.append(f_score(nlp))
    write_setting(nlp, NAME, fits["relation_"].best, "relation_")
    assert f_score(nlp) >= max(tried) - 1e-6
    assert nlp.config["components"][NAME]["relation_temperature"] == pipe.relation_temperature
    fitted = fits["relation_"].best.scaling
    assert pipe.relation_bias == fitted.bias and pipe.relation_temperature != 1.0


def test_a_model_that_has_learned_nothing(architecture, monkeypatch):
    """Its best threshold of entities lets nearly all spans through, and no pairs of these are made."""
    nlp = make_nlp(architecture=architecture)
    nlp.initialize(lambda: make_examples(nlp))
    found = []
    link = type(nlp.get_pipe(NAME).model.shims[0].module).link

    def counted(self, encoded, ends, thresholds):
        found.append(len(ends))
        return link(self, encoded, ends, thresholds)

    monkeypatch.setattr(type(nlp.get_pipe(NAME).model.shims[0].module), "link", counted)
    fits = fit_settings(nlp, NAME, pairs(nlp, FLAT))
    assert fits[""].candidates.prediction.spans.shape[0] > 100 and max(found) < 100


def test_what_is_saved_is_fitted(tmp_path):
    nlp = half_trained()
    docs = DocBin(docs=[eg.reference for eg in make_examples(nlp, FLAT)], store_user_data=True)
    docs.to_disk(tmp_path / "dev.spacy")
    nlp.config["corpora"]["dev"]["path"] = str(tmp_path / "dev.spacy")
    before, cfg = scores(nlp), dict(nlp.get_pipe(NAME).cfg)
    saved = make_fit_thresholds(per_label=True, min_gold=1)(nlp)
    assert nlp.get_pipe(NAME).cfg == cfg
    saved.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert loaded.get_pipe(NAME).cfg != cfg and scores(loaded) >= before


def test_gold_without_relations_fits_entities_alone(tmp_path):
    nlp = half_trained()
    nlp.to_disk(tmp_path / "model")
    gold = DocBin(docs=[eg.reference for eg in make_examples(nlp, FLAT)])  # no user data
    gold.to_disk(tmp_path / "dev.spacy")
    arguments = ["thresholds", str(tmp_path / "model"), str(tmp_path / "dev.spacy"), "--in-place"]
    result = CliRunner().invoke(spanner, arguments)
    assert result.exit_code == 0 and "Relations: no gold" in result.output
    assert result.output.count("Precision") == 1
    pipe = spacy.load(tmp_path / "model").get_pipe(NAME)
    assert pipe.relation_threshold == nlp.get_pipe(NAME).relation_threshold
