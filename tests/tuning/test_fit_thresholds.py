"""Thresholds and confidences are fitted when a pipeline is saved, and training does not see it."""

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_spanner.callbacks import make_fit_thresholds
from spacy_spanner.corpus.pairs import unpredicted_pairs
from spacy_spanner.tuning.component import fit_settings

from ..systems import make_examples, make_nlp, train


def trained_with_corpus(tmp_path, steps=4):
    # The paper's form learns slowly, so labels need thresholds of their own.
    nlp = make_nlp("global_pointer", model={"content_width": None})
    examples = make_examples(nlp)
    train(nlp, examples, steps=steps)
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in examples]).to_disk(path)
    nlp.config["corpora"]["dev"]["path"] = str(path)
    return nlp, path


def test_what_is_saved_is_fitted(tmp_path):
    nlp, path = trained_with_corpus(tmp_path)
    pipe = nlp.get_pipe("global_pointer")
    before = dict(pipe.cfg)
    pairs = unpredicted_pairs(nlp, [str(path)])
    _, now, best = fit_settings(nlp, "global_pointer", pairs, fit=True)[""]
    assert best.counts.f_score >= now.counts.f_score and best.scaling != now.scaling
    saved = make_fit_thresholds()(nlp)
    assert isinstance(saved, type(nlp)) and saved.get_pipe("global_pointer").model is pipe.model
    saved.to_disk(tmp_path / "model")
    assert pipe.cfg == before and nlp.config["components"]["global_pointer"]["threshold"] is None
    loaded = spacy.load(tmp_path / "model").get_pipe("global_pointer").cfg
    assert loaded["threshold"] == pytest.approx(best.threshold)
    assert loaded["temperature"] == pytest.approx(best.scaling.temperature)
    assert loaded["bias"] == pytest.approx(best.scaling.bias)
    assert loaded["labels"] == before["labels"]


def test_options(tmp_path):
    nlp, _ = trained_with_corpus(tmp_path)
    saved = make_fit_thresholds(temperature=False, per_label=True, min_gold=1)(nlp)
    cfg = saved.get_pipe("global_pointer").cfg
    assert (cfg["temperature"], cfg["bias"], cfg["label_bias"]) == (1.0, 0.0, {})
    assert cfg["label_thresholds"]


def test_nothing_to_fit(tmp_path):
    """No file to fit on, no gold in it, or no component of ours."""
    nlp, path = trained_with_corpus(tmp_path, steps=1)
    fit = make_fit_thresholds()
    DocBin(docs=[nlp.make_doc("Nothing is annotated here")]).to_disk(path)
    with pytest.warns(UserWarning, match=r"SW20.*'global_pointer': `corpora.dev` has no gold"):
        assert fit(nlp).get_pipe("global_pointer").cfg == nlp.get_pipe("global_pointer").cfg
    nlp.config["corpora"]["dev"]["path"] = None
    assert fit(nlp) is nlp
    assert fit(spacy.blank("en")).pipe_names == []
