"""Modularized Interaction Network (Li et al. 2021): a tagger that also sees segments and types.

Axes: B rows, L tokens, D width of a BiLSTM's states, C labels.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import Cost, Decoded, Facts, Gold, SpanModule, StartsFromSample, Tokens
from ..decoders.tagger import Tagger, TagLayer
from ..dropout import Dropout
from .boundary_pointer import Pointer
from .builder import architecture
from .information import Information
from .interaction import Interaction
from .recurrent import BiLSTM, read_rows


class Gate(nn.Module):
    """Gate for information that is added to the states of the tagger (equation 3)."""

    def __init__(self, *, guide_width: int, width: int):
        super().__init__()
        self.guide = nn.Linear(guide_width, width, bias=False)
        self.own = nn.Linear(width, width, bias=False)

    def forward(self, guide: Tensor, information: Information) -> Tensor:
        both = torch.cat([guide, information.shares], dim=-1)
        weight = torch.cat([self.guide.weight, information.weights(self.own.weight)], dim=1)
        return F.linear(both, weight).sigmoid_() * information.vectors()


class Fusion(nn.Module):
    """The states of the tagger with all gated information, in the width of the states (equation 4).

    Starts as the states alone, so that training begins where that of a plain BiLSTM-CRF begins. Adam
    moves all weights by about as much, so a layer moves what it gives by as much as it is wide; the
    gated information is therefore weighed by how much wider than the states it is, or it is learned by
    heart before the states have learned anything.

    dropout: On the gated information and on the result, where a plain BiLSTM-CRF has it.
    """

    def __init__(self, *, width: int, extra_widths: Dict[str, int], dropout: float):
        super().__init__()
        self.dropout = Dropout(dropout)
        gates = {name: Gate(guide_width=width, width=n) for name, n in extra_widths.items()}
        self.gates = nn.ModuleDict(gates)
        self.extra_widths = list(extra_widths.values())
        self.scale = width / sum(self.extra_widths)
        self.mix = nn.Linear(width + sum(self.extra_widths), width)
        nn.init.eye_(self.mix.weight)
        nn.init.zeros_(self.mix.bias)

    def forward(self, states: Tensor, extras: Dict[str, Information]) -> Tensor:
        """States (..., D) with the information of the same tokens.  (..., D)"""
        own, *weights = self.mix.weight.split([states.shape[-1], *self.extra_widths], dim=1)
        mixed = F.linear(states, own, self.mix.bias)
        for (name, gate), weight in zip(self.gates.items(), weights, strict=True):
            gated = self.dropout(gate(states, extras[name]))
            mixed = mixed + F.linear(gated, self.scale * weight)
        return self.dropout(mixed)


class ModularizedInteraction(SpanModule, StartsFromSample):
    """Three BiLSTMs over shared token vectors, two auxiliary tasks and a BIOES CRF over it all."""

    contextual = True

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        hidden: int = 100,
        dropout: float = 0.5,
        segment_window: int = 6,
        use_boundary: bool = True,
        use_type: bool = True,
        use_interaction: bool = True,
        ner_weight: float = 1.0,
        boundary_weight: float = 1.0,
        type_weight: float = 1.0,
    ):
        """
        hidden: Width of one direction of each BiLSTM.
        dropout: On the token vectors, on the states of the two auxiliary BiLSTMs, on what the gates let
            through and on what the tagger reads.
        segment_window: Longest segment, in words, that the segment vectors look at.
        use_boundary, use_type, use_interaction: Ablations. The interaction needs both other modules;
            without either of them this is a BiLSTM-CRF.
        ner_weight, boundary_weight, type_weight: Of the three losses (equation 13).
        """
        super().__init__(width=width, n_labels=n_labels, output_width=2 * hidden)
        states = 2 * hidden
        self.dropout = Dropout(dropout)
        self.loss_weights = {"ner": ner_weight, "boundary": boundary_weight, "types": type_weight}
        self.encoders = nn.ModuleDict({"ner": BiLSTM(width=width, hidden=hidden)})
        self.pointer: Optional[Pointer] = None
        self.types: Optional[Tagger] = None
        self.interaction: Optional[Interaction] = None
        extra_widths: Dict[str, int] = {}
        if use_boundary:
            self.encoders["boundary"] = BiLSTM(width=width, hidden=hidden)
            self.pointer = Pointer(width=states, window=segment_window)
            extra_widths.update(boundary=states, segment=4 * states)
        if use_type:
            self.encoders["types"] = BiLSTM(width=width, hidden=hidden)
            self.types = Tagger(TagLayer(n_labels=n_labels, scheme="IO", kind="crf"), width=states)
            extra_widths["types"] = states
        if use_boundary and use_type and use_interaction:
            self.interaction = Interaction(width=states)
            extra_widths.update(
                boundary=self.interaction.output_width, types=self.interaction.output_width
            )
        self.fused_width = states + sum(extra_widths.values())
        self.fusion: Optional[Fusion] = None
        if extra_widths:
            self.fusion = Fusion(width=states, extra_widths=extra_widths, dropout=dropout)
        tags = TagLayer(n_labels=n_labels, scheme="BIOES", kind="crf")
        self.tagger = Tagger(tags, width=states)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        return Facts(levels=1, threshold=0.0)

    def prepare(self, tokens: Tokens, gold: Gold) -> None:
        """Both taggers start from how often each tag occurs, and need not first learn that most
        words have none."""
        for tagger in (self.tagger, self.types):
            if tagger is not None:
                tagger.project.bias.data = tag_log_frequencies(tagger, tokens.mask, gold)

    def encode(self, tokens: Tokens) -> Tokens:
        """States of the NER module as `x`, those of the other modules as parts.  (B, L, D) each"""
        encoders = cast(List[BiLSTM], list(self.encoders.values()))
        found = read_rows(encoders, self.dropout(tokens.x), tokens.lengths)
        states = dict(zip(self.encoders, found, strict=True))
        # What the tagger reads is dropped out once, after the fusion: twice would hold it back.
        ner = states.pop("ner")
        return tokens.with_states(ner, **{name: self.dropout(s) for name, s in states.items()})

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        """Equation 13, a weighted sum."""
        total = encoded.x.new_zeros(())
        for name, value in self.loss_terms(encoded, gold).items():
            total = total + self.loss_weights[name] * value
        return total

    def loss_terms(self, encoded: Tokens, gold: Gold) -> Dict[str, Tensor]:
        """Equation 12: the loss of each module that there is."""
        mask = encoded.mask
        terms: Dict[str, Tensor] = {}
        points: Optional[Tensor] = None
        if self.pointer is not None:
            log_probs = self.pointer(encoded.parts["boundary"], mask)  # (B, L, L + 1)
            terms["boundary"] = self.pointer.loss(log_probs, mask, gold)
            points = log_probs.exp()
        if self.types is not None:
            terms["types"] = self.types.loss(encoded.parts["types"], mask, gold.flat, gold.known)
        fused = self.fuse(encoded, points)
        terms["ner"] = self.tagger.loss(fused, mask, gold.flat, gold.known)
        return terms

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        """The best tags of the NER module; the other two modules only inform it."""
        points: Optional[Tensor] = None
        if self.pointer is not None:
            points = self.pointer.logits(encoded.parts["boundary"], encoded.mask).softmax(2)
        return self.tagger.decode(self.fuse(encoded, points), encoded.mask, thresholds)

    def fuse(self, encoded: Tokens, points: Optional[Tensor]) -> Tensor:
        """The input of the tagger, given the probabilities of the pointer (B, L, L + 1).  (B, L, D)

        Nearly all numbers are multiplied in the fusion, so it sees no padding."""
        if self.fusion is None:
            return self.dropout(encoded.x)
        extras = {name: Information.of(states) for name, states in encoded.parts.items()}
        if self.pointer is not None and points is not None:
            extras["segment"] = self.pointer.segments(points, encoded.parts["boundary"])
        if self.interaction is not None and self.types is not None:
            extras["boundary"], extras["types"] = self.interaction(
                encoded.parts["boundary"],
                encoded.parts["types"],
                encoded.mask,
                self.types.project.weight,
            )
        unpadded = {name: own.each(encoded.unpad) for name, own in extras.items()}
        return encoded.pad(self.fusion(encoded.unpadded, unpadded))

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        tables = (self.pointer is not None) + 2 * (self.interaction is not None)  # (L, L) each
        return length * (tables * length + self.fused_width)

    def cost(self) -> Cost:
        # Measured: steps cost little beside the gates of the paper's width, and more beside lesser ones.
        return Cost(token=math.inf, step=2 * (200 / self.output_width) ** 2)


def tag_log_frequencies(tagger: Tagger, mask: Tensor, gold: Gold) -> Tensor:
    """Log of each tag's share of the annotated words, each tag seen once more than it is.  (K,)"""
    scheme = tagger.tags.scheme
    tags = scheme.spans_to_tags(gold.flat, (mask.shape[0], mask.shape[1]))  # (B, L)
    if gold.known is not None:
        mask = mask & (gold.known | (tags > 0))
    bias = tagger.project.bias
    counts = torch.ones_like(bias).index_add(0, tags.flatten(), mask.flatten().to(bias.dtype))
    return (counts / counts.sum()).log().detach()


QIN = "the attention to labels is a dot product with the rows of the classifier"
build_modularized_interaction = architecture(
    ModularizedInteraction,
    removed={
        "window_scope": ("sum", "`segment_window` bounds the sum of equation 10 alone"),
        "label_attention": ("qin", QIN),
        "label_heads": (5, QIN),
    },
)
