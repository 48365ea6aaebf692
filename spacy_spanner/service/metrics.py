"""Metrics for Prometheus."""

from __future__ import annotations

from typing import Any, Dict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
PREFIX = "spacy_spanner"


class Metrics:
    """The figures of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        options: Dict[str, Any] = {"namespace": PREFIX, "registry": self.registry}
        self.requests = Counter("requests", "Requests by status", ["status"], **options)
        self.latency = Histogram("request_seconds", "Time of a request", buckets=SECONDS, **options)
        self.texts = Counter("texts", "Texts that were accepted", **options)
        self.words = Counter("words", "Words that were annotated", **options)
        self.batches = Histogram("batch_texts", "Texts of a batch", buckets=TEXTS, **options)
        self.seconds_of_model = Counter("model_seconds", "Time that the pipeline worked", **options)
        self.waiting = Gauge("waiting_texts", "Texts that wait for the pipeline", **options)

    def text(self) -> bytes:
        return generate_latest(self.registry)
