"""A small training run, and what the tests of training ask of it."""

import sys
import time

import spacy
import torch
from spacy.cli._util import app
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401
from spacy_spanner.distributed.parameters import (
    parameters_of,
    trained_pipes,
)
from spacy_spanner.distributed.ranks import Ranks
from spacy_spanner.distributed.training import Trainer

from ..systems import TOK2VEC
from .small import start

ONE = Ranks(0, 1, torch.device("cpu"))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "spacy"]


TRAINING = """
[paths]
train = null
dev = null

[corpora]
[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}
[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}

[training]
seed = 1
dropout = 0.0
max_steps = 19
eval_frequency = 10
patience = 0

[training.batcher]
@batchers = "spacy.batch_by_sequence.v1"
size = 4

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.01
# Adam turns gradients that are only rounding errors into full steps where eps is smaller.
eps = 0.001
use_averages = false
"""


def write_equal_lengths(path, nlp, count):
    """Sentences of one length: batches of as many weigh the same, whatever rank they are on."""
    places = ["Torvik", "Riga", "Oslo", "Visby", "Turku"]
    docs = []
    for i in range(count):
        words = f"Ada Lind left the port of {places[i % 5]} in {places[i % 3]} .".split()
        doc = Doc(nlp.vocab, words=words)
        spans = [(0, 2, "PER"), (4, 7, "LOC"), (6, 7, "LOC"), (8, 9, "LOC")]
        doc.spans["sc"] = [Span(doc, *span) for span in spans]
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)
    return path


def write_config(folder):
    """A complete config with a shared tok2vec, and its data."""
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": TOK2VEC["width"]}
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    model = {"head_size": 16, "tok2vec": listener}
    # No chance in what is joined, as in what is dropped: two runs must take the same steps.
    nlp.add_pipe("global_pointer", config={"model": model, "join_training": 0.0})
    filled = nlp.config.merge(Config().from_str(TRAINING, interpolate=False))
    corpus = write_equal_lengths(folder / "train.spacy", nlp, 24)
    filled["paths"].update(train=str(corpus), dev=str(corpus))
    filled.to_disk(folder / "config.cfg")
    return folder / "config.cfg"


def weights(path_or_nlp):
    nlp = path_or_nlp if isinstance(path_or_nlp, spacy.Language) else spacy.load(path_or_nlp)
    return [parameter.value().clone() for parameter in parameters_of(trained_pipes(nlp, []))]


def distance(first, second):
    return max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True))


def make_trainer(config, output=None, **overrides):
    overrides = {f"training.{name}": value for name, value in overrides.items()}
    nlp = init_nlp(load_config(config, overrides=overrides, interpolate=False))
    return Trainer(nlp, output, ONE)


def run_ranks(config, output, *args):
    return start(*TORCHRUN, "spanner", "train", config, "--output", output, *args)


def wait_for(condition, process, seconds=300):
    end = time.time() + seconds
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.time() < end
        time.sleep(0.05)


def run(*args):
    result = CliRunner().invoke(app, ["spanner", "train", *map(str, args)])
    return result.exit_code, " ".join(result.output.split())
