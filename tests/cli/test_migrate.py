"""`spacy spanner migrate`: configs and trained pipelines of spacy-transformers over the new encoder."""

from __future__ import annotations

import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.tokens import DocBin
from spacy.util import load_config
from thinc.api import Config, fix_random_seed
from typer.testing import CliRunner

from spacy_spanner.cli import spanner
from spacy_spanner.migration.check import SAMPLE
from spacy_spanner.migration.config import migrate_config
from spacy_spanner.training_config import join_config

from ..encoders.test_huggingface_pipeline import NER, TAGGER, tagged_examples
from ..encoders.tiny_transformers import WIDTH, save
from ..systems import make_examples

LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "upstream": "*",
    "pooling": {"@layers": "reduce_mean.v1"},
}


def run(*arguments):
    return CliRunner().invoke(spanner, ["migrate", *map(str, arguments)])


def old_config(**changes) -> Config:
    config = join_config("global_pointer", "transformer")
    config["components"]["transformer"]["model"].update(changes)
    config["components"]["ner"] = {"factory": "ner", "model": {"tok2vec": {**LISTENER}}}
    return config


def migrated(config: Config):
    return migrate_config(config, widths=lambda component, transformer: 768)


def test_config_says_the_same_over_the_new_encoder():
    result = migrated(old_config())
    assert "spacy-transformers." not in result.config.to_str()  # no registered name of it
    transformer = result.config["components"]["transformer"]
    assert transformer["factory"] == "tok2vec"
    assert transformer["model"] == {
        "@architectures": "spacy-spanner.HuggingFaceEncoder.v1",
        "name": "roberta-base",
        "width": 768,
        "window": 128,
        "stride": 96,
        "overlap": "spacy-transformers",
        "pooling": "mean",
        "mixed_precision": "none",
    }
    filled = result.config.interpolate()["components"]
    for name in ("global_pointer", "ner"):
        listener = filled[name]["model"]["tok2vec"]
        assert listener["@architectures"] == "spacy.Tok2VecListener.v1"
        assert listener["width"] == 768
    assert result.listeners == ["global_pointer", "ner"] and result.notes == []
    assert "spacy-transformers" in old_config().to_str()


def test_transformer_inside_a_component():
    config = old_config()
    model = config["components"].pop("transformer")["model"]
    block = {**model, "@architectures": "spacy-transformers.Tok2VecTransformer.v3"}
    block["pooling"] = {"@layers": "reduce_first.v1"}
    for name in ("global_pointer", "ner"):
        config["components"][name]["model"]["tok2vec"] = {**block}
    result = migrated(config)
    assert "spacy-transformers." not in result.config.to_str()  # no registered name of it
    assert result.config["components"]["ner"]["model"]["tok2vec"]["pooling"] == "first"


@pytest.mark.parametrize(
    "getter, expected",
    [
        ("sent_spans", {"split": "sentences", "window": None}),
        ("doc_spans", {"window": None}),
    ],
)
def test_other_span_getters(getter, expected):
    block = {"@span_getters": f"spacy-transformers.{getter}.v1"}
    model = migrated(old_config(get_spans=block)).config["components"]["transformer"]["model"]
    assert {key: model[key] for key in expected} == expected


def test_what_was_left_out_is_told():
    config = old_config(tokenizer_config={"use_fast": True, "add_prefix_space": True})
    setter = {"@annotation_setters": "mine.v1"}
    config["components"]["transformer"].update(max_batch_items=4096, set_extra_annotations=setter)
    config["components"]["ner"]["model"]["tok2vec"]["grad_factor"] = 0.5
    notes = " ".join(migrated(config).notes)
    assert "add_prefix_space" in notes and "mine.v1" in notes and "0.5" in notes


def test_what_has_no_counterpart_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"S087.*no component"):
        migrated(join_config("global_pointer", "hash"))
    with pytest.raises(ValueError, match=r"S087.*custom"):
        migrated(old_config(get_spans={"@span_getters": "custom"}))
    config = old_config()
    config["components"]["ner"]["model"]["tok2vec"]["pooling"] = {"@layers": "reduce_max.v1"}
    with pytest.raises(ValueError, match=r"S087.*reduce_max.*reduce_mean"):
        migrated(config)
    path = tmp_path / "old.cfg"
    join_config("global_pointer", "hash").to_disk(path)
    result = run(path, tmp_path / "new.cfg")
    assert result.exit_code == 1 and "S087" in result.output
    assert not (tmp_path / "new.cfg").exists()


@pytest.mark.huggingface
def test_file_is_rewritten(tmp_path):
    folder = save(tmp_path / "model", "bert")
    path = tmp_path / "old.cfg"
    join_config("ner", "transformer", transformer=str(folder)).to_disk(path)
    assert run(path, tmp_path / "new.cfg").exit_code == 0
    config = load_config(tmp_path / "new.cfg").interpolate()
    assert config["components"]["ner"]["model"]["tok2vec"]["width"] == WIDTH
    assert run(path, tmp_path / "new.cfg").exit_code == 1  # never overwrites by itself


def trained_pipeline(tmp_path, kind):
    """Small windows, so that words are in several."""
    folder = save(tmp_path / "model", kind, positions=200)
    fix_random_seed(0)
    nlp = spacy.blank("en")
    spans = {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 12, "stride": 9}
    model = {"@architectures": "spacy-transformers.TransformerModel.v3", "name": str(folder)}
    nlp.add_pipe("transformer", config={"model": {**model, "get_spans": spans}})
    nlp.add_pipe("ner", config={"model": {**NER, "tok2vec": LISTENER}})
    nlp.add_pipe("tagger", config={"model": {**TAGGER, "tok2vec": LISTENER}})
    pointer = {"@architectures": "spacy-spanner.GlobalPointer.v1", "tok2vec": LISTENER}
    nlp.add_pipe("global_pointer", config={"model": pointer, "threshold": 0.3})
    examples = tagged_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.005
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    return nlp


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_trained_pipeline_gives_the_same(tmp_path, kind):
    nlp = trained_pipeline(tmp_path, kind)
    nlp.to_disk(tmp_path / "old")
    result = run(tmp_path / "old", tmp_path / "new")
    assert result.exit_code == 0 and "is the same" in result.output, result.output
    new = spacy.load(tmp_path / "new")
    assert new.pipe_names == nlp.pipe_names
    texts = [*SAMPLE, *(example.text for example in make_examples(nlp))]
    for one, two in zip(nlp.pipe(texts), new.pipe(texts), strict=True):
        assert [e.text for e in one.ents] == [e.text for e in two.ents]
        assert [t.tag_ for t in one] == [t.tag_ for t in two]
        left, right = one.spans["sc"], two.spans["sc"]
        assert [s.text for s in left] == [s.text for s in right]
        assert_allclose(left.attrs["scores"], right.attrs["scores"], atol=1e-4)
    assert any(doc.spans["sc"] for doc in new.pipe(texts))
    new.update(tagged_examples(new), sgd=new.resume_training())  # and it still learns


@pytest.mark.spacy_transformers
def test_check_tells_a_difference(tmp_path):
    nlp = trained_pipeline(tmp_path, "bert")
    nlp.to_disk(tmp_path / "old")
    docs = list(nlp.pipe(SAMPLE))
    same, other = tmp_path / "same.spacy", tmp_path / "other.spacy"
    DocBin(docs=docs).to_disk(same)
    docs[0][1].tag_ = "OTHER"
    DocBin(docs=docs).to_disk(other)
    assert run(tmp_path / "old", tmp_path / "new", "--check", same).exit_code == 0
    result = run(tmp_path / "old", tmp_path / "new", "--check", other, "--force")
    assert result.exit_code == 1 and "1 of 5" in result.output and "tags" in result.output
