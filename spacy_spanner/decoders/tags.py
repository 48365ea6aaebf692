"""Tag schemes: exact conversion between flat span tables and one tag per token.

Axes: B rows, L tokens, C labels, K tags, N spans. Tag 0 is O; then one block of C tags per prefix.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn

from ..label_axes import LabelAxis

# The prefix of a token by (is first, is last) of its entity: inside, last, first, single.
_PREFIXES: Dict[str, Tuple[str, str, str, str]] = {
    "BIO": ("I", "I", "B", "B"),
    "BIOES": ("I", "E", "B", "S"),
    "IO": ("I", "I", "I", "I"),  # type only: adjacent entities of one type cannot be separated
}


class TagScheme(nn.Module):
    """The tags of `n_labels` labels under "BIO", "BIOES" or "IO", as tables on the device.

    Everything follows from one relation, `continues[y, z]`: a token tagged z continues the entity of
    the token before it tagged y. Any other entity tag opens an entity, as conlleval reads it.
    """

    continues: Tensor  # (K, K) bool
    transitions: Tensor  # (K, K) bool: z may follow y in a well-formed sequence
    starts: Tensor  # (K,) bool: may be the first tag of a row
    ends: Tensor  # (K,) bool: may be the last tag of a row
    prefix_numbers: Tensor  # (2, 2) int64: prefix number by (is first, is last)

    def __init__(self, name: str, n_labels: int):
        super().__init__()
        self.name = name
        self.n_labels = n_labels
        by_edges = _PREFIXES[name]
        self.prefixes = "".join(p for p in "BIES" if p in by_edges)
        self.n_tags = 1 + len(self.prefixes) * n_labels
        self.axis = LabelAxis(fixed=1, blocks=len(self.prefixes))
        if torch.get_default_device().type == "meta":  # only the shapes of weights are asked for
            return
        prefix = ["O"] + [p for p in self.prefixes for _ in range(n_labels)]
        label = torch.tensor([-1] + list(range(n_labels)) * len(self.prefixes))
        begins, closes = _flags(prefix, "OBS"), _flags(prefix, "OES")
        continues = (label[:, None] == label[None]) & ~closes[:, None] & ~begins[None]
        # Tags that promise a neighbour: I and E an earlier word (if the scheme has B), B and I a
        # later one (if it has E).
        inner = ~begins & torch.tensor("B" in self.prefixes)
        open_ = ~closes & torch.tensor("E" in self.prefixes)
        tables = {
            "continues": continues,
            "transitions": continues | (~open_[:, None] & ~inner[None]),
            "starts": ~inner,
            "ends": ~open_,
            "prefix_numbers": torch.tensor([self.prefixes.index(p) for p in by_edges]).view(2, 2),
        }
        for key, table in tables.items():  # rebuilt from the name, hence not saved
            self.register_buffer(key, table, persistent=False)

    def tags_of(self, prefix: Tensor, labels: Tensor) -> Tensor:
        """The tag of a prefix number and a label, elementwise."""
        return 1 + prefix * self.n_labels + labels

    def block(self, prefix: str) -> slice:
        """The tags of a prefix on the K axis."""
        begin = 1 + self.prefixes.index(prefix) * self.n_labels
        return slice(begin, begin + self.n_labels)

    def well_formed(self, tags: Tensor, mask: Tensor) -> Tensor:
        """Whether rows of tags (B, L) are well-formed under the scheme.  (B,) bool"""
        legal = self.transitions[tags[:, :-1], tags[:, 1:]] | ~mask[:, 1:]  # (B, L - 1)
        edges = self.starts[tags[:, 0]] & self.ends[last_of_rows(tags, mask)]  # (B,)
        return legal.all(1) & (edges | ~mask[:, 0])

    def spans_to_tags(self, spans: Tensor, shape: Tuple[int, int]) -> Tensor:
        """Tags of a flat table (N, 4) of spans that share no token.  (B, L)"""
        row, start, end, label = spans.unbind(1)
        n_rows, length = shape
        steps = spans.new_zeros((n_rows, length + 1))
        steps.index_put_((row, start), label + 1, accumulate=True)
        steps.index_put_((row, end), -1 - label, accumulate=True)
        cover = steps.cumsum(1)[:, :length]  # (B, L) label + 1, or 0 outside
        edges = spans.new_zeros((2, n_rows, length))
        one = torch.ones_like(row)
        edges[0].index_put_((row, start), one)
        edges[1].index_put_((row, end - 1), one)
        tags = self.tags_of(self.prefix_numbers[edges[0], edges[1]], cover - 1)
        return torch.where(cover > 0, tags, torch.zeros_like(tags))

    def tags_to_spans(self, tags: Tensor, mask: Tensor) -> Tensor:
        """The entities of any tags (B, L), ill-formed ones too, by row and start.  (N, 4)"""
        tags = torch.where(mask, tags, torch.zeros_like(tags))
        border = torch.zeros_like(tags[:, :1])
        before = torch.cat((border, tags[:, :-1]), 1)
        after = torch.cat((tags[:, 1:], border), 1)
        inside = tags > 0
        first = inside & ~self.continues[before, tags]
        last = inside & ~self.continues[tags, after]
        # Every entity has one first and one last token, and both come in the same order.
        found = torch.stack((first, last)).nonzero()  # (2 N, 3)
        n_spans = found.shape[0] // 2
        row, start = found[:n_spans, 1], found[:n_spans, 2]
        label = (tags[row, start] - 1) % max(self.n_labels, 1)
        return torch.stack((row, start, found[n_spans:, 2] + 1, label), 1)


def last_of_rows(values: Tensor, mask: Tensor) -> Tensor:
    """Value at each row's last unpadded token.  (B, L, ...) -> (B, ...)"""
    place = (mask.sum(1) - 1).clamp(min=0)  # (B,)
    return values[torch.arange(len(mask), device=mask.device), place]


def _flags(prefix: List[str], which: str) -> Tensor:
    return torch.tensor([p in which for p in prefix])
