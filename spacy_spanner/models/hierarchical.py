"""Hierarchical contextualized representation (Luo et al. 2020): a BiLSTM-CRF tagger that also reads
a vector of the sentence and a memory of the training tokens.

Axes: B rows (sentences), L tokens, D width, E width of word vectors, K tags.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Mapping, Optional

import torch
from torch import Tensor

from ..contract import KEYS, Cost, Decoded, Facts, Gold, SpanModule, StartsFromSample, Tokens
from ..decoders.tagger import TagLayer
from ..dropout import Dropout
from ..errors import check
from .builder import architecture
from .memory import WordMemory
from .recurrent import BiLSTM
from .sentence_context import LabelAttention, SentenceContext

EVEN = "it must be even, half for each direction"


class HierarchicalNER(SpanModule, StartsFromSample):
    """Token vectors x and a sentence vector s -> BiLSTM h, memory response r -> CRF of BIOES tags.
    Token vectors must begin with the word vector."""

    contextual = True

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        word_width: Optional[int] = None,
        hidden_width: int = 256,
        sentence_width: int = 128,
        dropout: float = 0.5,
        sentence_level: Literal["off", "mean", "label"] = "label",
        kernel: int = 3,
        document_level: Literal["off", "dot", "scaled", "cosine"] = "cosine",
        fusion: Literal["hidden", "logits"] = "hidden",
        mix: float = 0.7,
        memory_size: int = 500,
        max_slots: Optional[int] = 500_000,
        memory_dtype: Literal["float32", "float16"] = "float32",
        read_singletons: bool = False,
        seed: int = 0,
        reduction: Literal["mean", "sum"] = "mean",
    ):
        """
        word_width: How many columns of a token vector are the word vector; None for all.
        hidden_width: Width of the tagging BiLSTM, both directions.
        sentence_width: Width of the sentence BiLSTM, both directions.
        dropout: Of token vectors and of what the BiLSTMs give.
        sentence_level: How word states are pooled to the sentence vector, or "off".
        kernel: Words the attention's convolution sees at once; odd.
        document_level: How the memory compares word vectors, or "off".
        fusion: Mix states before the projection to tags, or logits of two projections.
        mix: Weight of the token's own state; the memory weighs 1 - mix. Near 1 where training is short.
        memory_size: Most slots that answer one word.
        max_slots: Most slots of the memory, or None for one per training token.
        memory_dtype: How the memory is stored; "float16" takes half the space.
        read_singletons: Answer words that occur once in the training data in training as well.
        seed: Of the choice among more than `memory_size` slots.
        reduction: Mean or sum of the losses of the sentences.
        """
        super().__init__(width=width, n_labels=n_labels, output_width=hidden_width)
        self.word_width = width if word_width is None else word_width
        reason = f"the token vectors have width {width}"
        rules = [("word_width", self.word_width <= width, reason)]
        check("HierarchicalNER", {"word_width": word_width}, rules)
        self.fusion, self.mix = fusion, mix
        self.tags = TagLayer(n_labels=n_labels, scheme="BIOES", kind="crf", reduction=reduction)
        self.dropout = Dropout(dropout)
        self.sentence: Optional[SentenceContext] = None
        if sentence_level != "off":
            attention = LabelAttention(word_width=self.word_width, n_labels=n_labels, kernel=kernel)
            self.sentence = SentenceContext(
                width=width,
                hidden=sentence_width // 2,
                dropout=dropout,
                attention=attention if sentence_level == "label" else None,
            )
        extra = 0 if self.sentence is None else self.sentence.output_width
        self.lstm = BiLSTM(width=width + extra, hidden=hidden_width // 2)
        self.memory: Optional[WordMemory] = None
        if document_level != "off":
            self.memory = WordMemory(
                key_width=self.word_width,
                value_width=hidden_width,
                similarity=document_level,
                most_read=memory_size,
                max_slots=max_slots,
                dtype=memory_dtype,
                read_singletons=read_singletons,
                seed=seed,
            )
        self.project = self.tags.projection(hidden_width)
        if self.memory is not None and fusion == "logits":
            self.project_response = self.tags.projection(hidden_width)

    @classmethod
    def facts(cls, options: Mapping[str, Any]) -> Facts:
        rules = [
            (name, options[name] is None or options[name] > 0, "it must be positive")
            for name in ("word_width", "memory_size", "max_slots")
        ]
        rules += [
            (name, options[name] > 0 and options[name] % 2 == 0, EVEN)
            for name in ("hidden_width", "sentence_width")
        ]
        kernel = options["kernel"]
        rules.append(("kernel", kernel > 0 and kernel % 2 == 1, "it must be odd, to have a middle"))
        rules.append(("mix", 0 <= options["mix"] <= 1, "it must lie between 0 and 1"))
        check("HierarchicalNER", options, rules)
        return Facts(levels=1, needs_sentences=options["sentence_level"] != "off", threshold=0.0)

    def prepare(self, tokens: Tokens, gold: Gold) -> None:
        """Start each label embedding from the mean word vector of its entities."""
        attention = None if self.sentence is None else self.sentence.attention
        if attention is None:
            return
        n_rows, length = tokens.mask.shape
        tags = self.tags.scheme.spans_to_tags(gold.flat, (n_rows, length))  # (B, L)
        chosen, labels = tags > 0, (tags - 1) % max(self.n_labels, 1)
        words = tokens.x[..., : self.word_width]  # (B, L, E)
        attention.start_from(words[chosen], labels[chosen])

    def encode(self, tokens: Tokens) -> Tokens:
        """The state of each token, mixed with what the memory knows of its word (eq. 13)."""
        words = tokens.x[..., : self.word_width]  # (B, L, E)
        x = self.dropout(tokens.x)  # (B, L, D)
        if self.sentence is not None:
            x = torch.cat([x, self.sentence_vectors(x, words, tokens)], dim=2)
        h = self.lstm(x, tokens.lengths)  # (B, L, D)
        if self.memory is None:
            return tokens.with_states(self.dropout(h))
        keys = tokens.extras.get(KEYS)
        r, answered = self.memory(words, h, keys, tokens.lengths)  # (B, L, D), (B, L)
        weight = 1 - (1 - self.mix) * answered[..., None].to(h.dtype)  # (B, L, 1)
        if self.fusion == "logits":
            return tokens.with_states(self.dropout(h), response=self.dropout(r), weight=weight)
        return tokens.with_states(self.dropout(weight * h + (1 - weight) * r))

    def sentence_vectors(self, x: Tensor, words: Tensor, tokens: Tokens) -> Tensor:
        """The vector of its sentence for each token.  (B, L, D')"""
        assert self.sentence is not None
        inside = tokens.sentences
        if inside is None:
            s = self.sentence(x, words, tokens.mask, tokens.lengths)  # (B, D')
            return s[:, None].expand(-1, x.shape[1], -1)
        s = self.sentence(inside.split(x), inside.split(words), inside.mask, inside.lengths)
        return inside.spread(s)

    def logits(self, encoded: Tokens) -> Tensor:
        """Scores of the tags.  (B, L, K)"""
        logits = self.project(encoded.x)
        if self.memory is None or self.fusion == "hidden":
            return logits
        weight, response = encoded.parts["weight"], encoded.parts["response"]
        return weight * logits + (1 - weight) * self.project_response(response)

    def loss(self, encoded: Tokens, gold: Gold) -> Tensor:
        return self.tags.loss(self.logits(encoded), encoded.mask, gold.flat, gold.known)

    def decode(self, encoded: Tokens, thresholds: Tensor) -> Decoded:
        return self.tags.decode(self.logits(encoded), encoded.mask, thresholds)

    def cells(self, length: int, max_width: Optional[int] = None) -> int:
        """The gates of the BiLSTMs and the slots read for each token, or a step of the CRF."""
        read = 0 if self.memory is None else self.memory.most_read
        gates = length * (2 * self.width + 6 * self.output_width + read)
        return max(gates, length * self.tags.n_tags, self.tags.step_cells())

    def cost(self) -> Cost:
        # Measured: the wider the states, the less a step costs beside a padded token.
        return Cost(token=math.inf, step=4 * (256 / self.output_width) ** 2)


build_hierarchical_ner = architecture(
    HierarchicalNER,
    removed={
        "label_set": ("types", "there is one label embedding for each entity type"),
        "conv": ("shared", "one kernel is shared by all labels (eq 6)"),
    },
)
