"""`spacy spanner serve`: a pipeline over HTTP."""

from __future__ import annotations

import sys

import typer
from wasabi import msg

from ..errors import Errors, UserError

# Seconds that the thread of the model may keep Python from the thread that talks to clients, which
# gives it up at every system call. With Python's 5 ms requests of one sentence wait for each other.
SWITCH_INTERVAL = 0.0005


def serve_cli(
    pipeline: str = typer.Argument(..., help="A trained pipeline"),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; 0.0.0.0 for all interfaces"),
    port: int = typer.Option(8000, "--port", "-p", min=0, max=65535),
    max_wait_ms: float = typer.Option(
        5.0, min=0, help="Longest wait of a text for its batch to fill"
    ),
    max_batch: int = typer.Option(64, min=1, help="Most texts of a batch"),
    max_queue: int = typer.Option(2000, min=1, help="Most texts in the queue"),
    max_characters: int = typer.Option(100_000, min=1, help="Most characters of a text"),
    max_texts: int = typer.Option(256, min=1, help="Most texts of a request"),
    threads: int = typer.Option(1, min=1, help="Threads of torch"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Serve a pipeline over HTTP.

    POST /annotate takes {"text": "..."} or {"texts": ["...", ...]} and gives entities, nested and flat,
    with scores, and relations. /health and /metrics (Prometheus) are for the operator; the page at / is
    for trying it. Ctrl-C and SIGTERM let requests that were accepted end first.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise UserError(Errors.S055.format(engine="FastAPI or uvicorn", extra="serve")) from error
    import spacy
    import torch

    from ..acceleration import use_fastest_layers, use_fastest_ops
    from ..service.app import make_app
    from ..service.batching import Limits

    torch.set_num_threads(threads)
    sys.setswitchinterval(SWITCH_INTERVAL)
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
    products = use_fastest_ops()
    nlp = spacy.load(pipeline)
    use_fastest_layers(nlp)
    limits = Limits(
        characters=min(max_characters, nlp.max_length),
        texts=max_texts,
        queue=max_queue,
        batch=max_batch,
        wait=max_wait_ms / 1000,
    )
    nlp("A first text takes longer.")
    msg.info(f"Pipeline: {nlp.pipe_names}; matrix products: {products}")
    uvicorn.run(make_app(nlp, limits), host=host, port=port, log_level="warning", access_log=False)
