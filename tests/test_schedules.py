"""Schedules: their values, and that a config can name them."""

from itertools import islice

import pytest
from spacy.util import load_model_from_config, registry
from thinc.api import Adam, Config

from spacy_spanner.schedules import inverse_time, warmup_decay
from spacy_spanner.training_config import complete, join_config


def test_inverse_time_by_the_formula():
    rates = list(islice(inverse_time(0.01, 3, 0.05), 12))
    assert rates == [0.01 / (1 + 0.05 * (step // 3)) for step in range(12)]


def test_inverse_time_falls_slower_than_a_geometric_decay():
    assert next(islice(inverse_time(1.0, 1, 0.05), 50, None)) == pytest.approx(1 / 3.5)


def test_first_epoch_has_the_initial_rate():
    optimizer = Adam(inverse_time(0.01, 2, 1.0))
    seen = [optimizer.learn_rate]
    for _ in range(4):
        optimizer.step_schedules()
        seen.append(optimizer.learn_rate)
    assert seen == [0.01, 0.01, 0.005, 0.005, 0.01 / 3]


def test_config_names_the_schedule():
    config = Config().from_str(
        """
        [optimizer]
        @optimizers = "Adam.v1"
        grad_clip = 5.0

        [optimizer.learn_rate]
        @schedules = "spacy-spanner.inverse_time.v1"
        initial_rate = 0.001
        steps_per_epoch = 100
        """
    )
    optimizer = registry.resolve(config)["optimizer"]
    assert optimizer.learn_rate == 0.001


def test_epoch_without_steps_is_refused():
    with pytest.raises(ValueError, match="steps_per_epoch = 0"):
        inverse_time(0.01, 0)


def test_rate_rises_and_falls():
    rates = list(islice(warmup_decay(1.0, 20, 0.2), 24))
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[4:20] == [(20 - step) / 16 for step in range(4, 20)]
    assert rates[20:] == [0.0] * 4
    assert list(islice(warmup_decay(1.0, 1, 0.0), 2)) == [1.0, 0.0]


def test_rate_is_constant_where_spacy_does_not_fill_in_variables():
    """`nlp.create_optimizer()` takes the config as it is written."""
    config = join_config("seq_ner", "hash")
    nlp = load_model_from_config(complete(config))
    optimizer = nlp.create_optimizer()
    for _ in range(3):
        optimizer.step_schedules()
    assert optimizer.learn_rate == 0.002
