"""Training on several ranks: the same steps as one process takes with larger batches."""

import os
import random
import re
import shutil
import signal
import sys
import time
from itertools import islice

import pytest
import spacy
import torch
from spacy.cli._util import app
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401
from spacy_spanner.distributed.checkpoints import LAST, CheckpointError, restore, swap
from spacy_spanner.distributed.parameters import (
    add_gradients,
    buckets,
    parameters_of,
    share_overflow,
    trained_pipes,
)
from spacy_spanner.distributed.ranks import RankLost, Ranks
from spacy_spanner.distributed.training import Stopped, Trainer, join_batches

from ..systems import TOK2VEC, make_examples, make_nlp
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


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A complete config with a shared tok2vec, and its data."""
    folder = tmp_path_factory.mktemp("training")
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


def write_equal_lengths(path, nlp, count):
    """Sentences of one length: batches of as many weigh the same, whatever rank they are on."""
    places = ["Torvik", "Riga", "Oslo", "Visby", "Turku"]
    docs = []
    for i in range(count):
        words = [
            "Ada",
            "Lind",
            "left",
            "the",
            "port",
            "of",
            places[i % 5],
            "in",
            places[i % 3],
            ".",
        ]
        doc = Doc(nlp.vocab, words=words)
        spans = [(0, 2, "PER"), (4, 7, "LOC"), (6, 7, "LOC"), (8, 9, "LOC")]
        doc.spans["sc"] = [Span(doc, *span) for span in spans]
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)
    return path


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


def test_two_ranks_equal_one_process_with_double_batch(config, tmp_path):
    process = run_ranks(config, tmp_path)
    single = make_trainer(config, **{"batcher.size": 8})
    begin = weights(single.nlp)
    single.train()
    text, _ = process.communicate(timeout=200)
    assert process.returncode == 0, text
    assert "processes: 2" in text
    assert distance(weights(single.nlp), weights(tmp_path / LAST)) < 1e-5
    assert distance(weights(single.nlp), begin) > 0.01


def test_one_rank_is_spacy_train(config, tmp_path, capsys):
    from spacy.cli.train import train

    train(config, tmp_path, overrides={"training.dropout": 0.2})
    expected = capsys.readouterr().out
    trainer = make_trainer(config, tmp_path / "ours", dropout=0.2)
    trainer.train()
    ours = weights(tmp_path / "ours" / LAST)
    assert distance(ours, weights(tmp_path / LAST)) == 0
    table = [line for line in expected.splitlines() if re.match(r" +\d+ ", line)]
    assert table and all(line in capsys.readouterr().out for line in table[:1])


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_lost_rank_ends_the_run_and_resume_goes_on(config, tmp_path, victim):
    pids = tmp_path / "pids"
    pids.mkdir()
    code = tmp_path / "code.py"
    code.write_text(
        "import os, pathlib\n"
        f"pathlib.Path({str(pids)!r}, os.environ.get('RANK', '0')).write_text(str(os.getpid()))\n"
    )
    args = ("--code", code, "--training.max_steps", "100000", "--training.eval_frequency", "20")
    process = run_ranks(config, tmp_path / "out", *args)
    model = tmp_path / "out" / LAST
    wait_for(model.exists, process)
    time.sleep(1)
    os.kill(int((pids / str(victim)).read_text()), signal.SIGKILL)
    text, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    shown = " ".join(text.split())
    assert "another rank is gone" in shown and "--resume" in shown
    spacy.load(model)
    step = int(re.search(r"after step (\d+)", shown).group(1))
    again = run_ranks(config, tmp_path / "out", "--resume", "--training.max_steps", str(step + 20))
    text, _ = again.communicate(timeout=120)
    assert again.returncode == 0, text
    steps = [int(line.split()[1]) for line in text.splitlines() if re.match(r" +\d+ +\d+ ", line)]
    assert steps and min(steps) > 0 and max(steps) <= step + 20


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_under_torchrun_end_with_a_message(config, tmp_path, number):
    args = ("--training.max_steps", "100000", "--training.eval_frequency", "20")
    process = start(
        *TORCHRUN, "spanner", "train", config, "--output", tmp_path, *args, start_new_session=True
    )
    wait_for((tmp_path / LAST).exists, process)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        os.kill(process.pid, number)
    text, _ = process.communicate(timeout=120)
    shown = " ".join(text.split())
    assert f"Stopped by {number.name} after step" in shown and "--resume" in shown
    assert not re.search(r'File "[^"]*spacy', text), text  # torchrun prints a trace of its own
    spacy.load(tmp_path / LAST)


def wait_for(condition, process, seconds=300):
    end = time.time() + seconds
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.time() < end
        time.sleep(0.05)


def test_resumed_run_takes_the_same_steps(config, tmp_path):
    whole = make_trainer(config)
    whole.train()
    make_trainer(config, tmp_path, max_steps=8).train()
    rest = make_trainer(config, tmp_path)
    rest.train(resume=True)
    assert rest.shared.taken == 19 and [step for _, step in rest.results] == [0, 10]
    assert distance(weights(whole.nlp), weights(rest.nlp)) < 1e-7


def test_signal_saves_the_last_whole_step(config, tmp_path, monkeypatch):
    trainer = make_trainer(config, tmp_path)
    update = trainer.nlp.update

    def terminate(examples, **options):
        if trainer.shared.taken == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        update(examples, **options)

    monkeypatch.setattr(trainer.nlp, "update", terminate)
    with pytest.raises(Stopped, match=r"SIGTERM after step 5.*--resume") as stopped:
        trainer.train()
    assert stopped.value.exit_code == 143
    other = make_trainer(config, max_steps=5)
    other.train()
    assert distance(weights(tmp_path / LAST), weights(other.nlp)) == 0


def test_loss_of_a_rank_saves_the_last_whole_step(config, tmp_path, monkeypatch):
    trainer = make_trainer(config, tmp_path)
    update = trainer.nlp.update

    def lose(examples, **options):
        update(examples, **options)
        if trainer.shared.taken == 4:
            raise RankLost("closed")

    monkeypatch.setattr(trainer.nlp, "update", lose)
    with pytest.raises(Stopped, match="after step 4: another rank"):
        trainer.train()
    other = make_trainer(config, max_steps=4)
    other.train()
    assert distance(weights(tmp_path / LAST), weights(other.nlp)) == 0


def test_resume_with_other_evaluations(config, tmp_path):
    """What was evaluated before counts, also where steps in between are evaluated now."""
    make_trainer(config, tmp_path, max_steps=8).train()
    rest = make_trainer(config, tmp_path, eval_frequency=3, patience=100, max_steps=13)
    rest.train(resume=True)
    assert [step for _, step in rest.results] == [0, 9, 12]


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def test_damaged_checkpoints_are_reported(config, tmp_path):
    make_trainer(config, tmp_path / "good", max_steps=1).train()
    faults = [
        ("training_state.safetensors", cut),
        ("training_state.safetensors", os.remove),
        ("tok2vec/model", empty),
        ("global_pointer/model", cut),
    ]
    for i, (name, damage) in enumerate(faults):
        shutil.copytree(tmp_path / "good", tmp_path / str(i))
        damage(tmp_path / str(i) / LAST / name)
        with pytest.raises(CheckpointError, match=r"S123.*without --resume"):
            make_trainer(config, tmp_path / str(i)).train(resume=True)


def test_nothing_to_resume(config, tmp_path):
    with pytest.raises(CheckpointError, match="S059"):
        make_trainer(config, tmp_path).train(resume=True)
    exit_code, text = run(config, "--output", tmp_path, "--resume")
    assert exit_code == 1 and "Cannot resume" in text and "Traceback" not in text


class TwoRanks(Ranks):
    """Stands for two ranks: the other one sends what is in `sent`."""

    def sum_(self, tensor):
        tensor += self.sent.pop(0)

    def any_(self, flags):
        flags.copy_(torch.maximum(flags, self.sent.pop(0)))


def two_ranks(*sent):
    ranks = TwoRanks(0, 2, torch.device("cpu"))
    object.__setattr__(ranks, "sent", list(sent))
    return ranks


def test_missing_gradients_count_as_zeros():
    nlp = make_nlp("global_pointer")
    nlp.initialize(lambda: make_examples(nlp))
    parameters = parameters_of(trained_pipes(nlp, []))
    size = sum(parameter.value().numel() for parameter in parameters)
    assert all(parameter.gradient() is None for parameter in parameters)
    there = torch.ones(len(parameters), dtype=torch.uint8)
    there[0] = 0  # no rank has it
    skipped = parameters[0].value().numel()
    add_gradients(parameters, two_ranks(there, torch.full((size - skipped,), 2.0)), share=0.5)
    assert parameters[0].gradient() is None
    assert all(bool((p.gradient() == 2).all()) for p in parameters[1:])
    add_gradients(parameters, two_ranks(there, torch.ones(size - skipped)), share=0.25)
    assert all(bool((p.gradient() == 1.5).all()) for p in parameters[1:])


def test_buckets_hold_every_parameter_once(monkeypatch):
    monkeypatch.setattr("spacy_spanner.distributed.parameters.BUCKET", 100)
    nlp = make_nlp("global_pointer")
    nlp.initialize(lambda: make_examples(nlp))
    parameters = parameters_of(trained_pipes(nlp, []))
    parts = list(buckets(parameters))
    assert len(parts) > 3
    assert [p for part in parts for p in part] == parameters


def test_overflow_of_one_rank_is_that_of_all():
    class Shim:
        id = 0
        _model = None

        def __init__(self):
            from thinc.api import PyTorchGradScaler

            self._grad_scaler = PyTorchGradScaler()

    class Node:
        shims = (Shim(), Shim())

        def walk(self):
            return [self]

    class Pipe:
        model = Node()

    share_overflow([Pipe()], two_ranks(torch.tensor([0, 1], dtype=torch.uint8)))
    assert [shim._grad_scaler.found_inf for shim in Node.shims] == [False, True]


def test_frozen_pipes_have_no_part():
    nlp = make_nlp("global_pointer")
    nlp.add_pipe("sentencizer")
    assert [pipe.name for pipe in trained_pipes(nlp, [])] == ["global_pointer"]
    assert trained_pipes(nlp, ["global_pointer"]) == []


def test_joined_batches_stay_within_an_epoch():
    batches = [(epoch, [10 * epoch + i]) for epoch in (0, 1) for i in range(5)]
    joined = list(join_batches(iter(batches), 2))
    assert joined == [
        (0, [0, 1]), (0, [2, 3]), (0, [4]), (1, [10, 11]), (1, [12, 13]), (1, [14]),
    ]  # fmt: skip
    assert list(join_batches(iter(batches), 1)) == batches


def test_batches_do_not_depend_on_other_random_numbers(config):
    def texts(disturb):
        trainer = make_trainer(config)
        random.seed(3)
        found = []
        for _, batch in islice(trainer._batches(), 20):
            found.append([example.text for example in batch])
            for _ in range(disturb):
                random.random()
        return found

    assert texts(0) == texts(3)


def test_swap_survives_a_stop_between_its_steps(tmp_path):
    target, old = tmp_path / LAST, tmp_path / f".{LAST}.old"
    for text in ("one", "two"):
        fresh = tmp_path / "new"
        fresh.mkdir()
        (fresh / "x").write_text(text)
        swap(fresh, target)
        assert (target / "x").read_text() == text and not old.exists()
    target.rename(old)  # stopped here
    restore(target)
    assert (target / "x").read_text() == "two" and not old.exists()


def test_ranks_that_do_not_answer_are_reported(monkeypatch):
    import torch.distributed as dist

    def fail(*args, **options):
        raise RuntimeError("Connection closed by peer\nmore")

    monkeypatch.setattr(dist, "all_reduce", fail)
    with pytest.raises(RankLost, match=r"^Connection closed by peer$"):
        Ranks(0, 2, torch.device("cpu")).sum_(torch.zeros(1))


def run(*args):
    result = CliRunner().invoke(app, ["spanner", "train", *map(str, args)])
    return result.exit_code, " ".join(result.output.split())


def test_command_takes_the_options_of_spacy_train(config, tmp_path):
    code = tmp_path / "code.py"
    code.write_text("import pathlib; pathlib.Path(__file__).with_name('imported').touch()")
    args = ("--output", tmp_path / "out", "--code", code, "--training.max_steps", "2")
    exit_code, text = run(config, *args, "--verbose")
    assert exit_code == 0 and "processes: 1" in text and "Training is done" in text
    assert (tmp_path / "imported").exists()
    assert spacy.load(tmp_path / "out" / LAST).config["training"]["max_steps"] == 2
    exit_code, text = run(config, *args[:-1], "4", "--resume")
    assert exit_code == 0


def test_command_refuses_resume_without_output(config):
    exit_code, text = run(config, "--resume")
    assert exit_code == 2 and "--output" in text
