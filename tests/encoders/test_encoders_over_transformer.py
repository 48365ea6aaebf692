"""A transformer listener as a part of a joined encoder."""

from __future__ import annotations

import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.tokens import Doc
from spacy.training import Example

from .test_encoders_in_pipeline import make_examples, make_nlp

TRANSFORMER = """
[nlp]
lang = "en"
pipeline = ["transformer", "pointer"]

[components]

[components.transformer]
factory = "transformer"

[components.transformer.model]
@architectures = "spacy-transformers.TransformerModel.v3"
name = "{name}"

[components.pointer]
factory = "global_pointer"

[components.pointer.model]
@architectures = "spacy-spanner.GlobalPointer.v1"

[components.pointer.model.tok2vec]
@architectures = "spacy-spanner.JoinedEncoder.v1"
lstm_width = 8

[components.pointer.model.tok2vec.*.words]
@architectures = "spacy-spanner.TunedVectors.v1"

[components.pointer.model.tok2vec.*.pieces]
@architectures = "spacy-transformers.TransformerListener.v1"
grad_factor = 1.0

[components.pointer.model.tok2vec.*.pieces.pooling]
@layers = "reduce_mean.v1"
"""


@pytest.fixture
def tiny_bert(tmp_path) -> str:
    from transformers import BertConfig, BertModel, BertTokenizerFast

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0159."]
    pieces += [f"##{piece}" for piece in pieces[5:]]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf8")
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    path = tmp_path / "bert"
    BertModel(config).save_pretrained(path)
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(path)
    return path.as_posix()


@pytest.mark.spacy_transformers
def test_gradient_reaches_a_transformer_below(tiny_bert, tmp_path):
    nlp = make_nlp(TRANSFORMER.format(name=tiny_bert))
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.learn_rate = 0.01
    transformer = nlp.get_pipe("transformer").model
    weights = [p for n in transformer.walk() for s in n.shims for p in s._model.parameters()]
    before = [p.detach().clone() for p in weights]
    nothing = Example(Doc(nlp.vocab), Doc(nlp.vocab))
    for _ in range(2):  # thinc's own shim lets the first step pass
        nlp.update([make_examples(nlp)[0], nothing, make_examples(nlp)[1]], sgd=optimizer)
    assert any((p != start).any() for p, start in zip(weights, before, strict=True))
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    for one, two in zip(
        nlp.pipe(["Anna", "", "b c"]), loaded.pipe(["Anna", "", "b c"]), strict=True
    ):
        assert_array_equal(one.spans["sc"].attrs["scores"], two.spans["sc"].attrs["scores"])
