"""Word vectors that are tuned in training for the words met there (the word part of MIN, Li et al.
2021, and of Hire-NER, Luo et al. 2020).

Axes: U distinct words of a batch, V tuned words, D width.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy
import torch
from spacy.attrs import ORTH
from spacy.strings import hash_string  # type: ignore[attr-defined]
from spacy.tokens import Doc
from spacy.vectors import BaseVectors
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import xp2torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import Errors
from ..shim import ModuleShim, shim_of
from ..words import DIGIT
from .torch_layer import Encoder, to_device, uniform, word_layer

UNKNOWN = 0  # the row of all words without a vector
MOST_WORDS = 1_000_000  # the look-up forgets what it knows beyond this, to bound its memory


class TunedTable(nn.Module):
    """The rows that are learned: one for unknown words, then one for each word of the list."""

    keys: Tensor

    def __init__(self, *, width: int, n_words: int):
        super().__init__()
        self.rows = nn.Parameter(uniform(n_words + 1, width))  # (V + 1, D)
        self.register_buffer("keys", torch.zeros(n_words, dtype=torch.int64))  # sorted

    def forward(self, rows: Tensor, positions: Tensor, static: Tensor) -> Tensor:
        """rows: Row of each word (U,). positions, static: Words with a frozen vector instead (s,)
        and those vectors (s, D)."""
        return F.embedding(rows, self.rows).index_copy(0, positions, static)  # (U, D)


class Lookup:
    """Remembers where the vector of each word is, for one static table and one word list."""

    def __init__(self, cased: bool = False) -> None:
        self.cased = cased
        self.source: Optional[Tuple[BaseVectors, Tensor]] = None
        self.extent: Tuple[Any, ...] = ()
        self.keys = numpy.zeros(0, dtype="int64")  # (V,)
        self.codes: Dict[int, int] = {}  # by ORTH: a row of ours, or -1 - i for `static[i]`
        self.static: List[str] = []

    def __reduce__(self) -> Tuple[Any, ...]:
        return (Lookup, (self.cased,))  # a copy starts empty, here or in another process

    def find(self, words: numpy.ndarray, vocab: Vocab, keys: Tensor) -> numpy.ndarray:
        """The codes of distinct words.  (U,)"""
        extent = (vocab.vectors.shape, getattr(vocab.vectors, "n_keys", None))
        same = (
            self.source is not None
            and self.source[0] is vocab.vectors
            and self.source[1] is keys
            and self.extent == extent  # vectors may be added to a table
        )
        if not same or len(self.codes) > MOST_WORDS:
            self.source, self.extent, self.keys = (vocab.vectors, keys), extent, keys.cpu().numpy()
            self.codes, self.static = {}, []
        wanted = words.tolist()
        new = [word for word in wanted if word not in self.codes]
        if new:
            self._add(new, vocab)
        return numpy.array([self.codes[word] for word in wanted], dtype="int64")

    def _add(self, words: List[int], vocab: Vocab) -> None:
        forms = [vector_form(vocab.strings[word], vocab.vectors, self.cased) for word in words]
        rows = find_sorted(self.keys, form_keys([form for form, _ in forms])).tolist()
        for word, (form, is_static), row in zip(words, forms, rows, strict=True):
            if row >= 0:
                self.codes[word] = row + 1  # after the row of unknown words
            elif is_static:
                self.codes[word] = -1 - len(self.static)
                self.static.append(form)
            else:
                self.codes[word] = UNKNOWN


def vector_form(text: str, vectors: BaseVectors, cased: bool = False) -> Tuple[str, bool]:
    """The form under which a word has its vector, and whether that is in the static table: the
    lower-case form if the table has it, else with digits folded to 0, else as it is written, which
    comes first where `cased`; folded lower-case where the table has none of them."""
    lower = text.lower()
    folded = DIGIT.sub("0", lower)
    if has_vectors(vectors):
        for form in (text, lower, folded) if cased else (lower, folded, text):
            if hash_string(form) in vectors:
                return form, True
    return folded, False


def has_vectors(vectors: BaseVectors) -> bool:
    """Is there anything in the static table?"""
    return vectors.shape[0] > 0 and vectors.shape[1] > 0


def form_keys(forms: List[str]) -> numpy.ndarray:
    """Hashes of forms, as the signed numbers that torch can store."""
    return numpy.array([hash_string(form) for form in forms], dtype="uint64").view("int64")


def find_sorted(keys: numpy.ndarray, wanted: numpy.ndarray) -> numpy.ndarray:
    """The positions of numbers in sorted keys, -1 for those that are missing."""
    if not len(keys):
        return numpy.full(len(wanted), -1)
    positions = numpy.minimum(numpy.searchsorted(keys, wanted), len(keys) - 1)
    return numpy.where(keys[positions] == wanted, positions, -1)


def read_words(model: Encoder, words: numpy.ndarray, vocab: Vocab) -> Tuple[Tensor, Tensor, Tensor]:
    """The arguments of the table: rows of words, and which words have a frozen vector instead."""
    shim = shim_of(model)
    lookup: Lookup = model.attrs["lookup"]
    check_vectors(model, vocab.vectors)
    codes = lookup.find(words, vocab, shim.module.keys)  # (U,)
    positions = numpy.flatnonzero(codes < 0)
    forms = [lookup.static[code] for code in (-1 - codes[positions]).tolist()]
    static = static_vectors(vocab.vectors, forms, model.get_dim("nO"), shim)
    rows = numpy.maximum(codes, UNKNOWN)
    return to_device(rows, shim), to_device(positions, shim), static


def static_vectors(vectors: BaseVectors, forms: List[str], width: int, shim: ModuleShim) -> Tensor:
    """The static vectors of forms that have one.  (s, D)"""
    if not forms:
        return torch.zeros((0, width), device=shim.device)
    return xp2torch(vectors.get_batch(forms), device=shim.device).to(torch.float32)


def check_vectors(model: Encoder, vectors: BaseVectors) -> None:
    """Refuse to run on other static vectors than those of the training."""
    got = vectors.shape[1] if has_vectors(vectors) else 0
    if got != model.attrs["static_width"]:
        raise ValueError(Errors.S040.format(got=got, expected=model.attrs["static_width"]))


def init(model: Encoder, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    """Take the width of the pipeline's vectors; the words are learned later."""
    if X and has_vectors(X[0].vocab.vectors):
        model.attrs["static_width"] = X[0].vocab.vectors.shape[1]
    elif X and "learn_words" not in model.attrs:
        raise ValueError(Errors.S240)
    else:
        model.attrs["static_width"] = 0
    model.set_dim("nO", model.attrs["static_width"] or model.attrs["width"])
    shim_of(model).build(width=model.get_dim("nO"), n_words=0)


def learn_words(model: Encoder, docs: Iterable[Doc]) -> None:
    """Give the words of the training data rows of their own, started from the static vectors."""
    shim = shim_of(model)
    # Not built: its component calls again when it is initialized. With words: another component has
    # called before, or the table was trained and is not to be started again.
    if not shim.is_built or len(shim.module.keys):
        return
    vocab, kept = count_forms(docs, model.attrs["min_count"], model.attrs["lookup"].cased)
    if vocab is None:
        return
    keys = form_keys(list(kept))
    order = numpy.argsort(keys)
    width = model.get_dim("nO")
    shim.build(width=width, n_words=len(kept))
    forms = numpy.array(list(kept), dtype=object)[order].tolist()
    positions = numpy.flatnonzero([kept[form] for form in forms]) + 1
    static = static_vectors(vocab.vectors, [form for form in forms if kept[form]], width, shim)
    with torch.no_grad():
        shim.module.keys.copy_(torch.from_numpy(keys[order]))
        shim.module.rows.index_copy_(0, to_device(positions, shim), static)


def count_forms(
    docs: Iterable[Doc], min_count: int, cased: bool
) -> Tuple[Optional[Vocab], Dict[str, bool]]:
    """The vocab, and the forms that get a row of their own: do they start from a static vector?"""
    counts: Counter = Counter()
    vocab: Optional[Vocab] = None
    for doc in docs:
        vocab = doc.vocab
        words, times = numpy.unique(doc.to_array(ORTH), return_counts=True)
        counts.update(dict(zip(words.tolist(), times.tolist(), strict=True)))
    if vocab is None:
        return None, {}
    by_form: Counter = Counter()
    for word, times in counts.items():
        by_form[vector_form(vocab.strings[word], vocab.vectors, cased)] += times
    return vocab, {
        form: is_static
        for (form, is_static), times in by_form.items()
        if is_static or times >= min_count
    }


def build_tuned_vectors(
    width: int = 100,
    tune: bool = True,
    min_count: int = 2,
    cased: bool = False,
    dropout: float = 0.0,
    learn_rate_scale: float = 1.0,
) -> Model[List[Doc], List[Floats2d]]:
    """Vectors of the pipeline's static vectors' width, tuned for the words of the training data.
    Other words keep their static vector; words in neither share one learned vector.

    width: Width where the pipeline has no static vectors; otherwise theirs is taken.
    tune: Without it, all static vectors stay as they are and only the unknown vector is learned.
    min_count: A training word without a static vector gets a row of its own if it occurs that
        often; rarer ones train the vector of unknown words.
    cased: Look a word up as it is written first, for static vectors that have capitals; otherwise in
        lower case first.
    dropout: On the token vectors.
    """
    model = word_layer(
        "TunedVectors",
        TunedTable,
        read_words,
        init=init,
        dropout=dropout,
        learn_rate_scale=learn_rate_scale,
        attrs={"width": width, "min_count": min_count, "static_width": 0, "lookup": Lookup(cased)},
    )
    if tune:
        model.attrs["learn_words"] = learn_words
    return model
