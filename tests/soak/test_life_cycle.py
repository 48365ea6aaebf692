"""The life of a component in any order, as a state machine, for every factory."""

import warnings

import numpy
import pytest
import spacy
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ..systems import SYSTEMS, TEXTS, found, make_examples, make_nlp

pytestmark = pytest.mark.soak


def machine(factory, counts):
    """A class for one factory."""

    class Life(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            warnings.simplefilter("ignore")
            self.nlp = make_nlp(factory, output="both")
            self.optimizer = None
            counts["lives"] += 1

        @property
        def pipe(self):
            return self.nlp.get_pipe(factory)

        def is_built(self):
            return self.optimizer is not None

        @rule(label=st.text(min_size=1, max_size=8))
        @precondition(lambda self: not self.is_built())
        def add_label(self, label):
            counts["steps"] += 1
            before = self.pipe.labels
            assert self.pipe.add_label(label) == int(label not in before)
            assert label in self.pipe.labels

        @rule()
        def initialize(self):
            counts["steps"] += 1
            kept = self.pipe.labels
            if self.is_built():  # as a second `spacy train` does
                self.nlp = make_nlp(factory, output="both")
                for label in kept:
                    self.pipe.add_label(label)
            self.optimizer = self.nlp.initialize(lambda: make_examples(self.nlp))
            assert set(kept) <= set(self.pipe.labels)

        @rule(n_steps=st.integers(1, 4))
        @precondition(lambda self: self.is_built())
        def update(self, n_steps):
            counts["steps"] += 1
            for _ in range(n_steps):
                losses = self.nlp.update(make_examples(self.nlp), sgd=self.optimizer)
                assert numpy.isfinite(losses[factory])

        @rule()
        @precondition(lambda self: self.is_built())
        def resume(self):
            counts["steps"] += 1
            self.optimizer = self.nlp.resume_training()

        @rule(value=st.floats(0, 1), label=st.integers(0, 9))
        def change_thresholds(self, value, label):
            counts["steps"] += 1
            self.pipe.cfg["threshold"] = value
            if self.pipe.labels:
                name = self.pipe.labels[label % len(self.pipe.labels)]
                self.pipe.cfg["label_thresholds"][name] = 1 - value

        @rule()
        def save_and_load(self):
            counts["steps"] += 1
            before = self.spans() if self.is_built() else None
            loaded = spacy.util.load_model_from_config(self.nlp.config)
            self.nlp = loaded.from_bytes(self.nlp.to_bytes())
            if self.is_built():
                self.optimizer = self.nlp.resume_training()
                assert self.spans() == before

        @rule()
        @precondition(lambda self: self.is_built())
        def predict(self):
            counts["steps"] += 1
            self.spans()

        def spans(self):
            """What is found in the texts, all of it over the thresholds."""
            docs = [self.nlp(text) for text in TEXTS]
            limits = dict(zip(self.pipe.labels, self.pipe.thresholds(), strict=True))
            for doc in docs:
                assert all(score >= limits[label] for _, _, label, score in found(doc))
            return [found(doc) for doc in docs]

    return Life


@pytest.mark.parametrize("factory", SYSTEMS)
def test_life_cycle__in_any_order(soak, factory):
    for _ in soak.rounds():
        run_state_machine_as_test(
            machine(factory, soak.counts),
            settings=settings(
                max_examples=2,
                stateful_step_count=12,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                database=None,
            ),
        )
