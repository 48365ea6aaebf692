"""The end points. Nothing here opens a file: texts come in requests, the pipeline is in memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, List, Optional
from urllib.parse import parse_qs

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError
from spacy.language import Language
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .batching import Batcher, Limits, QueueFull, Result
from .metrics import Metrics
from .page import page

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
CLOSED = 499  # the client has gone; for the metrics


class TextRequest(BaseModel):
    """One text, or a batch of them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Optional[str] = None
    texts: Optional[List[str]] = None

    def all(self) -> List[str]:
        if (self.text is None) == (self.texts is None):
            raise HTTPException(422, 'Give either "text", a text, or "texts", a list of texts.')
        return [self.text] if self.text is not None else self.texts or []


class Measured:
    """Counts and times requests. A function as middleware would run each request in a task of its
    own, which takes longer than all the rest around the model."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        before, status = time.perf_counter(), CLOSED

        async def send_on(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        finally:
            self.metrics.requests.labels(str(status)).inc()
            self.metrics.latency.observe(time.perf_counter() - before)


def make_app(nlp: Language, limits: Limits) -> FastAPI:
    """The service of a pipeline, which is loaded."""
    metrics = Metrics()
    batcher: Batcher
    name = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        nonlocal batcher
        batcher = Batcher(nlp, limits, metrics)
        batcher.start()
        yield
        await batcher.stop()

    # No pages of documentation: they would load scripts from elsewhere.
    app = FastAPI(title="spacy-spanner", lifespan=life, docs_url=None, redoc_url=None)

    app.add_middleware(Measured, metrics=metrics)

    @app.exception_handler(AnyHTTPException)
    async def refused(request: Request, error: Any) -> Response:
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)

    async def results_of(texts: List[str]) -> List[Result]:
        if len(texts) > limits.texts:
            raise HTTPException(413, f"At most {limits.texts:,} texts may be sent in one request.")
        if max(map(len, texts), default=0) > limits.characters:
            raise HTTPException(413, f"A text may have {limits.characters:,} characters at most.")
        try:
            return await batcher.annotate(texts)
        except QueueFull:
            message = "Too many texts are waiting. Try again in a second."
            raise HTTPException(503, message, headers={"Retry-After": "1"}) from None

    @app.post("/annotate")
    async def annotate(request: Request) -> Response:
        try:
            wanted = TextRequest.model_validate_json(await read_body(request, limits))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            status = 400 if first["type"] == "json_invalid" else 422
            raise HTTPException(status, f"{place or 'Body'}: {first['msg']}") from None
        results = await results_of(wanted.all())
        if wanted.texts is not None:
            return JSONResponse({"results": results})
        (result,) = results
        return JSONResponse(result, 500 if "error" in result else 200)

    @app.get("/", response_class=HTMLResponse)
    async def empty_page() -> str:
        return page(name, limits)

    @app.post("/", response_class=HTMLResponse)
    async def filled_page(request: Request) -> Response:
        form = parse_qs((await read_body(request, limits)).decode("utf-8", "replace"))
        text = form.get("text", [""])[0].replace("\r\n", "\n")
        try:
            (result,) = await results_of([text])
        except HTTPException as error:
            content = page(name, limits, text, {"error": error.detail})
            return HTMLResponse(content, error.status_code)
        return HTMLResponse(page(name, limits, text, result), 500 if "error" in result else 200)

    @app.get("/health")
    async def health() -> Any:
        return {"status": "ok", "pipeline": name, "components": nlp.pipe_names}

    @app.get("/metrics")
    async def figures() -> Response:
        return Response(metrics.text(), media_type=PROMETHEUS)

    return app


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body, if it is not too large and comes in time."""

    async def read() -> bytes:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > limits.body:
                raise HTTPException(413, f"A request may have {limits.body:,} bytes at most.")
        return bytes(body)

    try:
        return await asyncio.wait_for(read(), limits.read)
    except asyncio.TimeoutError:
        raise HTTPException(408, f"The request did not come within {limits.read:g} s.") from None
    except ClientDisconnect:
        raise HTTPException(CLOSED, "The client has hung up.") from None
