"""A key-value memory of training tokens, read word by word (Luo et al. 2020, eq. 9-12).

Axes: B rows, L tokens, D width of values, E width of keys, S slots, U words, Q queries of a word,
R slots read for a word.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, List, Optional, Sequence, Tuple

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..contract import ReadsWords, Reports
from ..errors import Errors
from .memory_index import Bucket, Found, MemoryIndex, count_slots

MOST_NUMBERS = 4_000_000  # of the memory, read at once
MANY_SLOTS = 64  # of a word, from which on a CPU reads them where they are
# Answers are kept while so many of the questions about words that were asked before are old ones; to look for
# them costs about as much as so many answers.
FEWEST_OLD, TRIED = 0.25, 2000
# Threads may ask one memory at once. Not an attribute, which could not be copied.
CACHE_LOCK = Lock()
DTYPES = {"float32": torch.float32, "float16": torch.float16}


class AnswerCache:
    """The last answer to each word, for as long as the memory does not change.

    Word vectors that do not depend on context ask the same every time, and then hardly anything
    has to be read."""

    def __init__(self, n_words: int, queries: Tensor, value_width: int):
        self.is_held = numpy.zeros(n_words, dtype=bool)
        self.n_asked = self.n_old = 0  # about words that are held
        with torch.inference_mode(False):  # to be written in any mode later on
            self.queries = queries.new_zeros(n_words, queries.shape[1])  # (K, E)
            self.answers = queries.new_zeros(n_words, value_width)  # (K, D)

    @property
    def is_of_use(self) -> bool:
        """Whether words ask the same often enough; those of an encoder with context hardly ever do."""
        return self.n_asked < TRIED or self.n_old >= FEWEST_OLD * self.n_asked

    def holds(self, queries: Tensor, found: Found) -> numpy.ndarray:
        """Whether the answer to each found token is here; reads the device.  (n,)"""
        words = torch.from_numpy(found.words).to(queries.device)
        asked = F.embedding(torch.from_numpy(found.positions).to(queries.device), queries)
        is_same = (F.embedding(words, self.queries) == asked).all(1).cpu().numpy()
        is_old = self.is_held[found.words] & is_same
        self.n_asked += int(self.is_held[found.words].sum())
        self.n_old += int(is_old.sum())
        return is_old

    def store(self, queries: Tensor, answers: Tensor, found: Found, number: numpy.ndarray) -> None:
        """Keep the answers of these numbers to one found token of each word."""
        found, number = found.pick(number >= 0), number[number >= 0]
        words, first = numpy.unique(found.words, return_index=True)
        at = torch.from_numpy(words).to(queries.device)
        positions = torch.from_numpy(found.positions[first]).to(queries.device)
        chosen = torch.from_numpy(number[first]).to(queries.device)
        self.queries[at] = queries[positions]
        self.answers[at] = answers[chosen]
        self.is_held[words] = True

    def recall(self, found: Found) -> Tensor:
        """The answers to found tokens that `holds`.  (n, D)"""
        return F.embedding(torch.from_numpy(found.words).to(self.answers.device), self.answers)


class WordMemory(nn.Module, ReadsWords, Reports):
    """Remembers the word vector (key) and the contextual state (value) of training tokens and
    answers a word with what it saw of the same word.

    similarity: "dot", "scaled" or "cosine" (eq. 9-11).
    most_read: T, the slots that answer one word; a random choice where it has more. Prediction
        always makes the same choice.
    max_slots: Bound on the slots of all words, or None for one per training token.
    dtype: "float32" or "float16".
    read_singletons: Whether a word that occurs once is answered in training, with its own state of
        the epoch before.
    """

    keys: Tensor  # (S, E)
    values: Tensor  # (S, D)
    resized = ("keys", "values", "_extra_state")  # take the size of what is loaded

    def __init__(
        self,
        *,
        key_width: int,
        value_width: int,
        similarity: str = "cosine",
        most_read: int = 500,
        max_slots: Optional[int] = None,
        dtype: str = "float32",
        read_singletons: bool = False,
        seed: int = 0,
    ):
        super().__init__()
        self.similarity = similarity
        self.most_read = most_read
        self.max_slots = max_slots
        self.read_singletons = read_singletons
        self.random = numpy.random.default_rng(seed)
        self.fixed_draw = self.random.random(most_read)  # (T,)
        self.index = MemoryIndex(numpy.zeros((4, 0), dtype="int64"))
        self.cache: Optional[AnswerCache] = None
        self.register_buffer("keys", torch.zeros(0, key_width, dtype=DTYPES[dtype]))
        self.register_buffer("values", torch.zeros(0, value_width, dtype=DTYPES[dtype]))

    def learn_words(self, words: numpy.ndarray, counts: numpy.ndarray) -> None:
        """Make empty slots for the words (K,) of the training data, which occur so often (K,).

        A memory that was written to keeps what it has: its training goes on."""
        if self.index.filled.any():
            return
        self.index = MemoryIndex.learn(words, counts, self.max_slots)
        self._resize(self.index.n_slots)

    @property
    def widths(self) -> Tuple[int, int]:
        """Of keys and values."""
        return self.keys.shape[1], self.values.shape[1]

    @property
    def megabytes(self) -> float:
        """Size of what is stored."""
        stored = (self.keys, self.values)
        return (sum(t.numel() * t.element_size() for t in stored) + self.index.table.nbytes) / 1e6

    def summary(self) -> List[str]:
        return [f"memory of {len(self.keys):,} slots, {self.megabytes:.1f} MB"]

    def forward(
        self, vectors: Tensor, states: Tensor, keys: Optional[numpy.ndarray], lengths: Sequence[int]
    ) -> Tuple[Tensor, Tensor]:
        """Answer the words of a batch; in training, then remember them.

        vectors: (B, L, E) word vectors.
        states: (B, L, D) contextual states, which become values.
        keys: (B, L) word keys on the host; may be None only while no words are learned.
        RETURNS: (B, L, D) responses, zero where there is none, and (B, L) bool where there is one.
        """
        none = states.new_zeros(1, states.shape[2])
        answers, chosen = none, numpy.zeros(states.shape[:2], dtype="int64")  # 0: no answer
        if self.index.n_slots:
            assert keys is not None
            found = self.index.find(keys, lengths)
            if not self.index.is_silent:
                queries = self._as_query(vectors).flatten(0, 1)  # (B L, E)
                ask = self._ask_again if self._may_reuse else self._ask
                read, number = ask(queries, found)  # (A, D), (n,)
                answers = torch.cat([none, read])
                chosen.flat[found.positions] = number + 1
            if self.training:
                self._write(vectors, states, *self.index.claim(found))
        at = torch.from_numpy(chosen).to(states.device)  # (B, L)
        return F.embedding(at, answers), at > 0

    @property
    def _may_reuse(self) -> bool:
        return not self.training and not torch.is_grad_enabled()

    def _ask(self, queries: Tensor, found: Found) -> Tuple[Tensor, numpy.ndarray]:
        """Answers (A, D), and which of them belongs to each found token; -1 for none.  (n,)"""
        buckets = self.index.plan(
            found,
            most=self.most_read,
            draw=self.random.random(self.most_read) if self.training else self.fixed_draw,
            twice_only=self.training and not self.read_singletons,
            alone=self._may_reuse,
        )
        answers = [queries.new_zeros(0, self.values.shape[1])]
        answer_at = numpy.full(len(queries), -1)  # (B L,)
        n_answers = 0
        for bucket in buckets:
            most = max(1, MOST_NUMBERS // (bucket.slots.shape[1] * sum(self.widths)))
            for start in range(0, len(bucket.slots), most):
                part = bucket.pick(slice(start, start + most))
                answers.append(self._read(queries, part).flatten(0, 1))  # (U Q, D)
            number = n_answers + numpy.arange(bucket.positions.size).reshape(bucket.positions.shape)
            answer_at[bucket.positions[bucket.is_query]] = number[bucket.is_query]
            n_answers += bucket.positions.size
        return torch.cat(answers), answer_at[found.positions]

    def _ask_again(self, queries: Tensor, found: Found) -> Tuple[Tensor, numpy.ndarray]:
        """As `_ask`, but a word that asks with the same vector as before gets the same answer."""
        if self.cache is None or self.cache.queries.device != queries.device:
            self.cache = AnswerCache(len(self.index.starts), queries, self.values.shape[1])
        cache = self.cache
        if not cache.is_of_use:
            return self._ask(queries, found)
        with CACHE_LOCK:
            is_old = cache.holds(queries, found)  # (n,)
            known = cache.recall(found.pick(is_old))  # before other questions about these words
        new = found.pick(~is_old)
        answers, new_number = self._ask(queries, new)
        with CACHE_LOCK:
            cache.store(queries, answers, new, new_number)
        number = numpy.empty(len(is_old), dtype="int64")  # (n,)
        number[~is_old] = new_number
        number[is_old] = len(answers) + numpy.arange(len(known))
        return torch.cat([answers, known]), number

    def _read(self, queries: Tensor, bucket: Bucket) -> Tensor:
        """Eq. 12 for all tokens of the words in a bucket.  (U, Q, D)"""
        positions, slots, n_slots = (
            torch.from_numpy(a).to(queries.device)
            for a in (bucket.positions, bucket.slots, bucket.n_slots)
        )
        asked = F.embedding(positions, queries)  # (U, Q, E)
        if self._may_reuse and slots.shape[1] >= MANY_SLOTS and slots.device.type == "cpu":
            return self._read_words(asked, bucket)
        keys = F.embedding(slots, self.keys).to(queries.dtype)  # (U, R, E)
        values = F.embedding(slots, self.values).to(queries.dtype)  # (U, R, D)
        counts = torch.arange(slots.shape[1], device=slots.device) < n_slots[:, None]  # (U, R)
        logits = asked @ keys.transpose(1, 2)  # (U, Q, R)
        return logits.masked_fill(~counts[:, None], -torch.inf).softmax(2) @ values

    def _read_words(self, asked: Tensor, bucket: Bucket) -> Tensor:
        """As `_read`, word by word: slots that lie side by side are not copied.  (U, Q, D)"""
        answers = []
        edges = numpy.flatnonzero(numpy.diff(bucket.slots[:, 0], prepend=-1, append=-1))
        for begin, end in zip(edges[:-1], edges[1:], strict=True):  # blocks of one word
            slots = bucket.slots[begin, : bucket.n_slots[begin]]  # (R,)
            if slots[-1] - slots[0] == len(slots) - 1:
                at: Any = slice(slots[0], slots[-1] + 1)
            else:
                at = torch.from_numpy(slots)
            keys, values = (own[at].to(asked.dtype) for own in (self.keys, self.values))
            own = asked[begin:end]  # (U, Q, E)
            # By products of the shape of a block: sums are rounded the same however many there are.
            shares = torch.bmm(own, keys.T.expand(len(own), -1, -1)).softmax(2)  # (U, Q, R)
            answers.append(torch.bmm(shares, values.expand(len(own), -1, -1)))
        return torch.cat(answers)

    @torch.no_grad()
    def _write(
        self, vectors: Tensor, states: Tensor, slots: numpy.ndarray, positions: numpy.ndarray
    ) -> None:
        self.cache = None
        at = torch.from_numpy(slots).to(states.device)
        chosen = torch.from_numpy(positions).to(states.device)
        words = vectors.flatten(0, 1)[chosen]
        words = unit(words) if self.similarity == "cosine" else words
        self.keys[at] = words.to(self.keys.dtype)
        self.values[at] = states.flatten(0, 1)[chosen].to(self.values.dtype)

    def _as_query(self, vectors: Tensor) -> Tensor:
        if self.similarity == "cosine":  # keys are stored with length one
            return unit(vectors)
        return vectors * vectors.shape[2] ** -0.5 if self.similarity == "scaled" else vectors

    def _resize(self, n_slots: int) -> None:
        self.cache = None
        self.keys = self.keys.new_zeros(n_slots, self.keys.shape[1])
        self.values = self.values.new_zeros(n_slots, self.values.shape[1])

    def get_extra_state(self) -> Tensor:
        """The index goes with the weights.  (4, K)"""
        return torch.from_numpy(self.index.table.copy())

    def set_extra_state(self, state: Tensor) -> None:
        """The inverse of `get_extra_state`."""
        self.index = MemoryIndex(state.cpu().numpy().copy())

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Take over the size of what is loaded, if it fits together."""
        if prefix + "keys" in state_dict:
            shapes = [state_dict[prefix + name].shape for name in ("keys", "values")]
            n_slots = count_slots(state_dict[prefix + "_extra_state"].cpu().numpy())
            if shapes != [(n_slots, width) for width in self.widths]:
                reason = "the slots of the memory do not fit its words"
                raise ValueError(Errors.S005.format(reason=reason))
            self._resize(len(state_dict[prefix + "keys"]))
        super()._load_from_state_dict(state_dict, prefix, *args)


def unit(x: Tensor) -> Tensor:
    """Vectors with length one; zero stays zero, with a finite gradient."""
    square = (x * x).sum(-1, keepdim=True)
    return x * torch.where(square > 0, square, torch.ones_like(square)).rsqrt()
