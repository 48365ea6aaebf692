"""A transformer with int8 weights, run by onnxruntime: for prediction alone.

Its graph is stored as the bytes of a tensor beside the tokenizer, in the same safetensors file as the
weights of any other block. `spacy spanner quantize` makes it of a trained encoder.
"""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from ..errors import Errors
from ..shim import ModuleShim, shim_of, split
from .huggingface_module import Group, PieceModule
from .piece_options import piece_options
from .pieces import PieceReader, Windows
from .torch_layer import Encoder, no_tokens, with_options_of

NAME = "QuantizedEncoder"
# A sum and a layer normalization in one take longer than in two: a fifth of the time of MiniLM.
SLOW_FUSION = "SkipLayerNormFusion"
IDS, MASK, VECTORS = "ids", "mask", "vectors"  # inputs and output of the graph


class QuantizedModule(PieceModule):
    """graph: An ONNX model, as bytes.  (n_bytes,) uint8"""

    graph: Tensor

    def __init__(self, reader: PieceReader, *, n_bytes: int, **options: Any):
        super().__init__(reader, **options)
        self.register_buffer("graph", torch.zeros(n_bytes, dtype=torch.uint8))
        self._session: Any = None
        self._process = 0

    def encode(self, group: Group) -> Tensor:  # (B, L, D)
        ids = group.ids.numpy()
        mask = numpy.ones_like(ids) if group.mask is None else group.mask.numpy()
        (vectors,) = self.session().run([VECTORS], {IDS: ids, MASK: mask})
        return torch.from_numpy(vectors)

    def session(self) -> Any:
        """Made when it is needed; a process that was forked needs one of its own."""
        if self._session is None or self._process != os.getpid():
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            options.inter_op_num_threads = 1
            self._session = onnxruntime.InferenceSession(
                self.graph.numpy().tobytes(),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=[SLOW_FUSION],
            )
            self._process = os.getpid()
        return self._session

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_session": None}  # a copy makes its own


def make_module(
    *, tokenizer: str, max_pieces: int, windows: Windows, overlap: Any, **options: Any
) -> QuantizedModule:
    from tokenizers import Tokenizer

    reader = PieceReader(
        Tokenizer.from_str(tokenizer), max_pieces=max_pieces, windows=windows, overlap=overlap
    )
    return QuantizedModule(reader, **options)


def forward(model: Encoder, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable]:
    if is_train:
        raise ValueError(Errors.S211)
    if not any(len(doc) for doc in docs):
        return no_tokens(model, docs)
    module = shim_of(model).module
    with torch.inference_mode():
        flat = module(module.reader.read(docs))  # (T, D)
    return split(flat, [len(doc) for doc in docs]), lambda d_docs: []


def init(model: Encoder, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    raise ValueError(Errors.S211)


@with_options_of(piece_options)
def build_quantized_encoder(*, width: int, **pieces: Any) -> Model[List[Doc], List[Floats2d]]:
    """A transformer with int8 weights, as `spacy spanner quantize` makes it.

    width: Of its vectors.
    """
    if find_spec("onnxruntime") is None:
        raise ImportError(Errors.S212)
    shim = ModuleShim(partial(make_module, **piece_options(NAME, **pieces)))
    return Model(NAME, forward, init=init, shims=[shim], dims={"nO": width})
