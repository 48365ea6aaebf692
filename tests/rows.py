"""Random padded rows and gold for tests of torch modules."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import numpy
import torch

from spacy_spanner.contract import Gold, Sentences, SpanModule, Tokens

Span = Tuple[int, int, int, int]


def make_tokens(
    lengths: Sequence[int], width: int, *, seed: int = 0, dtype=torch.float32
) -> Tokens:
    """Rows of these lengths with random vectors, zero where padded."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((len(lengths), max(lengths), width), generator=generator, dtype=dtype)
    mask = torch.arange(max(lengths)) < torch.tensor(list(lengths))[:, None]
    return Tokens(x * mask[..., None], mask, list(lengths))


def one_row(tokens: Tokens, row: int, *, extra: int = 0) -> Tokens:
    """One row alone, with `extra` more padding than it needs."""
    n = tokens.lengths[row]
    x = torch.nn.functional.pad(tokens.x[row : row + 1, :n], (0, 0, 0, extra))
    mask = torch.nn.functional.pad(tokens.mask[row : row + 1, :n], (0, extra))
    return Tokens(x, mask, [n])


def with_sentences(tokens: Tokens, starts: List[Tuple[int, int]]) -> Tokens:
    """The same rows with sentences that begin at these (row, token)."""
    marks = numpy.zeros(tuple(tokens.mask.shape), dtype=bool)
    marks[:, 0] = True
    for row, token in starts:
        marks[row, token] = True
    inside = Sentences(marks, tokens.lengths, tokens.mask.device)
    return Tokens(tokens.x, tokens.mask, tokens.lengths, sentences=inside)


def make_gold(spans: List[Span], *, n_outer: Optional[int] = None, known=None) -> Gold:
    table = torch.tensor(spans, dtype=torch.int64).reshape(-1, 4)
    return Gold(table, (len(spans) if n_outer is None else n_outer,), known)


def table(decoded) -> List[tuple]:
    """Decoded spans in a fixed order, with rounded scores."""
    rows = zip(decoded.spans.tolist(), decoded.scores.tolist())
    return sorted((*span, round(score, 5)) for span, score in rows)


def loss_on_meta(module: SpanModule, tokens: Tokens, gold: Gold) -> torch.Tensor:
    """The loss on a device without values: any host read or tensor of another device fails."""
    meta = torch.device("meta")
    known = None if gold.known is None else gold.known.to(meta)
    x = tokens.x.to(meta).requires_grad_(True)
    on_meta = Tokens(x, tokens.mask.to(meta), tokens.lengths)
    loss = module.to(meta).train()(on_meta, Gold(gold.spans.to(meta), gold.per_level, known))
    loss.backward()
    return loss


def gradient_is_exact(module: SpanModule, tokens: Tokens, gold: Gold) -> bool:
    """Whether the gradient of the loss is that of finite differences; for numbers of float64."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        return module(Tokens(x, tokens.mask, tokens.lengths), gold)

    return torch.autograd.gradcheck(loss, (tokens.x.requires_grad_(True),), fast_mode=True)
