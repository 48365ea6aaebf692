"""The one trainable component behind every entity factory. It knows no model family."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice
from typing import Any, Callable, ClassVar, Dict, Iterable, List, Optional, Sequence

import numpy
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model

from ..batch import RowGold, Rows, SpanBatch, SpanPrediction
from ..errors import Rule, Warnings
from ..overlaps import RULES
from ..scorers import score_span_table
from .base import TablePipe
from .gold import DocGold, read_gold, row_gold
from .outputs import trim
from .settings import OUTPUTS, Setting

SAMPLE_SIZE = 500  # examples a head may look at before training


class SpanTablePipe(TablePipe):
    """Finds labelled spans with any span-table model and writes them to a document."""

    model_name = "span_table"
    label_dims: ClassVar[Dict[str, str]] = {"labels": "nO"}
    new_counts = Counter

    overlaps = Setting()

    def __init__(
        self,
        vocab: Vocab,
        model: Model[SpanBatch, Any],
        name: str,
        *,
        output: str = "spans",
        threshold: Optional[float] = None,
        overlaps: str = "best",
        scorer: Optional[Callable] = score_span_table,
        **shared: Any,
    ):
        """
        vocab: The shared vocabulary.
        model: Made by one of the `spacy-spanner` architectures.
        name: The component's name in the pipeline.
        output: "spans" learns from and writes `doc.spans[spans_key]`; "ents" learns from and writes
            `doc.ents`; "both" learns from the span group and writes both.
        threshold: A span is kept if its probability is over it; None for the architecture's own.
        overlaps: How flat entities are chosen: "best" for the most probable set, "greedy" for the
            most probable span first, "outermost" for the longest span first.
        scorer: Scoring function.
        shared: Settings that all components have, such as `spans_key` and `window`.
        """
        settings: Dict[str, Any] = {"output": output, "threshold": threshold, "overlaps": overlaps}
        super().__init__(vocab, model, name, settings, **shared)
        self.scorer = scorer

    def configure(self, **values: Any) -> None:
        """Change settings. Those that cannot work are refused, with what to change."""
        if values.get("threshold", 0) is None:
            values["threshold"] = self.model.attrs["threshold"]
        super().configure(**values)

    def _rules(self, cfg: Dict[str, Any]) -> List[Rule]:
        return [
            ("output", cfg["output"] in OUTPUTS, f"it must be one of {OUTPUTS}"),
            ("overlaps", cfg["overlaps"] in tuple(RULES), f"it must be one of {tuple(RULES)}"),
            *super()._rules(cfg),
        ]

    @property
    def label_data(self) -> List[str]:
        """The labels, as `spacy init labels` stores and `initialize(labels=)` takes them."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label. A trained model keeps what it learned; the new label has to be learned.

        RETURNS: 1, or 0 if the label is already there.
        """
        return self._add_label(label)

    def predict(self, docs: Iterable[Doc]) -> SpanPrediction:
        """Find spans without changing the documents."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return SpanPrediction(numpy.zeros((0, 4), "int64"), numpy.zeros(0, "float32"))
        self._check_encoded(docs)
        found = self.model.predict(self._prediction_batch(docs))
        spans, kept = trim(docs, found.spans, found.scores)
        found = found.take(kept)
        scores = self.scaling().calibrate(found.scores, spans[:, 3])
        return SpanPrediction(spans, scores, found.margins)

    def proposals(self, docs: Iterable[Doc]) -> Optional[numpy.ndarray]:
        """Spans of documents that went through the pipeline which the head labelled, entities or not;
        None where it does not choose any. For analyses: it is computed anew.

        RETURNS: (N, 5) document, start and end as chosen, start and end as labelled
        """
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return None
        return self.model.attrs["propose"](self.model, self._prediction_batch(docs))

    def set_annotations(self, docs: Iterable[Doc], prediction: SpanPrediction) -> None:
        """Write what `predict` found, also where it found nothing."""
        self._write_entities(list(docs), prediction, self.cfg["overlaps"])

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[List[str]] = None,
    ) -> None:
        """Collect the labels, look at all gold once, and build the model.

        labels: Take these instead of collecting them from the data.
        """
        validate_get_examples(get_examples, "SpanTablePipe.initialize")
        for label in labels or []:
            self.add_label(label)
        if labels is None:
            self._collect_labels(get_examples())
        if not self.labels:
            raise ValueError(SpacyErrors.E143.format(name=self.name))
        self._build_model(get_examples, nlp, nO=len(self.labels))
        sample = list(islice(get_examples(), SAMPLE_SIZE))
        batch = self._gold_batch(sample, Counter())
        self.model.attrs["prepare"](self.model, batch, partial(self._encoded, nlp))
        if nlp is not None:
            self._check_score_weights(nlp)

    def _collect_labels(self, examples: Iterable[Example]) -> None:
        references, annotated = [], False
        for example in examples:
            reference = example.reference
            references.append(reference)
            if self.gold_key is None:
                gold: Sequence = reference.ents
            else:
                gold = reference.spans.get(self.gold_key, [])
                annotated = annotated or self.gold_key in reference.spans
            for span in gold:
                self.add_label(span.label_)
        if not self.labels and not annotated:
            self._fail_without_gold(references, self.gold_key)

    def _read_gold(self, examples: List[Example], counts: Counter) -> List[Optional[DocGold]]:
        ids = {self.vocab.strings[label]: number for number, label in enumerate(self.labels)}
        return [
            read_gold(eg, spans_key=self.gold_key, label_ids=ids, counts=counts) for eg in examples
        ]

    def _row_gold(self, golds: List[Any], rows: Rows, counts: Counter) -> RowGold:
        attrs = self.model.attrs
        return row_gold(
            golds, rows, levels=attrs["levels"], max_width=attrs["max_width"], counts=counts
        )

    def _report(self, counts: Counter) -> None:
        self._warn_lost(counts, Warnings.SW01)

    def _check_score_weights(self, nlp: Language) -> None:
        """Warn of weights for `spans_<key>_*` and `ents_*` that nothing in the pipeline fills."""
        weights = nlp.config["training"]["score_weights"]
        written, ents = set(), False
        for name, pipe in nlp.pipeline:
            cfg = getattr(pipe, "cfg", None) or {}
            if getattr(pipe, "writes_spans", True):
                written.add(getattr(pipe, "key", None) or cfg.get("spans_key", ""))
            assigned = "doc.ents" in nlp.get_pipe_meta(name).assigns
            ents = ents or getattr(pipe, "writes_ents", assigned)
        for key, weight in weights.items():
            ours = key.startswith("spans_") and key.endswith(("_f", "_p", "_r"))
            unfilled = ours and key[len("spans_") : -2] not in written
            if weight and (unfilled or (key.startswith("ents_") and not ents)):
                spans = f"spans_{self.cfg['spans_key']}_*" if self.writes_spans else ""
                writes = " and ".join(filter(None, [spans, "ents_*" if self.writes_ents else ""]))
                message = Warnings.SW02.format(name=self.name, key=key, writes=writes)
                self._warn(f"score {key}", message)
