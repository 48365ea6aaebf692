"""Between thinc and torch: token vectors of documents in, rows of them to the head, gradients back.

The token vectors of a whole batch are one flat leaf tensor (T, D); rows are gathered from it by index,
so that windows may overlap and autograd adds up what each token gets from all of its rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import torch2xp
from torch import Tensor, nn

from . import heap
from .batch import END, SIZES, START, SpanBatch, SpanPrediction
from .contract import Facts, Proposes, ReadsWords, SpanModule, StartsFromSample, Tokens
from .errors import Errors
from .forking import forks_wait
from .grouping import group_rows
from .row_tensors import gather, gather_gold
from .shim import ModuleShim, flatten, shim_of, split
from .words import word_keys

SpanTableModel = Model[SpanBatch, Any]
NO_FACTS = Facts()


@dataclass
class Head:
    """A head that is not built yet: its maker, and the properties its component depends on."""

    maker: Callable[..., Any]  # called with width= and n_labels=
    facts: Facts


def span_table_model(
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]],
    maker: Callable[..., SpanModule],
    *,
    facts: Facts = NO_FACTS,
    learn_rate_scale: float = 1.0,
) -> SpanTableModel:
    """The model of a component: tok2vec, then a head. Without a tok2vec it is only a part for
    another architecture, which takes the head out by `head_of`."""
    # Hooks for the component; thinc leaves functions out when it stores attributes.
    hooks = {"prepare": prepare, "learn_words": learn_words, "propose": propose}
    attrs = {**asdict(facts), **hooks}
    return table_model("span_table", tok2vec, maker, predict_rows, attrs, learn_rate_scale)


def table_model(
    name: str,
    tok2vec: Optional[Model[List[Doc], List[Floats2d]]],
    maker: Callable[..., SpanModule],
    predict: Callable[..., Any],
    attrs: Dict[str, Any],
    learn_rate_scale: float,
    dims: Sequence[str] = (),
) -> Model[SpanBatch, Any]:
    """A tok2vec with a head over its token vectors.

    predict: From the model, a batch and its token vectors to what was found.
    dims: Sizes of the head beside `nI` and `nO`."""
    return Model(
        name,
        partial(forward, predict=predict),
        init=init,
        layers=[] if tok2vec is None else [tok2vec],
        shims=[ModuleShim(maker, learn_rate_scale=learn_rate_scale)],
        dims=dict.fromkeys(["nI", "nO", *dims]),
        refs={"tok2vec": tok2vec},
        attrs={**attrs, "resize_output": resize_output},
    )


def head_of(model: SpanTableModel) -> Head:
    """The head of a model that any of our architectures built."""
    if model.name != "span_table":
        raise ValueError(Errors.S008.format(name="model"))
    facts = Facts(**{field.name: model.attrs[field.name] for field in fields(Facts)})
    return Head(shim_of(model).maker, facts)


def init(model: SpanTableModel, X: Optional[SpanBatch] = None, Y: Any = None) -> None:
    """Initialize the tok2vec and build the head; the component has set `nO` to its labels and, where
    there are relations, `nR` to theirs."""
    tok2vec = model.layers[0]
    tok2vec.initialize(X.docs if X is not None else None)
    model.set_dim("nI", tok2vec.get_dim("nO"))
    shim_of(model).build(**head_sizes(model))


def head_sizes(model: Model) -> Dict[str, int]:
    """The sizes that the head of a model is made with."""
    return {size: model.get_dim(dim) for size, dim in SIZES.items() if model.has_dim(dim)}


def resize_output(model: Model, nO: int, *, dim: str = "nO") -> Model:
    """Give a model more labels; if it is built, what it learned stays.

    dim: "nR" for the labels of relations."""
    model.set_dim(dim, nO, force=True)
    if shim_of(model).is_built:
        shim_of(model).grow(**head_sizes(model))
    return model


def prepare(
    model: SpanTableModel, batch: SpanBatch, encoded: Callable[[List[Doc]], List[Doc]]
) -> None:
    """Show the head a sample of the training data, if it takes one.

    encoded: Gives the documents as the encoders of other components, which a listener waits for,
        have read them."""
    module: SpanModule = shim_of(model).module
    if not isinstance(module, StartsFromSample) or not len(batch.rows):
        return
    assert batch.gold is not None
    rows = numpy.arange(len(batch.rows))
    module.eval()  # no dropout, and no writes to a memory
    with torch.no_grad():
        flat = line_vectors(model, batch, model.layers[0].predict(encoded(batch.docs)))
        (tokens,) = gather(flat, batch, [rows], keys_on_line(module, batch))
        module.prepare(tokens, gather_gold(batch.gold, batch, rows, flat.device))


def learn_words(model: SpanTableModel, docs: Iterable[Doc]) -> None:
    """Show the words of the training data to the parts of the head that keep something of them."""
    shim = shim_of(model)
    # Without a module its component comes later in the pipeline and calls this again.
    readers = word_readers(shim.module) if shim.is_built else []
    if not readers:
        return
    counts: Counter = Counter()
    for keys in word_keys(docs):
        counts.update(keys.tolist())
    words = numpy.array(list(counts), dtype="int64")
    for reader in readers:
        reader.learn_words(words, numpy.array(list(counts.values()), dtype="int64"))


def word_readers(module: nn.Module) -> List[ReadsWords]:
    """The parts of a head that read words."""
    return [part for part in module.modules() if isinstance(part, ReadsWords)]


@forks_wait
def forward(
    model: SpanTableModel, batch: SpanBatch, is_train: bool, *, predict: Callable[..., Any]
) -> Tuple[Any, Callable]:
    """The loss of a batch with gold in training, otherwise what `predict` finds."""
    tokvecs, backprop_tokvecs = model.layers[0](batch.docs, is_train)
    if is_train:
        return train_rows(model, batch, tokvecs, backprop_tokvecs)
    return predict(model, batch, tokvecs), lambda d_output: []


def train_rows(
    model: SpanTableModel,
    batch: SpanBatch,
    tokvecs: List[Floats2d],
    backprop_tokvecs: Callable[[List[Floats2d]], Any],
) -> Tuple[Any, Callable]:
    """The loss of a batch, and the step back to the token vectors."""
    assert batch.gold is not None
    module: SpanModule = shim_of(model).module
    module.train()
    flat = line_vectors(model, batch, tokvecs).requires_grad_(True)  # (T, D)
    n_tokens = int((batch.rows.table[:, END] - batch.rows.table[:, START]).sum())
    with torch.enable_grad():
        loss = flat.new_zeros(()) + 0.0 * flat[0, 0]  # a gradient also without annotation
        for rows, tokens in row_groups(module, batch, flat):
            gold = gather_gold(batch.gold, batch, rows, flat.device)
            # Heads reduce over rows in different ways; groups are weighted by their share of the tokens.
            loss = loss + module(tokens, gold) * (sum(tokens.lengths) / n_tokens)

    def backprop(d_loss: Any) -> Any:
        loss.backward()
        heap.after_update()
        assert flat.grad is not None
        lengths, starts = batch.rows.lengths.tolist(), batch.rows.doc_starts.tolist()
        return backprop_tokvecs(split(flat.grad, lengths, starts))

    return torch2xp(loss.detach()), backprop


def predict_rows(
    model: SpanTableModel, batch: SpanBatch, tokvecs: List[Floats2d]
) -> SpanPrediction:
    """The spans found in a batch, in the coordinates of the documents."""
    module: SpanModule = shim_of(model).module
    module.eval()
    found = [(numpy.zeros((0, 4), "int64"), numpy.zeros(0, "float32"))]
    margins: List[numpy.ndarray] = []
    with torch.inference_mode():
        flat = line_vectors(model, batch, tokvecs)  # (T, D)
        thresholds = torch.from_numpy(batch.thresholds).to(flat.device)  # (C,)
        for rows, tokens in row_groups(module, batch, flat):
            decoded = module.decode(module.encode(tokens), thresholds)
            found.append(on_host(decoded.spans, decoded.scores, rows))
            if decoded.margins is not None:
                margins.append(decoded.margins.float().cpu().numpy())
    spans, scores = map(numpy.concatenate, zip(*found, strict=True))
    return to_documents(batch, spans, scores, numpy.concatenate(margins) if margins else None)


def row_groups(
    module: SpanModule, batch: SpanBatch, flat: Tensor
) -> Iterator[Tuple[numpy.ndarray, Tokens]]:
    """The numbers of rows that are scored together, and their tokens."""
    groups = list(group_rows(module, batch))
    yield from zip(groups, gather(flat, batch, groups, keys_on_line(module, batch)), strict=True)


def on_host(
    table: Tensor, scores: Tensor, rows: numpy.ndarray
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """What was found in a group (N, K), numbered by the rows of the batch, and its scores (N,)."""
    found = table.cpu().numpy()
    numbered = numpy.column_stack([rows[found[:, 0]], found[:, 1:]])
    return numbered, scores.float().cpu().numpy()


def propose(model: SpanTableModel, batch: SpanBatch) -> Optional[numpy.ndarray]:
    """What the head labels: document, start and end as chosen, start and end as labelled; None where
    it does not choose.  (N, 5)"""
    module: SpanModule = shim_of(model).module
    if not isinstance(module, Proposes):
        return None
    module.eval()
    found = [numpy.zeros((0, 5), dtype="int64")]
    with torch.inference_mode():
        flat = line_vectors(model, batch, model.layers[0].predict(batch.docs))  # (T, D)
        for rows, tokens in row_groups(module, batch, flat):
            table = module.propose(module.encode(tokens)).cpu().numpy()  # (K, 5)
            first = table[:, 1] + batch.rows.table[rows[table[:, 0]], START]  # (K,)
            kept = batch.rows.owns(rows[table[:, 0]], first)
            doc, start = batch.rows.locate(first[kept])
            moves = table[kept, 1:] - table[kept, 1:2]  # (K, 4), from the start as chosen
            found.append(numpy.column_stack([doc, start[:, None] + moves]))
    return numpy.concatenate(found)


def to_documents(
    batch: SpanBatch,
    spans: numpy.ndarray,
    scores: numpy.ndarray,
    margins: Optional[numpy.ndarray] = None,
) -> SpanPrediction:
    """Spans in row coordinates (N, 4) as spans in documents: a row keeps only spans whose
    start it owns; spans wider than `max_width` are dropped."""
    row, start, end, label = spans.T
    width = end - start
    first = start + batch.rows.table[row, START]  # (N,)
    kept = batch.rows.owns(row, first)
    if batch.max_width is not None:
        kept &= width <= batch.max_width
    doc, start = batch.rows.locate(first[kept])
    table = numpy.stack([doc, start, start + width[kept], label[kept]], axis=1)  # (N, 4)
    order = numpy.lexsort(table.T[::-1])
    margins = None if margins is None else margins[kept][order]
    return SpanPrediction(table[order], scores[kept][order], margins)


def line_vectors(model: SpanTableModel, batch: SpanBatch, tokvecs: List[Floats2d]) -> Tensor:
    """All token vectors of the batch, in the order of `rows.order`.  (T, D)"""
    flat = flatten(model, [tokvecs[doc] for doc in batch.rows.order])
    if flat.shape[1] != model.get_dim("nI"):
        raise ValueError(Errors.S006.format(got=flat.shape[1], expected=model.get_dim("nI")))
    return flat


def keys_on_line(module: SpanModule, batch: SpanBatch) -> Optional[numpy.ndarray]:
    """The word keys of all tokens (T,); None for heads that do not read words."""
    if not word_readers(module):
        return None
    keys = list(word_keys(batch.docs))
    return numpy.concatenate([keys[doc] for doc in batch.rows.order])
