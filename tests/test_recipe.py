"""What a config takes from the corpus."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_spanner.cli import spanner
from spacy_spanner.corpus.stats import Settings, Stats, count_doc
from spacy_spanner.recipe import FEWEST, MOST, RECOMMENDED, fit_to_corpus, recommend
from spacy_spanner.training_config import join_config, names, own_output

from .systems import make_examples


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "train.spacy"
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(path)
    return path


@pytest.fixture
def flat_corpus(tmp_path):
    """Entities only, no span group."""
    doc = Doc(spacy.blank("en").vocab, words=["a", "b"], ents=["O", "B-X"])
    DocBin(docs=[doc] * 3).to_disk(tmp_path / "flat.spacy")
    return tmp_path / "flat.spacy"


def run(tmp_path, *arguments):
    target = tmp_path / "config.cfg"
    result = CliRunner().invoke(spanner, ["config", *map(str, arguments), "-F", "-o", str(target)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split()), load_config(target).interpolate()


@pytest.mark.parametrize("encoder", names("encoders"))
@pytest.mark.parametrize("tokens", [0, 10_000, 100_000_000])
def test_training_does_not_end_while_the_rate_rises(encoder, tokens):
    config = join_config("global_pointer", encoder)
    for fitted in (False, True):
        if fitted:
            fit_to_corpus(config, Stats(tokens=tokens))
        training = config["training"]
        rate = training["optimizer"]["learn_rate"]
        assert rate["total_steps"] == "${training.max_steps}"
        rising = rate["warmup"] * training["max_steps"]
        assert rising < training["patience"] < training["max_steps"]
        assert training["eval_frequency"] < training["patience"]
    assert FEWEST <= training["max_steps"] <= MOST


@pytest.mark.parametrize(
    "system, encoder, rate",
    [
        ("global_pointer", "hash", 0.002),
        ("span_ner", "hash", 0.003),
        ("bundled_ner", "vectors", 0.003),
        ("span_ner", "lstm", 0.003),
        ("span_ner", "huggingface", 5e-5),
    ],
)
def test_span_classifiers_have_a_rate_of_their_own_over_small_encoders(system, encoder, rate):
    config = join_config(system, encoder)
    assert config["training"]["optimizer"]["learn_rate"]["initial_rate"] == rate
    assert "small_encoder" not in config


@pytest.mark.parametrize("system", ["global_pointer", "global_pointer_relations", "ner"])
def test_the_small_bilstm_reads_sentence_by_sentence(system):
    assert join_config(system, "lstm")["components"]["tok2vec"]["model"]["by_sentence"] is True


@pytest.mark.parametrize("words, layers", [(None, 1), (10_000, 0), (20_000, 0), (20_001, 1)])
@pytest.mark.parametrize("system", ["global_pointer", "efficient_global_pointer", "span_ner"])
def test_spans_are_scored_by_their_content_over_the_small_bilstm(system, words, layers):
    model = join_config(system, "lstm", words=words)["components"][system]["model"]
    if system != "span_ner":
        assert model["loss"] == ("multilabel_start" if layers else "multilabel")
    bundle = join_config("bundled_ner", "lstm", words=words, max_width=7)
    part = bundle["components"]["bundled_ner"]["model"]["span"]
    assert part["max_width"] == 7
    for block in (model, part):
        assert (block["content_width"], block["content_layers"]) == (64, layers)
        assert block["content_product"] and block["content_norm"] == bool(layers)


@pytest.mark.parametrize("encoder, decode_from", [("lstm", "both"), ("hash", None)])
def test_both_heads_of_a_bundle_answer_over_the_small_bilstm(encoder, decode_from):
    model = join_config("bundled_ner", encoder)["components"]["bundled_ner"]["model"]
    assert model.get("decode_from") == decode_from  # none: that of the paper


@pytest.mark.parametrize("system", names("systems"))
@pytest.mark.parametrize("encoder", names("encoders"))
def test_blocks_of_overlays_are_used_up(system, encoder):
    """What overlays say of heads and of corpora is no section of a config."""
    config = join_config(system, encoder, words=100)
    left = {"head", "pointer", "content", "words", "systems", "small_corpus", "with_vectors"}
    assert not left & config.keys()


def test_auto_looks_at_nesting(tmp_path, corpus, flat_corpus):
    told, config = run(tmp_path, "auto", "--corpus", corpus)
    assert config["nlp"]["pipeline"] == ["tok2vec", RECOMMENDED] and f"{RECOMMENDED}: " in told
    assert config["components"][RECOMMENDED]["output"] == "both"
    assert config["components"][RECOMMENDED]["overlaps"] == "outermost"
    told, config = run(tmp_path, "auto", "--corpus", flat_corpus, "--vectors", "somewhere")
    assert config["nlp"]["pipeline"] == ["tok2vec", RECOMMENDED] and "somewhere" in told
    assert config["components"][RECOMMENDED]["output"] == "ents"
    assert config["components"][RECOMMENDED]["overlaps"] == "best"
    assert config["initialize"]["vectors"] == "somewhere"
    assert config["components"]["tok2vec"]["model"]["@architectures"].endswith("LSTMEncoder.v1")


def test_auto_gives_no_reason_for_what_was_chosen(tmp_path, corpus):
    told, config = run(tmp_path, "auto", "--corpus", corpus, "--encoder", "hash")
    assert "hash: chosen by --encoder" in told and "GPU" not in told and "lstm" not in told
    assert config["components"]["tok2vec"]["model"]["@architectures"] == "spacy.Tok2Vec.v2"


@pytest.mark.parametrize("system", ["seq_ner", "bundled_ner", "hscrf", "global_pointer"])
@pytest.mark.parametrize("output, levels", [("both", 2), ("spans", 2), ("ents", 1), (None, 1)])
def test_taggers_have_the_levels_of_the_corpus(tmp_path, corpus, system, output, levels):
    """Where their output can hold nested entities."""
    wanted = [] if output is None else ["--output", output]
    model = run(tmp_path, system, "--corpus", corpus, *wanted)[1]["components"][system]["model"]
    tagger = model["seq"] if system == "bundled_ner" else model
    assert tagger.get("levels") == (levels if system in ("seq_ner", "bundled_ner") else None)
    if system == "bundled_ner":
        assert tagger["scheme"] == "BIOES"


@pytest.mark.huggingface
def test_recipes_of_papers_have_one_level(tmp_path, corpus):
    words = ["bundled_ner", "--recipe", "paper", "--corpus", corpus, "--output", "both"]
    model = run(tmp_path, *words)[1]["components"]["bundled_ner"]["model"]
    assert (model["seq"] or {}).get("levels", 1) == 1


def test_flat_spans_of_a_group_give_the_most_probable_entities(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["a", "b"], ents=["O", "B-X"])
    doc.spans["sc"] = list(doc.ents)
    DocBin(docs=[doc] * 3).to_disk(tmp_path / "flat.spacy")
    component = run(tmp_path, "auto", "--corpus", tmp_path / "flat.spacy")[1]["components"][
        RECOMMENDED
    ]
    assert (component["output"], component["overlaps"]) == ("both", "best")


def test_auto_names_what_it_does_not_learn(tmp_path, corpus):
    """Span groups under another key, and a corpus without any spans."""
    docs = [eg.reference for eg in make_examples(spacy.blank("en"), spans_key="nested")]
    DocBin(docs=docs).to_disk(corpus)
    told, config = run(tmp_path, "auto", "--corpus", corpus)
    assert (
        "SW21" in told
        and "nested" in told
        and config["components"][RECOMMENDED]["output"] == "ents"
    )
    assert "SW21" not in run(tmp_path, "auto", "--corpus", corpus, "--spans-key", "nested")[0]
    for doc in docs:
        doc.spans["sc"] = []
    DocBin(docs=docs).to_disk(corpus)
    arguments = ["config", "auto", "--corpus", str(corpus), "-o", str(tmp_path / "other.cfg")]
    result = CliRunner().invoke(spanner, arguments)
    assert result.exit_code == 1 and "S250" in result.output


def write_part(path, *, ents, spans):
    """The examples with some of their annotation alone."""
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))]
    for doc in docs:
        if not spans:
            doc.spans.pop("sc")
        if not ents:
            doc.set_ents([], default="missing")
    DocBin(docs=docs).to_disk(path)


@pytest.mark.parametrize("system", ["global_pointer", "bundled_ner", "seq_ner", "spancat", "ner"])
@pytest.mark.parametrize("kind", ["ents", "spans", "both"])
def test_a_config_learns_what_the_corpus_has(tmp_path, system, kind):
    """spaCy's own components cannot, elsewhere than they do."""
    path = tmp_path / "part.spacy"
    write_part(path, ents=kind != "spans", spans=kind != "ents")
    default, ours = own_output(system)
    fits = kind in (default, "both")
    if not ours and not fits:
        arguments = ["config", system, "--corpus", str(path), "-o", str(tmp_path / "config.cfg")]
        result = CliRunner().invoke(spanner, arguments)
        assert result.exit_code == 1 and f"{system} learns from" in " ".join(result.output.split())
        assert "S253" in result.output and not (tmp_path / "config.cfg").exists()
        return
    told, config = run(tmp_path, system, "--corpus", path)
    assert ("output = " in told) is not fits
    overrides = {"paths.train": str(path), "paths.dev": str(path)}
    overrides = {**overrides, "corpora.train.max_tokens": 0, "initialize.after_init": None}
    config = load_config(tmp_path / "config.cfg", overrides=overrides, interpolate=True)
    nlp = init_nlp(config)  # S001 and S002 would be here
    assert {"PER", "ORG"} <= set(nlp.get_pipe(system).labels)
    if ours:
        output = default if fits else {"ents": "ents", "spans": "both"}[kind]
        assert nlp.get_pipe(system).output == output
        score = "ents_f" if output == "ents" else "spans_sc_f"
        assert config["training"]["score_weights"][score] == 1.0


def test_the_output_of_the_user_stays(tmp_path, corpus):
    write_part(tmp_path / "ents.spacy", ents=True, spans=False)
    chosen = ["global_pointer", "--corpus", corpus, "--output", "ents"]
    assert run(tmp_path, *chosen)[1]["components"]["global_pointer"]["output"] == "ents"
    arguments = ["config", "global_pointer", "--output", "spans", "-o", str(tmp_path / "new.cfg")]
    result = CliRunner().invoke(spanner, [*arguments, "--corpus", str(tmp_path / "ents.spacy")])
    assert result.exit_code == 1 and "S023" in result.output


@pytest.mark.parametrize("system", ["global_pointer_relations", "relation_classifier"])
def test_relations_are_not_learned_from_a_corpus_without_any(tmp_path, corpus, system):
    arguments = ["config", system, "--corpus", str(corpus), "-o", str(tmp_path / "new.cfg")]
    result = CliRunner().invoke(spanner, arguments)
    assert result.exit_code == 1 and "S254" in result.output


def test_standard_output_has_the_config_alone(tmp_path, flat_corpus):
    arguments = ["config", "global_pointer", "--corpus", str(flat_corpus), "-o", "-"]
    result = CliRunner().invoke(spanner, arguments)
    assert "output = ents" in result.stderr and result.stdout.startswith("[")


def test_spans_that_overlap_others_are_counted_once():
    """Two labels are the same tokens twice, so such spans are nested as well."""
    stats = Stats(docs=1)
    doc = Doc(spacy.blank("en").vocab, words=list("abcdefgh"))
    ends = [(0, 4), (1, 2), (1, 2), (3, 5), (6, 7)]
    labels = ["A", "A", "B", "A", "A"]
    doc.spans["sc"] = [Span(doc, *own, label) for own, label in zip(ends, labels, strict=True)]
    count_doc(doc, Settings(), stats)
    assert (stats.spans, stats.overlapping) == (5, 4)
    [told, _] = recommend(stats).reasons
    assert "4 of 5 spans" in told


def test_a_transformer_is_taken_with_a_gpu_alone(monkeypatch):
    monkeypatch.setattr("spacy_spanner.recipe.find_spec", lambda name: True)
    for gpu, encoder in [(True, "huggingface"), (False, "lstm")]:
        monkeypatch.setattr("spacy_spanner.recipe.has_torch_cuda_gpu", gpu)
        monkeypatch.setattr("spacy_spanner.recipe.has_cupy_gpu", gpu)
        assert recommend(Stats(), transformer="some-model").encoder == encoder
        assert recommend(Stats()).encoder == "lstm"
    monkeypatch.setattr("spacy_spanner.recipe.has_torch_cuda_gpu", True)
    monkeypatch.setattr("spacy_spanner.recipe.find_spec", lambda name: None)
    choice = recommend(Stats(), transformer="some-model")
    assert choice.encoder == "lstm" and "spacy-spanner[huggingface]" in choice.reasons[1]
    assert "no transformer was given" in recommend(Stats()).reasons[1]


def test_auto_needs_a_corpus(tmp_path):
    result = CliRunner().invoke(spanner, ["config", "auto", "-o", str(tmp_path / "config.cfg")])
    assert result.exit_code == 1 and "--corpus" in result.output


def test_options_reach_the_config(tmp_path, corpus):
    small = run(tmp_path, "spancat", "-e", "lstm", "--no-fit", "--corpus", corpus)[1]
    large = run(tmp_path, "spancat", "-e", "lstm", "--optimize", "accuracy")[1]
    assert small["training"].get("before_to_disk") is None
    assert large["training"]["before_to_disk"]["corpus"] == "corpora.dev"
    assert small["components"]["spancat"]["suggester"]["max_size"] == 3  # the widest of the corpus
    blocks = [config["components"]["tok2vec"]["model"] for config in (small, large)]
    assert blocks[0]["width"] < blocks[1]["width"] and blocks[0]["layers"] < blocks[1]["layers"]
    assert large["components"]["spancat"]["model"]["tok2vec"]["width"] == blocks[1]["width"]


@pytest.mark.parametrize(
    "vectors,words,width",
    [(None, 1000, None), ("VECTORS", None, 0), ("VECTORS", 1000, 0), ("VECTORS", 200_000, None)],
)
def test_a_small_corpus_has_no_hash_features_beside_static_vectors(vectors, words, width):
    config = join_config("global_pointer", "lstm", vectors=vectors, words=words)
    assert config["components"]["tok2vec"]["model"].get("feature_width") == width
    assert "with_vectors" not in config


@pytest.mark.parametrize(
    "words,size", [(None, 500), (10_189, 200), (26_525, 500), (1_000_000, 500), (10, 100)]
)
def test_a_tagger_has_smaller_batches_for_a_small_corpus(words, size):
    assert join_config("seq_ner", "hash", words=words)["training"]["batcher"]["size"] == size
    assert join_config("span_ner", "hash", words=words)["training"]["batcher"]["size"] == 500
