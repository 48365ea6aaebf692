"""Settings of the libraries below us that make every pipeline faster on a CPU and change no result."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

from catalogue import REGISTRY

if TYPE_CHECKING:
    from spacy.language import Language

TOKENS, WIDTH = 512, 288  # of the trial: a batch of spaCy's default tok2vec
TRIALS = 5


def use_fastest_ops(nlp: Optional[Language] = None) -> str:
    """Let thinc compute matrix products by the fastest library that is there, as a trial of some
    milliseconds shows. On many processors that is numpy's (OpenBLAS, MKL or Accelerate), several times
    faster than the BLIS that thinc uses by default. On a GPU nothing changes.

    Models that are made or loaded after this call, in this thread, use it. Call it in each process.

    nlp: A pipeline that is already loaded, to be changed as well.

    Returns the name of what is used, such as "numpy" or "blis".
    """
    from thinc.api import NumpyOps, get_current_ops, get_ops, set_current_ops
    from thinc.backends.numpy_ops import has_blis

    if not isinstance(get_current_ops(), NumpyOps):
        return get_current_ops().name
    default: Any = get_ops("cpu")  # on a Mac, one of its own
    is_numpy = type(default) is NumpyOps
    choices: Dict[str, Any] = {"numpy": NumpyOps(use_blis=False)}
    if has_blis or not is_numpy:
        choices["blis" if is_numpy else default.name] = default
    seconds = {name: trial(ops) for name, ops in choices.items()}
    fastest = min(seconds, key=seconds.__getitem__)
    set_current_ops(choices[fastest])
    for _, pipe in nlp.pipeline if nlp is not None else ():
        for node in pipe.model.walk() if hasattr(pipe, "model") else ():
            node.ops = choices[fastest]
    return fastest


def use_fastest_layers(nlp: Language) -> int:
    """Let spaCy's own encoder (its hash embedding and CNN, as in `spacy.HashEmbedCNN`) predict with fewer
    passes over memory: each different word of a batch is embedded once, and what a layer does is done
    block by block in the cache. Vectors are equal but for rounding. Training and what is stored stay as
    they are; on a GPU, and for other layers, nothing changes.

    nlp: A pipeline that is loaded.

    Returns how many layers are faster now.
    """
    from .fast_layers import use_fast_layers

    models = [pipe.model for _, pipe in nlp.pipeline if hasattr(pipe, "model")]
    return sum(use_fast_layers(model) for model in models if hasattr(model, "walk"))


def use_fastest_encoder(nlp: Language, texts: Sequence[str] = ()) -> Tuple[Language, str]:
    """The pipeline with the transformer of spacy-transformers run by our encoder, which reads nearly twice
    as many words a second on a CPU: the same weights and pieces, the same vector for each word. The
    pipeline stays as it is where that is not safe: on a GPU, with a second encoder, with components that
    are neither spaCy's nor ours (they may read `doc._.trf_data`, which is not there any more), with settings
    that our encoder does not have, or if vectors differ by more than 1e-4 on some texts.

    nlp: A pipeline that is loaded. It is not changed; the result is a copy, an ordinary pipeline.
    texts: Some texts of those that are to be read, to compare the vectors on, besides a few of our own.

    Returns the pipeline to use, and which encoder it has, with the reason why; "" if it has none of
    spacy-transformers.
    """
    from .migration.loaded import fastest_encoder, is_transformer

    if not any(is_transformer(pipe) for _, pipe in nlp.pipeline):
        return nlp, ""
    return fastest_encoder(nlp, texts)


@contextmanager
def settled_objects() -> Iterator[None]:
    """For a long run: what is there already, such as all of torch, is no longer looked through for
    garbage, which otherwise takes a tenth of a second again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def trial(ops: Any) -> float:
    """Seconds of a product, the best of a few: what else the machine does only adds to them."""
    import numpy

    x = numpy.ones((TOKENS, WIDTH), dtype="float32")
    weights = numpy.ones((WIDTH, WIDTH), dtype="float32")
    seconds = []
    for _ in range(TRIALS):
        start = time.perf_counter()
        ops.gemm(x, weights, trans2=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def remember_codecs() -> None:
    """Let srsly know what packages add to msgpack. It otherwise looks through the entry points of all
    of them for every message, and through all registered functions, which takes most of the time of
    reading and writing documents."""
    from srsly.msgpack import msgpack_decoders, msgpack_encoders

    for codecs in (msgpack_encoders, msgpack_decoders):
        if codecs.entry_points:
            for name, codec in codecs.get_entry_points().items():
                codecs.register(name, func=codec)
            codecs.entry_points = False
            vars(codecs)["get_all"] = looked_up_once(codecs.get_all)


def looked_up_once(get_all: Callable[[], Dict[str, Any]]) -> Callable[[], Dict[str, Any]]:
    """The functions of a registry, looked up again only after something was registered anywhere."""
    found: Dict[str, Any] = {}
    size = -1

    def get_remembered() -> Dict[str, Any]:
        nonlocal found, size
        if size != len(REGISTRY):
            found, size = get_all(), len(REGISTRY)
        return found

    return get_remembered
