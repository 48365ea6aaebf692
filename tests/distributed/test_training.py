"""Training on several ranks: the same steps as one process takes with larger batches."""

import os
import random
import re
import signal
import time
from itertools import islice

import pytest
import spacy
import torch

from spacy_spanner.distributed.checkpoints import LAST
from spacy_spanner.distributed.ranks import RankLost, Ranks
from spacy_spanner.distributed.training import join_batches

from .small import start
from .small_training import (
    TORCHRUN,
    distance,
    make_trainer,
    run,
    run_ranks,
    wait_for,
    weights,
)


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
    assert "another rank was lost" in shown and "--resume" in shown
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


def test_ranks_that_do_not_answer_are_reported(monkeypatch):
    import torch.distributed as dist

    def fail(*args, **options):
        raise RuntimeError("Connection closed by peer\nmore")

    monkeypatch.setattr(dist, "all_reduce", fail)
    with pytest.raises(RankLost, match=r"^Connection closed by peer$"):
        Ranks(0, 2, torch.device("cpu")).sum_(torch.zeros(1))


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
