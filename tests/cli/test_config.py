"""`spacy spanner config`: complete files for every system and encoder that spaCy takes as they are."""

import os
import shlex
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_spanner.cli import spanner
from spacy_spanner.pipeline import factories
from spacy_spanner.relations import Relation, register_extensions
from spacy_spanner.training_config import (
    complete,
    component_of,
    is_ours,
    join_config,
    names,
    read_recipe,
    width_limit,
)

from ..minilm import FOLDER
from ..systems import make_examples

MARKS = {"transformer": pytest.mark.spacy_transformers, "huggingface": pytest.mark.huggingface}
ENCODERS = [pytest.param(name, marks=MARKS.get(name, ())) for name in names("encoders")]


def run(*arguments):
    return CliRunner().invoke(spanner, ["config", *map(str, arguments)])


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("system", names("systems"))
def test_every_combination_makes_a_pipeline(system, encoder):
    config = complete(join_config(system, encoder, max_width=6))
    assert spacy.util.load_model_from_config(config).pipe_names[-1] == system
    weights = config["training"]["score_weights"]
    assert sum(weight or 0 for weight in weights.values()) == 1.0


@pytest.mark.parametrize("output,key", [("spans", "spans_mine_f"), ("ents", "ents_f")])
def test_score_weights_follow_the_output(output, key):
    config = complete(join_config("global_pointer", "hash", output=output, spans_key="mine"))
    weights = config["training"]["score_weights"]
    assert {name for name, weight in weights.items() if weight} == {key}
    assert config["components"]["global_pointer"]["spans_key"] == "mine"


def test_writes_one_complete_file(tmp_path):
    path = tmp_path / "new" / "config.cfg"
    result = run("global_pointer", "--encoder", "hash", "--lang", "de", "-o", path)
    assert result.exit_code == 0, result.output
    config = load_config(path)
    assert config["nlp"]["lang"] == "de"
    assert config["components"]["global_pointer"]["model"]["head_size"] == 32
    assert run("global_pointer", "-o", path).exit_code == 1  # never overwrites by itself
    assert run("global_pointer", "-o", path, "--force").exit_code == 0
    assert "[components.global_pointer.model]" in run("global_pointer", "-o", "-").output


@pytest.mark.parametrize(
    "arguments,told",
    [
        (["nonsense"], "global_pointer"),
        (["ner", "-e", "what"], "hash"),
        (["ner", "--output", "x"], "both"),
    ],
)
def test_wrong_names_are_answered_with_the_right_ones(arguments, told, tmp_path):
    result = run(*arguments, "-o", tmp_path / "config.cfg")
    assert result.exit_code == 1 and told in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("system", ["global_pointer", "efficient_global_pointer"])
def test_pointers_have_a_layer_of_their_own_over_small_encoders(system):
    for encoder, width in {"hash": 96, "vectors": 128}.items():
        model = complete(join_config(system, encoder)).interpolate()["components"][system]["model"]
        assert (model["head_size"], model["hidden_width"]) == (32, width)
    large = join_config(system, "transformer")["components"][system]["model"]
    assert large["head_size"] == 64 and "hidden_width" not in large
    assert "hidden_width" not in join_config("seq_ner", "hash").to_str()


WIDTHS = {
    "modularized_interaction": {"hidden": 40, "dropout": 0.3},
    "hierarchical_ner": {"hidden_width": 128, "sentence_width": 64, "dropout": 0.3},
}


@pytest.mark.parametrize("system", WIDTHS)
def test_heads_with_their_own_lstms_are_narrower_over_the_hash_cnn_alone(system):
    def widths(encoder, paper=None):
        model = join_config(system, encoder, paper=paper)["components"][system]["model"]
        return {name: model[name] for name in WIDTHS[system] if name in model}

    assert widths("hash") == WIDTHS[system]
    assert widths("tuned") == widths("tuned_intnet") == widths("huggingface") == {}
    paper = read_recipe(system)
    del paper["recipe"]
    of_paper = {name: paper["component"]["model"][name] for name in WIDTHS[system]}
    assert widths("hash", paper) == of_paper != WIDTHS[system]


def test_relation_classifier_is_a_form_of_the_relation_component():
    pointer, classifier = (
        join_config(system, "hash")["components"][system]
        for system in ("global_pointer_relations", "relation_classifier")
    )
    architecture = classifier["model"].pop("@architectures")
    assert architecture == "spacy-spanner.RelationClassifier.v1"
    assert classifier["model"].items() <= pointer["model"].items()
    settings = {name for name in pointer if name != "model"}
    assert {classifier[name] == pointer[name] for name in settings} == {True}
    assert not hasattr(factories, "make_relation_classifier")  # no factory of its own


def test_max_width_reaches_systems_with_a_limit():
    for system in ("spancat", "span_ner", "bundled_ner", "global_pointer", "locate_and_label"):
        text = join_config(system, "hash", max_width=7).to_str()
        assert "= 7" in text or "[1,2,3,4,5,6,7]" in text.replace(" ", "")
    limits = {system: width_limit(component_of(system)) for system in names("systems")}
    limited = {system for system, limit in limits.items() if limit is not None}
    assert limited == {"spancat", "span_ner", "bundled_ner", "hscrf"}
    assert [system for system in names("systems") if not is_ours(component_of(system))] == [
        "ner",
        "spancat",
    ]


def test_configs_need_no_pipeline_before_them():
    code = (
        "from spacy_spanner.training_config import join_config as j; print(len(j('ner', 'hash')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0 and int(result.stdout) > 3, result.stderr


def test_words_of_the_encoder_reach_the_head_that_reads_them():
    model = join_config("hierarchical_ner", "tuned")["components"]["hierarchical_ner"]["model"]
    assert model["word_width"] == 100
    assert "word_width" not in join_config("seq_ner", "tuned").to_str()


@pytest.mark.huggingface
def test_width_of_the_transformer_is_read_from_its_folder(tmp_path):
    path = tmp_path / "config.cfg"
    result = run("ner", "-e", "huggingface", "--transformer", FOLDER, "-o", path)
    assert result.exit_code == 0, result.output
    config = load_config(path).interpolate()["components"]
    assert config["tok2vec"]["model"]["width"] == config["ner"]["model"]["tok2vec"]["width"] == 384
    assert config["tok2vec"]["model"]["mixed_precision"] == "none"


def test_transformer_that_is_not_there_is_told(tmp_path):
    result = run(
        "ner", "-e", "huggingface", "--transformer", "./nowhere", "-o", tmp_path / "config.cfg"
    )
    assert result.exit_code == 1 and "S08" in result.output
    assert not list(tmp_path.iterdir())


# Recipes of papers

# From a recipe to the system, the encoder, and one setting of the paper with its place.
PAPERS = {
    "global_pointer": ("global_pointer", "training.optimizer.learn_rate", 2e-5),
    "efficient_global_pointer": ("efficient_global_pointer", "recipe.epochs", 30),
    "global_pointer_relations": ("global_pointer_relations", "recipe.batch_size", 64),
    "bert_crf": ("seq_ner", "components.seq_ner.model.tagging", "crf"),
    "seq_ner": ("seq_ner", "components.tok2vec.model.name", "bert-large-cased"),
    "span_ner": ("span_ner", "components.tok2vec.model.pooling", "max"),
    "bundled_ner": ("bundled_ner", "components.bundled_ner.model.seq.scheme", "BIO"),
    "locate_and_label": ("locate_and_label", "components.locate_and_label.threshold", 0.55),
    "modularized_interaction": ("modularized_interaction", "training.optimizer.grad_clip", 5.0),
    "rnn_bilstm_crf": (
        *("modularized_interaction", "components.modularized_interaction.model.use_type", False),
    ),
    "cnn_bilstm_crf": (
        "modularized_interaction",
        "components.modularized_interaction.model.tok2vec.*.chars.@architectures",
        "spacy-spanner.CharCNN.v1",
    ),
    "bilstm_crf": (
        "modularized_interaction",
        "components.modularized_interaction.model.tok2vec.@architectures",
        "spacy-spanner.TunedVectors.v1",
    ),
    "hierarchical_ner": ("hierarchical_ner", "training.optimizer.@optimizers", "SGD.v1"),
}


@pytest.fixture
def sentences(tmp_path):
    register_extensions()
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    first, last = list(docs[0].spans["sc"])[:2]
    docs[0]._.relations = [Relation(first, last, "left")]  # for systems of relations
    DocBin(docs=docs * 20, store_user_data=True).to_disk(tmp_path / "train.spacy")
    return tmp_path / "train.spacy"


def value_at(config, path):
    for part in path.split("."):
        config = config[part]
    return config


def recipe_config(tmp_path, *arguments):
    path = tmp_path / "config.cfg"
    result = run(*arguments, "-F", "-o", path)
    assert result.exit_code == 0, result.output
    return load_config(path).interpolate()


@pytest.mark.huggingface
@pytest.mark.parametrize("name", names("papers"))
def test_recipes_have_the_settings_of_their_papers(name, sentences, tmp_path):
    system, place, value = PAPERS[name]
    config = recipe_config(tmp_path, name, "--recipe", "paper", "--corpus", sentences)
    assert config["nlp"]["pipeline"][-1] == system and value_at(config, place) == value
    recipe, training = config["recipe"], config["training"]
    assert training["batcher"]["size"] == recipe["batch_size"]
    steps = -(-80 // recipe["batch_size"])
    assert training["max_steps"] == steps * recipe["epochs"]
    assert training["eval_frequency"] == steps and training["before_to_disk"] is None
    rate = training["optimizer"]["learn_rate"]
    if isinstance(rate, dict) and "steps_per_epoch" in rate:
        assert rate["steps_per_epoch"] == steps
    component = config["components"][system]
    assert (component["join_training"], component["pack_sentences"]) == (0, False)
    assert component["model"]["learn_rate_scale"] == 1
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    assert nlp.pipe_names[-1] == system


@pytest.mark.huggingface
def test_recipes_know_the_corpora_of_a_paper(sentences, tmp_path):
    arguments = "locate_and_label", "--corpus", sentences, "--recipe"
    config = recipe_config(tmp_path, *arguments, "paper/genia")
    assert config["components"]["locate_and_label"]["threshold"] == 0.45
    assert config["training"]["optimizer"]["learn_rate"]["initial_rate"] == 5e-6
    result = run(*arguments, "paper/nonsense", "-F", "-o", tmp_path / "config.cfg")
    assert result.exit_code == 1 and "paper/kbp17" in result.output


def test_a_baseline_needs_no_recipe_beside_its_name(sentences, tmp_path):
    config = recipe_config(tmp_path, "bilstm_crf", "--corpus", sentences)
    assert config["training"]["optimizer"]["learn_rate"]["initial_rate"] == 0.01


@pytest.mark.parametrize(
    "arguments",
    [["bilstm_crf"], ["seq_ner", "--recipe", "x"], ["ner", "--recipe", "paper"]],
)
def test_recipes_that_cannot_be_are_refused(arguments, tmp_path):
    result = run(*arguments, "-o", tmp_path / "config.cfg")
    assert result.exit_code == 1 and ("S161" in result.output or "S110" in result.output)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["ner", "--output", "spans"], "--output"),
        (["spancat", "--output", "both"], "--output"),
        (["hscrf", "-e", "hash", "--optimize", "accuracy"], "choose --encoder lstm"),
        (["seq_ner", "-e", "lstm", "--mixed-precision"], "--encoder huggingface or transformer"),
        (["global_pointer", "--recipe", "paper", "--optimize", "accuracy"], "Leave it out."),
    ],
)
def test_options_without_effect_are_refused(arguments, told, sentences, tmp_path):
    path = tmp_path / "config.cfg"
    result = run(*arguments, "--corpus", sentences, "-o", path)
    text = " ".join(result.output.split())
    assert result.exit_code == 1 and "S255" in text and told in text
    assert not path.exists()


def test_vectors_that_are_not_here_are_named(tmp_path):
    """They may be where the config is used."""
    here, path = tmp_path / "vectors", tmp_path / "config.cfg"
    here.mkdir()
    for vectors, told in [("nowhere", True), (here, False)]:
        result = run("ner", "--vectors", vectors, "-F", "-o", path)
        assert result.exit_code == 0 and ("SW27" in result.output) is told


def test_auto_has_no_recipe(sentences, tmp_path):
    arguments = ["auto", "--recipe", "paper", "--corpus", sentences]
    result = run(*arguments, "-o", tmp_path / "config.cfg")
    assert result.exit_code == 1 and "S256" in result.output and "seq_ner" in result.output


def test_the_command_has_the_development_data_beside_the_corpus(sentences, tmp_path):
    folder = tmp_path / "my corpus"
    folder.mkdir()
    train = sentences.rename(folder / "train.spacy")
    arguments = ["ner", "--corpus", train, "-F", "-o", tmp_path / "config.cfg"]
    for dev in ("dev.spacy", str(folder / "dev.spacy")):
        words = shlex.split(run(*arguments).stdout.splitlines()[-1])
        assert words[words.index("--paths.train") + 1] == str(train)
        assert words[words.index("--paths.dev") + 1] == dev
        (folder / "dev.spacy").touch()


@pytest.mark.parametrize("name", ["hierarchical_ner", "cnn_bilstm_crf"])
def test_recipes_train(name, sentences, tmp_path):
    recipe_config(tmp_path, name, "--recipe", "paper", "--corpus", sentences)
    overrides = {"paths.train": str(sentences), "paths.dev": str(sentences)}
    config = load_config(
        tmp_path / "config.cfg", overrides={**overrides, "training.max_steps": 3}, interpolate=True
    )
    with open(os.devnull, "w") as nowhere:
        train(init_nlp(config), None, stdout=nowhere, stderr=nowhere)
