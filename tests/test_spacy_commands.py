"""spaCy's own commands on our components: train, evaluate, thresholds, labels, speed, package."""

import os
import shutil
import subprocess
import sys

import numpy
import pytest
import spacy
import srsly
from spacy.cli.benchmark_speed import benchmark
from spacy.cli.debug_data import debug_data
from spacy.cli.evaluate import evaluate
from spacy.cli.find_threshold import find_threshold
from spacy.cli.init_config import fill_config
from spacy.cli.init_pipeline import init_labels_cli
from spacy.cli.package import package
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin

from spacy_spanner.training_config import complete, join_config

from .systems import TEXTS, found, make_examples, trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus, a config, and a pipeline that `spacy train` made from them."""
    path = tmp_path_factory.mktemp("commands")
    nlp = spacy.blank("en")
    docs = [eg.reference for eg in make_examples(nlp)] * 6
    DocBin(docs=docs).to_disk(path / "data.spacy")
    config = complete(join_config("global_pointer", "hash"))
    config["paths"].update(train=str(path / "data.spacy"), dev=str(path / "data.spacy"))
    config["training"].update(max_steps=60, eval_frequency=30)
    config["training"]["optimizer"]["learn_rate"] = 0.005
    config.to_disk(path / "config.cfg")
    train(path / "config.cfg", path / "out")
    return path


def test_train_and_evaluate(folder):
    scores = evaluate(str(folder / "out" / "model-best"), folder / "data.spacy", spans_key="sc")
    assert scores["spans_sc_f"] > 0.9
    assert set(scores["spans_sc_per_type"]) == {"PER", "ORG", "LOC"}


def test_training_can_be_resumed_from_a_source(folder, tmp_path):
    config = complete(join_config("global_pointer", "hash"))
    for name in ("tok2vec", "global_pointer"):
        config["components"][name] = {"source": str(folder / "out" / "model-last")}
    config["paths"].update(train=str(folder / "data.spacy"), dev=str(folder / "data.spacy"))
    config["training"].update(max_steps=5, eval_frequency=5)
    config.to_disk(tmp_path / "config.cfg")
    train(tmp_path / "config.cfg", tmp_path / "out")
    scores = evaluate(str(tmp_path / "out" / "model-best"), folder / "data.spacy", spans_key="sc")
    assert scores["spans_sc_f"] > 0.9


def test_find_threshold(folder):
    best, score, all_scores = find_threshold(
        str(folder / "out" / "model-best"),
        folder / "data.spacy",
        "global_pointer",
        "threshold",
        "spans_sc_f",
        n_trials=5,
    )
    assert 0 < best < 1 and score > 0.9 and len(all_scores) == 5
    assert all_scores[1.0] == 0.0  # the threshold really reaches the component
    assert numpy.isclose(score, max(all_scores.values()))


def test_init_labels_and_use_them(folder, tmp_path):
    init_labels_cli(
        FakeContext(), folder / "config.cfg", tmp_path, code_path=None, verbose=False, use_gpu=-1
    )
    labels = srsly.read_json(tmp_path / "global_pointer.json")
    assert set(labels) == {"PER", "ORG", "LOC"}
    nlp = spacy.util.load_model_from_config(spacy.util.load_config(folder / "config.cfg"))
    nlp.get_pipe("global_pointer").initialize(lambda: make_examples(nlp), labels=labels)
    assert nlp.get_pipe("global_pointer").labels == tuple(labels)


class FakeContext:
    args = ()


def test_fill_config_debug_data_and_benchmark(folder, tmp_path, capsys):
    fill_config(tmp_path / "filled.cfg", folder / "config.cfg")
    assert spacy.util.load_config(tmp_path / "filled.cfg")["components"]
    with pytest.raises(SystemExit):  # it reads everything, then calls 24 sentences too few
        debug_data(folder / "config.cfg", silent=True)
    nlp = spacy.load(folder / "out" / "model-best")
    docs = [nlp.make_doc(text) for text in TEXTS]
    assert (benchmark(nlp, docs, 3, 2, False) > 0).all()
    capsys.readouterr()


@pytest.mark.slow
def test_installed_package_runs_without_the_training_files(folder, tmp_path):
    package(folder / "out" / "model-best", tmp_path, name="spanner_test", create_wheel=True)
    [wheel] = tmp_path.glob("**/*.whl")
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "--no-deps", "-q", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, *install], check=True)
    code = "import en_spanner_test as m; print(len(m.load()('Lind met Calder').spans['sc']))"
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=site, env=environment
    )
    assert int(result.stdout) >= 0


def test_package_names_us_as_a_requirement(folder, tmp_path):
    package(folder / "out" / "model-best", tmp_path, name="spanner_test", create_sdist=False)
    meta = srsly.read_json(next(tmp_path.glob("**/meta.json")))
    assert any(requirement.startswith("spacy-spanner") for requirement in meta["requirements"])
    nlp = spacy.load(next(tmp_path.glob("*/en_spanner_test/en_spanner_test-*")))
    expected = [found(doc) for doc in [spacy.load(folder / "out" / "model-best")(t) for t in TEXTS]]
    assert [found(doc) for doc in [nlp(text) for text in TEXTS]] == expected
    shutil.rmtree(tmp_path)


def test_a_document_of_fifty_thousand_tokens():
    nlp = trained("global_pointer", steps=40)
    words = [token.text for text in TEXTS for token in nlp.make_doc(text)]
    doc = Doc(nlp.vocab, words=(words * (50_000 // len(words) + 1))[:50_000])
    doc = nlp.get_pipe("global_pointer")(doc)
    starts = numpy.array([span.start for span in doc.spans["sc"]])
    assert len(starts) > 50_000 // len(words) * 8  # ten entities in the four sentences
    assert starts.max() > 49_900
    assert len({(s.start, s.end, s.label) for s in doc.spans["sc"]}) == len(starts)
