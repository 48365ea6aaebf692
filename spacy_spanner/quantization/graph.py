"""From a torch encoder to an ONNX graph with int8 weights."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Iterator

import torch
from torch import Tensor, nn

from ..encoders.huggingface_module import Group, HuggingFaceModule
from ..encoders.quantized import IDS, MASK, VECTORS


class Encode(nn.Module):
    """The part of the module that becomes the graph."""

    def __init__(self, module: HuggingFaceModule):
        super().__init__()
        self.module = module

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:  # (B, L) each -> (B, L, D)
        return self.module.encode(Group(ids, mask))


def quantized_graph(module: HuggingFaceModule, *, max_pieces: int) -> bytes:
    """The ONNX model of the encoder; each column of its weights has a scale of its own."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder:
        full, small = Path(folder) / "full.onnx", Path(folder) / "int8.onnx"
        with quiet():
            export(module, full, max_pieces=max_pieces)
            quantize_dynamic(
                full,
                small,
                op_types_to_quantize=["MatMul"],  # look-ups of embeddings are no faster in int8
                per_channel=True,
                weight_type=QuantType.QInt8,
            )
        return small.read_bytes()


def export(module: HuggingFaceModule, path: Path, *, max_pieces: int) -> None:
    """Any number of sequences of any length, two of them with padding as the example."""
    ids = torch.arange(14).reshape(2, 7) + 5
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    rows, pieces = (torch.export.Dim("rows"), torch.export.Dim("pieces", max=max_pieces))
    before = module.encoder.config._attn_implementation
    module.encoder.set_attn_implementation("eager")
    try:
        torch.onnx.export(
            Encode(module).eval(),
            (ids, mask),
            path,
            dynamo=True,
            dynamic_shapes={"ids": {0: rows, 1: pieces}, "mask": {0: rows, 1: pieces}},
            external_data=False,
            input_names=[IDS, MASK],
            output_names=[VECTORS],
            verbose=False,
        )
    finally:
        module.encoder.set_attn_implementation(before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what the two libraries print on their way."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
