"""A fork waits until no other thread computes, so that its child inherits no lock that stays shut."""

import os
import threading

import pytest

from spacy_spanner.forking import RUNNING, forks_wait

from .systems import TEXTS, found, make_examples, make_nlp

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def fork(in_child=lambda: True):
    """The exit code of a child that runs a function."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if in_child() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_fork_waits_for_other_threads():
    inside, go_on, order = threading.Event(), threading.Event(), []

    @forks_wait
    def compute():
        inside.set()
        go_on.wait()
        order.append("computed")

    def fork_and_note():
        code = fork()
        order.append("forked")
        return code

    worker, forker = threading.Thread(target=compute), threading.Thread(target=fork_and_note)
    worker.start()
    inside.wait()
    forker.start()
    while not RUNNING._forking:
        pass
    assert order == []  # the fork has been asked for, and waits
    go_on.set()
    forker.join()
    worker.join()
    assert order == ["computed", "forked"]


def test_fork_from_within_a_call_does_not_wait_for_itself():
    with RUNNING, RUNNING:
        assert fork(lambda: RUNNING.depth == 2) == 0
    assert RUNNING.depth == 0 and fork(lambda: RUNNING.depth == 0) == 0


def test_children_predict_while_threads_of_the_parent_do():
    nlp = make_nlp("seq_ner")
    nlp.initialize(lambda: make_examples(nlp))
    expected = [found(doc, "ents") for doc in nlp.pipe(TEXTS)]
    stop = threading.Event()

    def predict():
        while not stop.is_set():
            list(nlp.pipe(TEXTS))

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            assert fork(lambda: [found(doc, "ents") for doc in nlp.pipe(TEXTS)] == expected) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_fork_waits_for_a_component():
    nlp = make_nlp("seq_ner")
    nlp.initialize(lambda: make_examples(nlp))
    module = nlp.get_pipe("seq_ner").model.shims[0].module
    decode, inside, go_on = module.decode, threading.Event(), threading.Event()

    def slow_decode(*args):
        inside.set()
        go_on.wait()
        return decode(*args)

    module.decode = slow_decode
    worker, forker = threading.Thread(target=nlp, args=TEXTS[:1]), threading.Thread(target=fork)
    worker.start()
    inside.wait()
    forker.start()
    forker.join(1)
    still_waits = forker.is_alive()
    go_on.set()
    forker.join()
    worker.join()
    assert still_waits
