"""The logger that tells after training what the heads have to say."""

from io import StringIO

import spacy
from thinc.api import Config

from spacy_spanner.loggers import console_logger, summary
from spacy_spanner.training_config import complete, join_config

TINY = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 50}
TINY.update(window_size=1, maxout_pieces=2, subword_features=True, pretrained_vectors=None)


def make_nlp(*factories):
    nlp = spacy.blank("en")
    examples = []
    doc = nlp.make_doc("a b a")
    doc.ents = [spacy.tokens.Span(doc, 1, 2, label="X")]
    examples.append(spacy.training.Example(nlp.make_doc("a b a"), doc))
    for factory in factories:
        nlp.add_pipe(factory, config={"model": {"tok2vec": TINY}})
    nlp.initialize(lambda: examples)
    return nlp


def test_size_of_the_memory_is_told_after_training():
    nlp = make_nlp("seq_ner", "hierarchical_ner")
    nlp.config["training"]["max_steps"] = 1
    out = StringIO()
    _, finish = console_logger()(nlp, out, out)
    finish()
    # 3 slots of 16 + 256 numbers of 4 bytes, and 2 words in the index.
    assert out.getvalue().splitlines()[-1] == "hierarchical_ner: memory of 3 slots, 0.0 MB"
    assert summary(nlp) == ["hierarchical_ner: memory of 3 slots, 0.0 MB"]


def test_quiet_logger_and_untrained_pipeline_say_nothing():
    nlp = make_nlp("hierarchical_ner")
    out = StringIO()
    _, finish = console_logger(console_output=False)(nlp, out, out)
    finish()
    assert out.getvalue() == ""
    blank = spacy.blank("en")
    blank.add_pipe("hierarchical_ner")
    assert summary(blank) == []


def test_only_the_system_with_a_memory_asks_for_it():
    def logger(system: str) -> str:
        config: Config = complete(join_config(system, "hash"))
        return config["training"]["logger"]["@loggers"]

    assert logger("hierarchical_ner") == "spacy-spanner.ConsoleLogger.v1"
    assert logger("seq_ner") == "spacy.ConsoleLogger.v3"
