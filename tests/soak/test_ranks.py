"""A rank of a training is killed at any moment: the checkpoint is whole, and training resumes."""

import os
import random
import signal
import time

import pytest
import spacy

from ..distributed.small import descendants, start
from ..distributed.small_training import TORCHRUN, write_config

pytestmark = pytest.mark.soak


def test_ranks__killed_in_training(soak, tmp_path):
    config = write_config(tmp_path)
    generator = random.Random(time.time_ns())
    for number in soak.rounds():
        out = tmp_path / str(number)
        args = [*TORCHRUN, "spanner", "train", config, "--output", out, "--training.max_steps", 60]
        done = False
        for attempt in range(4):
            resume = ["--resume"] if (out / "model-last").exists() else []
            process = start(*args, "--training.eval_frequency", 5, *resume)
            if attempt < 3:
                done = kill_one(process, out, generator, soak)
            text, _ = process.communicate(timeout=600)
            done = done or process.returncode == 0
            if (out / "model-last").exists():
                spacy.load(out / "model-last")("Ada left.")
            if done:
                break
            assert attempt < 3, text
        soak.counts["trainings"] += 1


def kill_one(process, out, generator, soak):
    """Kill a rank some time after the first checkpoint; True if the training was done before."""
    wait = generator.uniform(0, 3)
    while process.poll() is None and not (out / "model-last").exists():
        time.sleep(0.05)
    time.sleep(wait)
    ranks = [pid for pid, command in descendants(process.pid).items() if "spanner" in command]
    if process.poll() is not None or not ranks:
        return process.poll() == 0
    os.kill(generator.choice(ranks), signal.SIGKILL)
    soak.counts["killed ranks"] += 1
    return False
