"""Options that all encoders over pieces have, declared once."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Literal, Optional

from .pieces import Windows
from .torch_layer import check_option


def piece_options(
    encoder: str,
    *,
    window: Optional[int] = 128,
    stride: int = 96,
    split: Literal["strided", "sentences"] = "strided",
    context: int = 0,
    overlap: Literal["best", "spacy-transformers"] = "best",
    pooling: Literal["first", "mean", "max"] = "mean",
    max_batch_tokens: Optional[int] = None,
) -> Dict[str, Any]:
    """The same as options of `make_module`, checked; docs/encoders.md explains them. `encoder` is its name
    in errors."""
    check = partial(check_option, encoder)
    check("window", window, window is None or window > 0, "it must be positive, or null")
    fits = stride > 0 and (window is None or stride <= window)
    check("stride", stride, fits, "it must be positive and not larger than `window`")
    fits = context == 0 or (context > 0 and split == "sentences")
    check("context", context, fits, 'it must not be negative, and needs split = "sentences"')
    fits = max_batch_tokens is None or max_batch_tokens > 0
    check("max_batch_tokens", max_batch_tokens, fits, "it must be positive, or null")
    windows = Windows(window, stride, split, context)
    return {
        "windows": windows,
        "overlap": overlap,
        "pooling": pooling,
        "max_batch_tokens": max_batch_tokens,
    }
