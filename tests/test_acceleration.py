"""Settings of the libraries below: they change speed, and nothing that is computed."""

import srsly
from catalogue import REGISTRY
from srsly.msgpack import msgpack_decoders, msgpack_encoders
from thinc.api import NumpyOps, get_current_ops, set_current_ops

import spacy_spanner
from spacy_spanner import acceleration

from .systems import TEXTS, make_examples, make_nlp


def test_the_fastest_products_are_used_by_loaded_and_new_models(monkeypatch):
    before = get_current_ops()
    nlp = make_nlp("global_pointer")
    nlp.initialize(lambda: make_examples(nlp))
    try:
        for use_blis, name in [(False, "numpy"), (True, "blis")]:
            slow = not use_blis
            monkeypatch.setattr(acceleration, "trial", lambda ops, slow=slow: ops.use_blis is slow)
            assert spacy_spanner.use_fastest_ops(nlp) == name
            assert get_current_ops().use_blis is use_blis
            nodes = [node for _, pipe in nlp.pipeline for node in pipe.model.walk()]
            assert {node.ops.use_blis for node in nodes} == {use_blis}
            assert nlp(TEXTS[0]).text == TEXTS[0]
    finally:
        set_current_ops(before)


def test_a_trial_takes_time():
    assert acceleration.trial(NumpyOps()) > 0


def test_codecs_are_known_without_entry_points():
    known = msgpack_encoders.get_all().keys(), msgpack_decoders.get_all().keys()
    acceleration.remember_codecs()
    assert (msgpack_encoders.get_all().keys(), msgpack_decoders.get_all().keys()) == known
    data = {"a": [1, 2.5, "x"]}
    assert srsly.msgpack_loads(srsly.msgpack_dumps(data)) == data


def test_a_codec_that_is_registered_later_is_used():
    acceleration.remember_codecs()

    def unchanged(obj, chain=None):
        return obj if chain is None else chain(obj)

    before = set(msgpack_encoders.get_all())
    msgpack_encoders.register("later", func=unchanged)
    try:
        assert set(msgpack_encoders.get_all()) == before | {"later"}
        assert srsly.msgpack_loads(srsly.msgpack_dumps({"a": [1]})) == {"a": [1]}
    finally:
        del REGISTRY[(*msgpack_encoders.namespace, "later")]
    assert set(msgpack_encoders.get_all()) == before
