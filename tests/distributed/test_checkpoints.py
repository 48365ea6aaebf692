"""Runs that are stopped, lost or damaged, and how they are resumed."""

import os
import shutil
import signal

import pytest

from spacy_spanner.distributed.checkpoints import LAST, CheckpointError, restore, swap
from spacy_spanner.distributed.ranks import RankLost
from spacy_spanner.distributed.training import Stopped

from .small_training import (
    distance,
    make_trainer,
    run,
    weights,
)


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
