"""Stored components, and ways to change what is stored so that it must not load."""

from __future__ import annotations

import json
import pickle
from functools import cache
from typing import Any, Callable, Dict, List, Tuple

import safetensors.torch
import spacy
import srsly
import torch

from .relations.examples import make_examples as relation_examples
from .systems import SYSTEMS, TOK2VEC, make_examples, make_nlp

HUGE = 1_000_000_000
CHARACTERS = {"@architectures": "spacy-spanner.CharCNN.v1"}
JOINED = {
    "@architectures": "spacy-spanner.JoinedEncoder.v1",
    "lstm_width": 16,
    "*": {"words": {"@architectures": "spacy-spanner.TunedVectors.v1"}, "chars": CHARACTERS},
}
# What is stored: the factory and its tok2vec. All have the same labels.
STORED = {
    **{name: (name, TOK2VEC) for name in SYSTEMS},
    "characters": ("seq_ner", CHARACTERS),
    "joined": ("global_pointer", JOINED),
}
RELATIONS, CLASSIFIER = "global_pointer_relations", "relation_classifier"
# The model of a relation component; null for that of the factory.
ARCHITECTURES = {RELATIONS: None, CLASSIFIER: "spacy-spanner.RelationClassifier.v1"}

Stored = Dict[str, Any]  # "cfg": settings; "model": what thinc stores, decoded
Change = Callable[[Stored], Any]


def make(name: str) -> Any:
    if name in ARCHITECTURES:
        nlp, model = spacy.blank("en"), {"head_size": 16, "tok2vec": TOK2VEC}
        if ARCHITECTURES[name]:
            model["@architectures"] = ARCHITECTURES[name]
        nlp.add_pipe(RELATIONS, config={"model": model})
        return nlp
    factory, tok2vec = STORED[name]
    return make_nlp(factory, tok2vec=tok2vec)


@cache
def stored_bytes(name: str) -> bytes:
    """An initialized component of this name, as it is stored."""
    nlp = make(name)
    examples = relation_examples(nlp) if name in ARCHITECTURES else make_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp.pipeline[0][1].to_bytes(exclude=["vocab"])


def change_and_load(name: str, change: Change) -> Any:
    """Load a component of which something was changed."""
    packed = srsly.msgpack_loads(stored_bytes(name))
    stored = {"cfg": srsly.json_loads(packed["cfg"]), "model": srsly.msgpack_loads(packed["model"])}
    stored = change(stored) or stored
    for part, write in {"cfg": srsly.json_dumps, "model": srsly.msgpack_dumps}.items():
        if part in stored:
            kept = isinstance(stored[part], (str, bytes))
            stored[part] = stored[part] if kept else write(stored[part])
    return make(name).pipeline[0][1].from_bytes(srsly.msgpack_dumps(stored))


def node_with(stored: Stored, part: str) -> int:
    """The number of the first layer that has shims or params."""
    return next(i for i, own in enumerate(stored["model"][part]) if own)


def setting(name: str, value: Any) -> Change:
    return lambda stored: stored["cfg"].__setitem__(name, value)


def whole(part: str, value: Any) -> Change:
    return lambda stored: stored.__setitem__(part, value)


def weights(change: Callable[[Dict[str, torch.Tensor], Dict[str, Any]], Any]) -> Change:
    """A change of the tensors and sizes of the first module."""

    def apply(stored: Stored) -> None:
        at = node_with(stored, "shims")
        data = stored["model"]["shims"][at][0]
        n_header = int.from_bytes(data[:8], "little")
        sizes = json.loads(json.loads(data[8 : 8 + n_header])["__metadata__"]["spacy-spanner"])
        state = safetensors.torch.load(data)
        sizes = change(state, sizes) or sizes
        text = sizes if isinstance(sizes, str) else json.dumps(sizes)
        made = safetensors.torch.save(state, metadata={"spacy-spanner": text})
        stored["model"]["shims"][at] = [made]

    return apply


def size(name: str, value: Any) -> Change:
    return weights(lambda state, sizes: sizes.__setitem__(name, value))


def tensor(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """A change of the largest tensor of floats."""

    def apply(state: Dict[str, torch.Tensor], sizes: Dict[str, Any]) -> None:
        floats = [key for key, value in state.items() if value.is_floating_point()]
        name = max(floats, key=lambda key: state[key].numel())
        state[name] = change(state[name].clone()).contiguous()

    return weights(apply)


def first(value: float) -> Change:
    def apply(x: torch.Tensor) -> torch.Tensor:
        x.view(-1)[0] = value
        return x

    return tensor(apply)


def raw(change: Callable[[bytes], bytes]) -> Change:
    """A change of the weight file itself."""

    def apply(stored: Stored) -> None:
        at = node_with(stored, "shims")
        stored["model"]["shims"][at] = [change(stored["model"]["shims"][at][0])]

    return apply


def model_bytes(change: Callable[[bytes], bytes]) -> Change:
    return lambda stored: {**stored, "model": change(srsly.msgpack_dumps(stored["model"]))}


def param(change: Callable[[Any], Any]) -> Change:
    """A change of the first array of the tok2vec."""

    def apply(stored: Stored) -> None:
        params = stored["model"]["params"]
        at = next(i for i, own in enumerate(params) if any(v is not None for v in own.values()))
        name = next(key for key, value in params[at].items() if value is not None)
        params[at][name] = change(params[at][name].copy())

    return apply


def dim(name: str, value: Any) -> Change:
    return lambda stored: stored["model"]["nodes"][0]["dims"].__setitem__(name, value)


def attr(name: str, value: Any) -> Change:
    def apply(stored: Stored) -> None:
        attrs = next(own for own in stored["model"]["attrs"] if name in own)
        attrs[name] = srsly.msgpack_dumps(value)

    return apply


def no_array(array: Any) -> Any:
    array.flat[0] = float("nan")
    return array


def deep(opening: str, n: int = 200_000) -> str:
    return opening * n


SETTINGS: List[Tuple[str, Any]] = [
    *[("window", v) for v in (0, -1, "256", None, 1.5, True, [1])],
    *[("overlap", v) for v in (-1, 10_000, "x", None)],
    *[("max_cells", v) for v in (0, -5, "many", None)],
    *[("join_training", v) for v in (-0.1, 2, "x", None)],
    *[("width_factor", v) for v in (0, -1, "x", [2])],
    *[("threshold", v) for v in (-0.5, 1.5, "0.5", None, [0.5])],
    *[("seen", v) for v in ({"widest_span": -1}, {"other": 1}, [], "x", {"longest_row": "x"})],
    *[("labels", v) for v in ([], ["A"], "PER", None, {"PER": 1}, ["A", "A", "B"], ["A", "", "B"])],
    ("labels", ["A", 1, "B"]),
    ("labels", ["A", None, "B"]),
    *[("output", v) for v in ("nothing", None, 3)],
    *[("spans_key", v) for v in (None, 3, "ents")],
    ("pack_sentences", "yes"),
]
ENTITY_SETTINGS: List[Tuple[str, Any]] = [
    *[("temperature", v) for v in (0, -1, "x", None)],
    *[("bias", v) for v in (99, "x", None)],
    *[("label_thresholds", v) for v in ([], None, {"PER": 2}, {"PER": "x"}, {"PER": None})],
    *[("overlaps", v) for v in ("none", None, ["best"])],
]
RELATION_SETTINGS: List[Tuple[str, Any]] = [
    *[("relation_labels", v) for v in ([], None, [""], ["A", "A"])],
    *[("relation_threshold", v) for v in (2, "x", None)],
    *[("entities", v) for v in ("none", None)],
]
SIZES: List[Tuple[str, Change]] = [
    *[(f"n_labels={v!r}", size("n_labels", v)) for v in (HUGE, 10**30, 50_000, 0, -1, 1.5, "3")],
    *[(f"n_labels={v!r}", size("n_labels", v)) for v in (None, True, [3])],
    *[(f"width={v!r}", size("width", v)) for v in (HUGE, 31, 0, -1)],
    ("no sizes", weights(lambda state, sizes: sizes.clear())),
    ("another size", size("depth", 3)),
    ("sizes are deep", weights(lambda state, sizes: deep("["))),
    ("sizes are deep objects", weights(lambda state, sizes: deep('{"a":'))),
    ("sizes are a list", weights(lambda state, sizes: "[1, 2]")),
    ("sizes are no JSON", weights(lambda state, sizes: "width")),
]
TENSORS: List[Tuple[str, Change]] = [
    ("nan", first(float("nan"))),
    ("inf", first(float("inf"))),
    ("-inf", first(float("-inf"))),
    ("float64", tensor(lambda x: x.double())),
    ("float16", tensor(lambda x: x.half())),
    ("int64", tensor(lambda x: x.long())),
    ("cut", tensor(lambda x: x[1:])),
    ("flat", tensor(lambda x: x.flatten())),
    ("wider", tensor(lambda x: torch.cat([x, x]))),
    ("scalar", tensor(lambda x: x.sum())),
    ("no tensor", tensor(lambda x: x[:0])),
    ("one lacks", weights(lambda state, sizes: state.popitem() and None)),
    ("all lack", weights(lambda state, sizes: state.clear())),
    ("one more", weights(lambda state, sizes: state.__setitem__("more", torch.zeros(3)))),
]
FILES: List[Tuple[str, Change]] = [
    ("no weights", raw(lambda data: b"")),
    ("weights cut", raw(lambda data: data[: len(data) // 2])),
    ("weights cut to the header", raw(lambda data: data[:8])),
    ("few bytes", raw(lambda data: data[:3])),
    ("one byte more", raw(lambda data: data + b"x")),
    ("header too long", raw(lambda data: b"\xff" * 8 + data[8:])),
    ("header too short", raw(lambda data: b"\x05" + b"\0" * 7 + data[8:])),
    ("pickled", raw(lambda data: pickle.dumps({"weights": [1.0]}))),
    ("random", raw(lambda data: bytes(range(256)) * 9)),
    ("deep header", raw(lambda data: (10**6).to_bytes(8, "little") + b"[" * 10**6)),
    ("model cut", model_bytes(lambda data: data[: len(data) // 2])),
    ("model empty", model_bytes(lambda data: b"")),
    ("model random", model_bytes(lambda data: bytes(range(256)))),
    ("model deep", model_bytes(lambda data: b"\x91" * 10**6)),
    ("model claims 2**31 items", model_bytes(lambda data: b"\xdd\x7f\xff\xff\xff")),
    ("model is a list", whole("model", [1, 2])),
    ("model has no nodes", lambda stored: stored["model"].pop("nodes") and None),
    ("model has no shims", lambda stored: stored["model"].pop("shims") and None),
    ("model lacks a node", lambda stored: stored["model"]["nodes"].pop() and None),
    ("cfg cut", lambda stored: {**stored, "cfg": srsly.json_dumps(stored["cfg"])[:-9]}),
    ("cfg is a list", whole("cfg", "[1]")),
    ("cfg is a number", whole("cfg", "7")),
    ("cfg is deep", whole("cfg", deep("["))),
    ("cfg is deep objects", whole("cfg", deep('{"a":'))),
    ("cfg is huge", whole("cfg", '{"x": "' + "y" * 17_000_000 + '"}')),
    ("cfg is empty", whole("cfg", "{}")),
]
LAYERS: List[Tuple[str, Change]] = [
    *[(f"nO={v!r}", dim("nO", v)) for v in (HUGE, 2, -1, "3", None)],
    *[(f"nI={v!r}", dim("nI", v)) for v in (HUGE, 31, "32", None)],
    ("unknown dim", dim("nX", 3)),
    ("param nan", param(no_array)),
    ("param cut", param(lambda array: array[1:])),
    ("param flat", param(lambda array: array.flatten())),
    ("param is text", param(lambda array: "x")),
    ("param lacks", param(lambda array: None)),
    ("param of objects", param(lambda array: array.astype("S4"))),
    *[(f"max_width={v!r}", attr("max_width", v)) for v in (0, "x", 2.5)],
    ("needs_sentences=3", attr("needs_sentences", 3)),
    *[(f"window_size={v!r}", attr("window_size", v)) for v in (HUGE, -1, "x")],
]


def cases() -> List[Tuple[str, str, Change]]:
    """A name for each change, what is changed, and the change."""
    found = []
    for name, own in {"global_pointer": ENTITY_SETTINGS, RELATIONS: RELATION_SETTINGS}.items():
        found += [(f"{k}={v!r}"[:40], name, setting(k, v)) for k, v in [*SETTINGS, *own]]
    heads = ("seq_ner", "hierarchical_ner", "modularized_interaction", "locate_and_label")
    heads += ("hscrf", "bilstm_pointer", CLASSIFIER)
    found += [(told, name, change) for name in heads for told, change in SIZES]
    heads = ("global_pointer", "hierarchical_ner", "bundled_ner", "joined")
    found += [(told, name, change) for name in heads for told, change in TENSORS]
    found += [(told, name, change) for name in ("span_ner", RELATIONS) for told, change in FILES]
    found += [(told, name, change) for name in ("seq_ner", RELATIONS) for told, change in LAYERS]
    found += [(f"levels={v!r}", "seq_ner", attr("levels", v)) for v in (0, "x", 2.5)]
    found += [(f"n_chars={v!r}", "characters", attr("n_chars", v)) for v in (HUGE, "x", 400)]
    return found
