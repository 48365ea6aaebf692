"""Gradients and parameters that ranks share."""

import torch

from spacy_spanner.distributed.parameters import (
    add_gradients,
    buckets,
    parameters_of,
    share_overflow,
    trained_pipes,
)
from spacy_spanner.distributed.ranks import Ranks

from ..systems import make_examples, make_nlp


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
