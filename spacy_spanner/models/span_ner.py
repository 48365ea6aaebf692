"""SpanNER: every span up to a width is classified (Ji et al. 2022, section 3.1.3).

Axes: B rows, L tokens, W widths, D width, C labels, K = C + 1 classes (0 is none), N spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Literal, Mapping, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Decoded, Facts, Gold, ListsCandidates, SpanModule, Tokens
from ..dropout import Dropout
from ..errors import check
from ..label_axes import CLASSES, mark_layer
from ..spans.bands import all_known, band_mask, band_view, clear_spans
from ..spans.pooling import project_band_max
from ..spans.sampling import sample_rows
from .builder import architecture
from .span_content import SpanContent, content_rules, sees_neighbours

N_LENGTHS = 100  # rows of the length table; longer spans share the last one

# The parts of the span vector, in the order of their columns in the classifier.
PARTS: Dict[str, Tuple[str, ...]] = {
    "boundary": ("start", "end", "length"),
    "pooling": ("pool", "context", "length"),
    "hybrid": ("start", "end", "pool", "context", "length"),
}


@dataclass
class Added:
    """The summands of the logits of a batch."""

    first: Tensor  # (B, L, K) of the first token and of the sentence
    lengths: Tensor  # (N_LENGTHS, K) of the length, and the bias
    last: Optional[Tensor] = None  # (B, L, K) of the last token
    pool: Optional[Tensor] = None  # (B, L, W, K) of the maximum over the tokens
    widest: Optional[Tensor] = None  # (B, L, D) maxima of W tokens, for gold that has no cell
    content: Optional[Tensor] = None  # (B, L, W, K) of the vectors of spans


class SpanNER(SpanModule, ListsCandidates):
    """One linear layer over the concatenated parts of a span vector, computed part by part: what
    depends on a token or on a length alone is projected once, and the projections are added."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        max_width: int = 10,
        representation: Literal["boundary", "pooling", "hybrid"] = "hybrid",
        max_negatives: int = 100,
        length_width: int = 25,
        dropout: float = 0.1,
        content_width: Optional[int] = None,
        content_layers: int = 1,
        content_product: bool = False,
        content_norm: bool = False,
    ):
        """
        max_width: The widest span, in tokens, that is looked at when predicting; one that holds 99 %
            of the gold spans is wide enough.
        representation: Parts of the span vector: "boundary" (first and last token), "pooling" (max
            over the tokens, and the context: the sentence) or "hybrid" (all of them); each with the
            length.
        max_negatives: How many spans that are not gold are drawn per sentence and update.
        length_width: Width of the length embedding.
        dropout: On each part of the span vector.
        content_width: Width of the vectors of spans (their ends, the mean of their tokens, their width)
            that also score them, behind a GELU layer; null for none, as in the paper.
        content_layers: Convolutions over these vectors, in which a span sees those beside it.
        content_product: These vectors also hold the product of the ends.
        content_norm: Layer normalisation of these vectors.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.max_width = max_width
        self.max_negatives = max_negatives
        self.parts = PARTS[representation]
        self.sizes = [length_width if part == "length" else width for part in self.parts]
        self.dropout = Dropout(dropout)
        self.lengths = nn.Embedding(N_LENGTHS, length_width)
        self.classify = nn.Linear(sum(self.sizes), n_labels + 1)
        mark_layer(self.classify)
        self.content: Optional[SpanContent] = None
        if content_width is not None:
            self.content = SpanContent(
                width=width,
                n_out=n_labels + 1,
                axis=CLASSES,
                size=content_width,
                layers=content_layers,
                max_width=max_width,
                product=content_product,
                normalise=content_norm,
            )

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        least = {"max_width": 1, "length_width": 1, "max_negatives": 0}
        rules = [(o, options[o] >= n, f"it must be at least {n}") for o, n in least.items()]
        check("SpanNER", options, [*rules, *content_rules(options)])
        has_context = "context" in PARTS[options["representation"]]
        return Facts(
            max_width=options["max_width"],
            needs_sentences=has_context or sees_neighbours(options),
            threshold=0.0,
        )

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Cross entropy, mean over all gold spans and the sampled negatives of the batch."""
        added = self.project(encoded)
        cell, chosen = self.sample_negatives(encoded, gold)  # (B, M)
        band = self.band_logits(added).flatten(1, 2)  # (B, L * W, K)
        negatives = band.gather(1, cell[..., None].expand(-1, -1, band.shape[2]))  # (B, M, K)
        logits = torch.cat((self.span_logits(added, gold.spans), negatives.flatten(0, 1)))
        classes = F.pad(gold.spans[:, 3] + 1, (0, chosen.numel()))
        counted = F.pad(chosen.flatten(), (len(gold.spans), 0), value=True)
        losses = F.cross_entropy(logits, classes, reduction="none")  # (N,)
        return (losses * counted).sum() / counted.sum().clamp(min=1)

    def sample_negatives(self, tokens: Tokens, gold: Gold) -> Tuple[Tensor, Tensor]:
        """Random annotated spans, none of them gold, as many for each sentence: cells of the
        flattened band (B, M), and which of them count (B, M)."""
        n_widths = min(self.max_width, tokens.mask.shape[1])
        free = clear_spans(band_mask(tokens.mask, n_widths), gold.spans)  # (B, L, W)
        if gold.known is not None:
            free = free & all_known(gold.known, n_widths)
        per_row = [1] if tokens.sentences is None else tokens.sentences.per_row
        most = self.max_negatives * max(per_row)
        wanted = self.max_negatives * torch.tensor(per_row, device=free.device)  # (B,) or (1,)
        return sample_rows(free.flatten(1), wanted, most)

    def project(self, tokens: Tokens) -> Added:
        """What each part of the span vectors adds to the logits."""
        x = tokens.x
        weights = self._weights()
        lengths = self.dropout(self.lengths.weight)
        added = Added(
            first=x.new_zeros((1, 1, 1)),
            lengths=F.linear(lengths, weights["length"], self.classify.bias),
        )
        if "start" in weights:
            added.first = F.linear(self._drop_channels(x), weights["start"])
            added.last = F.linear(self._drop_channels(x), weights["end"])
        if "pool" in weights:
            added.first = added.first + self._project_context(tokens, weights["context"])
            # Dropout commutes with the maximum: its factors are the same for all tokens of a row.
            kept, n_widths = self._drop_channels(x), min(self.max_width, x.shape[1])
            added.pool, added.widest = project_band_max(kept, weights["pool"], n_widths)
        added.first = added.first.expand(-1, x.shape[1], -1)
        if self.content is not None:
            added.content = self.content(tokens, x.shape[1])
        return added

    def band_logits(self, added: Added) -> Tensor:
        """Class logits of all spans up to `max_width`; those that leave their row mean nothing.
        (B, L, W, K)"""
        n_widths = min(self.max_width, added.first.shape[1])
        width = torch.arange(n_widths, device=added.first.device).clamp(max=N_LENGTHS - 1)
        logits = added.first[:, :, None] + added.lengths[width]
        if added.last is not None:
            logits = logits + band_view(added.last.transpose(1, 2), n_widths).permute(0, 2, 3, 1)
        for of_cells in (added.pool, added.content):
            logits = logits if of_cells is None else logits + of_cells
        return logits

    def span_logits(self, added: Added, spans: Tensor) -> Tensor:
        """Class logits of single spans (N, 4), which may be wider than the band.  (N, K)"""
        row, start, end, _ = spans.unbind(1)
        cell = end - start - 1
        logits = added.first[row, start] + added.lengths[cell.clamp(max=N_LENGTHS - 1)]
        if added.last is not None:
            logits = logits + added.last[row, end - 1]
        if added.content is not None:
            n_widths = added.content.shape[2]
            by_content = added.content[row, start, cell.clamp(max=n_widths - 1)]
            logits = logits + by_content * (cell < n_widths)[:, None]
        if added.pool is None or added.widest is None:
            return logits
        n_widths = added.pool.shape[2]
        narrow = added.pool[row, start, cell.clamp(max=n_widths - 1)]
        from_start = added.widest[row, start]  # (N, D)
        to_end = added.widest[row, (end - n_widths).clamp(min=0)]
        wide = F.linear(torch.maximum(from_start, to_end), self._weights()["pool"])
        return logits + torch.where((cell < n_widths)[:, None], narrow, wide)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """Spans whose most probable class is a label of probability over its threshold."""
        logits = self.band_logits(self.project(encoded))
        inside = band_mask(encoded.mask, logits.shape[2])  # (B, L, W)
        found = (inside & (logits[..., 1:].amax(3) > logits[..., 0])).nonzero()  # (N, 3)
        row, start, cell = found.unbind(1)
        classes = logits[row, start, cell]  # (N, K)
        scores, label = classes.softmax(1)[:, 1:].max(1)
        keep = scores > thresholds[label]
        spans = torch.stack((row, start, start + cell + 1, label), 1)
        margins = classes[:, 1:].amax(1) - classes[:, 0]  # (N,)
        return Decoded(spans[keep], scores[keep], margins[keep])

    def candidates(self, encoded: Tokens, least: Tensor) -> Tuple[Tensor, Tensor]:
        logits = self.band_logits(self.project(encoded))  # (B, L, W, K)
        inside = band_mask(encoded.mask, logits.shape[2])[..., None]  # (B, L, W, 1)
        # Odds are at most those against none alone, which are quickly compared.
        over = inside & (logits[..., 1:] - logits[..., :1] > least)
        row, start, cell, label = over.nonzero(as_tuple=True)
        classes = logits[row, start, cell]  # (N, K)
        chosen = classes.gather(1, label[:, None] + 1)  # (N, 1)
        others = classes.scatter(1, label[:, None] + 1, -torch.inf).logsumexp(1)
        odds = chosen[:, 0] - others  # (N,)
        keep = odds > least[label]
        return torch.stack((row, start, start + cell + 1, label), 1)[keep], odds[keep]

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        of_content = 0 if self.content is None else self.content.cells(length)
        numbers = max(min(self.max_width, length) * (self.n_labels + 1), self.width)
        return max(length * numbers, of_content)

    def _weights(self) -> Dict[str, Tensor]:
        """The columns of the classifier by part: (K, D), for the length (K, 25)."""
        columns = self.classify.weight.split(self.sizes, dim=1)
        return {part: c.contiguous() for part, c in zip(self.parts, columns, strict=True)}

    def _drop_channels(self, x: Tensor) -> Tensor:
        """Dropout with one draw per row and channel (B, 1, D), for all tokens alike."""
        return x * self.dropout(torch.ones_like(x[:, :1])) if self.training else x

    def _project_context(self, tokens: Tokens, weights: Tensor) -> Tensor:
        """What the vector of the sentence adds to each of its tokens.  (B, L, K), or (B, 1, K)
        where each row is one sentence"""
        if tokens.sentences is None:
            return F.linear(self._drop_channels(max_of_rows(tokens.x, tokens.mask)), weights)
        pooled = max_of_rows(tokens.sentences.split(tokens.x), tokens.sentences.mask)  # (S, 1, D)
        return tokens.sentences.spread(F.linear(self._drop_channels(pooled), weights)[:, 0])


def max_of_rows(x: Tensor, mask: Tensor) -> Tensor:
    """The maximum over the tokens of each row.  (B, L, D), (B, L) -> (B, 1, D)"""
    return x.masked_fill(~mask[..., None], torch.finfo(x.dtype).min).amax(1, keepdim=True)


build_span_ner = architecture(
    SpanNER,
    removed={"context": ("max", "the context is the maximum over the tokens of the sentence")},
)
