"""What Prometheus reads."""

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
        own: Dict[str, Any] = {"namespace": PREFIX, "registry": self.registry}
        self.requests = Counter("requests", "Requests by status", ["status"], **own)
        self.latency = Histogram("request_seconds", "Time of a request", buckets=SECONDS, **own)
        self.texts = Counter("texts", "Texts that were accepted", **own)
        self.words = Counter("words", "Words that were annotated", **own)
        self.batches = Histogram("batch_texts", "Texts of a batch", buckets=TEXTS, **own)
        self.seconds_of_model = Counter("model_seconds", "Time that the pipeline worked", **own)
        self.waiting = Gauge("waiting_texts", "Texts that wait for the pipeline", **own)

    def text(self) -> bytes:
        return generate_latest(self.registry)
