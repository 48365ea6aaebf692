"""A pipeline whose transformers have int8 weights; all else in it stays as it is."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, Dict, List

import numpy
import torch
from spacy.language import Language
from spacy.util import load_model_from_config
from thinc.api import Config

from ..encoders.quantized import build_quantized_encoder
from ..errors import Errors, UserError
from ..shim import shim_of
from .graph import quantized_graph

FULL, INT8 = "spacy-spanner.HuggingFaceEncoder.v1", "spacy-spanner.QuantizedEncoder.v1"
NEEDED = ("onnx", "onnxruntime", "onnxscript")


def quantize(nlp: Language) -> Language:
    """A new pipeline; the given one stays as it is."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UserError(Errors.S055.format(engine=", ".join(missing), extra="onnx"))
    names = encoders_of(nlp)
    config: Any = nlp.config.copy()
    for name in names:
        config["components"][name]["model"] = quantized_block(config["components"][name]["model"])
    with TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        small = load_model_from_config(Config(config), auto_fill=True, meta=nlp.meta)
        small.from_disk(folder, exclude=names)
    for name in names:
        copy_encoder(nlp.get_pipe(name), small.get_pipe(name))
    return small


def encoders_of(nlp: Language) -> List[str]:
    """Components that are a transformer of ours and nothing else, for others to listen to."""
    components = nlp.config["components"]
    names = [
        name
        for name in nlp.pipe_names
        if components[name].get("model", {}).get("@architectures") == FULL
    ]
    if not names:
        raise UserError(Errors.S213.format(names=", ".join(nlp.pipe_names)))
    return names


def quantized_block(block: Dict[str, Any]) -> Dict[str, Any]:
    """The options that still mean something."""
    known = inspect.signature(build_quantized_encoder).parameters
    kept = {name: value for name, value in block.items() if name in known}
    return {"@architectures": INT8, **kept}


def copy_encoder(full: Any, small: Any) -> None:
    shim = shim_of(full.model)
    max_pieces = int(shim.sizes["max_pieces"])
    found = quantized_graph(shim.module, max_pieces=max_pieces)
    graph = numpy.frombuffer(found, dtype="uint8")
    module: Any = shim_of(small.model).build(
        tokenizer=shim.sizes["tokenizer"],
        max_pieces=max_pieces,
        pad=shim.module.pad,
        n_bytes=len(graph),
    )
    module.graph.copy_(torch.from_numpy(graph.copy()))
