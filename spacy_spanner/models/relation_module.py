"""What heads of relations share: the pointer that finds entities, and the sum of both losses."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Mapping, Optional

from torch import Tensor

from ..contract import MARKED, Decoded, Facts, Gold, SpanModule, Tokens, empty_decoded
from ..dropout import Dropout
from ..relations.bridge import Links
from .boundaries import Boundaries
from .global_pointer import GlobalPointer
from .pointer_scorers import check_pointer


class RelationModule(SpanModule):
    """Finds entities by an Efficient Global Pointer; a subclass links them. Without entity labels
    there is no entity head, and the spans to link must be given."""

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        n_relations: int,
        n_given: int,
        dropout: float,
        sum_labels: bool,
        learn_boundaries: bool,
        **pointer: Any,
    ):
        """
        n_given: Labels of given entities.
        learn_boundaries: Learn where sentences begin.
        pointer: Options of the entity head.
        """
        super().__init__(width=width, n_labels=n_labels)
        self.n_relations, self.sum_labels = n_relations, sum_labels
        self.n_end_labels = n_labels + n_given  # one of the two is 0
        self.dropout = Dropout(dropout)
        self.boundaries = Boundaries(width) if learn_boundaries else None
        self.entities: Optional[GlobalPointer] = None
        if n_labels:
            self.entities = GlobalPointer(width=width, n_labels=n_labels, efficient=True, **pointer)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        check_pointer(cls.__name__, options)
        return Facts(max_width=options["max_width"], learns_boundaries=options["learn_boundaries"])

    def encode(self, tokens: Tokens) -> Tokens:
        return tokens.with_states(self.dropout(tokens.x))

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """The loss of the links, and those of entities and sentence boundaries where these are learned."""
        loss = self.link_loss(encoded, gold)
        if self.boundaries is not None and MARKED in encoded.extras:
            loss = loss + self.boundaries.loss(encoded)
        if self.entities is None:
            return loss
        share = self.n_labels if self.sum_labels else 1  # the entity head takes the mean
        return loss + share * self.entities.loss(encoded, gold)

    @abstractmethod
    def link_loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """A mean over the stretches in which links are looked for, so that joining sentences to rows
        does not change it."""

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """The entities; `link` finds the relations between them."""
        if self.entities is None:
            return empty_decoded(encoded.x)
        return self.entities.decode(encoded, thresholds)

    def link(self, encoded: Tokens, ends: Tensor, thresholds: Tensor) -> Links:
        """Relations between spans (N, 4) of the same row, whose score is over the threshold of their
        label (R,)."""
        if self.boundaries is not None and MARKED in encoded.extras:
            encoded = self.boundaries.refine(encoded)
        return self.find_links(encoded, ends, thresholds)

    @abstractmethod
    def find_links(self, encoded: Tokens, ends: Tensor, thresholds: Tensor) -> Links:
        """As `link`, inside the sentences of `encoded`."""

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        return 0 if self.entities is None else self.entities.cells(length, max_width)
