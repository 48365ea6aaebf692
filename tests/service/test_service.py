"""The service, as clients see it: a real server, a real HTTP client."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import spacy

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from spacy_spanner.distributed.worker import entity_rows  # noqa: E402

from ..distributed.small import ENVIRONMENT, save_pipeline  # noqa: E402
from ..systems import TEXTS  # noqa: E402

TINY = ["--max-characters", "500", "--max-texts", "8", "--max-queue", "40"]
CODE = """
import time
from spacy.language import Language
import spacy_spanner.cli
from spacy.cli._util import app


@Language.component("spanner_test_slow")
def slow(doc):
    time.sleep(0.02)
    if "boom" in doc.text:
        raise RuntimeError("it went off")
    return doc


app()
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    def __init__(self, model, *options):
        self.port = free_port()
        command = [sys.executable, "-c", CODE, "spanner", "serve", str(model)]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *options],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        end = time.time() + 120
        while True:
            try:
                httpx.get(f"{self.url}/health", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                assert self.process.poll() is None, self.process.stdout.read()
                assert time.time() < end
                time.sleep(0.2)

    def post(self, data, **options):
        return httpx.post(f"{self.url}/annotate", json=data, timeout=60, **options)

    def metric(self, name):
        text = httpx.get(f"{self.url}/metrics", timeout=30).text
        return float(re.search(rf"^spacy_spanner_{name} (\S+)$", text, re.MULTILINE).group(1))

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_pipeline(tmp_path_factory.mktemp("service") / "model")


@pytest.fixture(scope="module")
def server(model):
    found = Server(model, *TINY)
    yield found
    found.end()


@pytest.fixture(scope="module")
def slow_model(model, tmp_path_factory):
    spacy.Language.component("spanner_test_slow", func=lambda doc: doc)
    nlp = spacy.load(model)
    nlp.add_pipe("spanner_test_slow")
    nlp.to_disk(tmp_path_factory.mktemp("slow") / "model")
    return tmp_path_factory.getbasetemp() / "slow0" / "model"


def test_results_are_those_of_the_pipeline(server, model):
    nlp = spacy.load(model)
    expected = [
        {"entities": entity_rows(nlp(t), ents_keys=["ents"]), "relations": []} for t in TEXTS
    ]
    assert any(own["entities"] for own in expected)
    assert server.post({"text": TEXTS[0]}).json() == expected[0]
    assert server.post({"texts": TEXTS[:4]}).json() == {"results": expected[:4]}
    assert server.post({"texts": []}).json() == {"results": []}
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda i: server.post({"text": TEXTS[i % 4]}).json(), range(64)))
    assert found == [expected[i % 4] for i in range(64)]


@pytest.mark.parametrize(
    "body,status",
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100000, 400),
        (b'{"text": "\\ud800"}', 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"text": 3}', 422),
        (b'{"texts": "x"}', 422),
        (b'{"text": "a", "texts": []}', 422),
        (b'{"text": "a", "file": "/etc/passwd"}', 422),
        (json.dumps({"text": "x" * 501}).encode(), 413),
        (json.dumps({"texts": ["x"] * 9}).encode(), 413),
        (b'{"text": "' + b"x" * 5_000_000, 413),
    ],
)
def test_bad_requests_get_a_reason_and_the_service_goes_on(server, body, status):
    response = httpx.post(f"{server.url}/annotate", content=body, timeout=60)
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"} and len(response.text) < 300
    assert server.post({"text": TEXTS[0]}).status_code == 200


def test_nothing_but_its_own_pages_is_served(server):
    for path in ("/docs", "/redoc", "/static/x", "/../setup.cfg", "/%2e%2e/etc/passwd"):
        response = httpx.get(server.url + path)
        assert response.status_code == 404 and set(response.json()) == {"error"}
    assert httpx.get(f"{server.url}/annotate").status_code == 405


def test_health_and_metrics(server):
    found = httpx.get(f"{server.url}/health").json()
    assert found["status"] == "ok" and found["components"] == ["global_pointer"]
    before = server.metric("texts_total")
    server.post({"texts": TEXTS[:3]})
    assert server.metric("texts_total") == before + 3
    assert server.metric("words_total") > 0 and server.metric("waiting_texts") == 0


def test_the_page_shows_nested_entities_and_runs_nothing(server):
    empty = httpx.get(server.url)
    assert "<textarea" in empty.text and "<script" not in empty.text
    text = f"{TEXTS[0]} <script>alert(1)</script>"
    filled = httpx.post(server.url, data={"text": text}, timeout=60)
    assert filled.status_code == 200
    assert "<script" not in filled.text and "&lt;script&gt;" in filled.text
    assert "label-0" in filled.text and 'class="slice' in filled.text
    long = httpx.post(server.url, data={"text": "x" * 501}, timeout=60)
    assert long.status_code == 413 and "500 characters" in long.text


def test_a_full_queue_a_failing_text_and_clients_that_hang_up(slow_model):
    server = Server(slow_model, *TINY, "--max-batch", "4")
    try:
        assert server.post({"text": "boom"}).status_code == 500
        mixed = server.post({"texts": ["boom", TEXTS[0]]})
        assert mixed.status_code == 200
        failed, good = mixed.json()["results"]
        assert "it went off" in failed["error"] and "entities" in good
        with ThreadPoolExecutor(20) as pool:
            found = list(pool.map(lambda _: server.post({"texts": TEXTS[:4] * 2}), range(20)))
        assert {response.status_code for response in found} == {200, 503}
        assert {r.headers["retry-after"] for r in found if r.status_code == 503} == {"1"}
        request = json.dumps({"text": TEXTS[0]}).encode()
        head = b"POST /annotate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(request)
        for number in range(60):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall((head + request)[: len(head) + len(request) - 7 * (number % 3)])
        end = time.time() + 60
        while server.metric("waiting_texts") and time.time() < end:
            time.sleep(0.1)
        assert server.post({"text": TEXTS[0]}).status_code == 200
    finally:
        server.end()


def test_accepted_requests_are_answered_after_a_signal(slow_model):
    server = Server(slow_model, "--max-batch", "2")
    try:
        with ThreadPoolExecutor(10) as pool:
            waiting = [pool.submit(server.post, {"texts": TEXTS[:4]}) for _ in range(10)]
            end = time.time() + 60
            while server.metric("texts_total") < 40 and time.time() < end:
                time.sleep(0.02)
            os.kill(server.process.pid, signal.SIGTERM)
            responses = [own.result() for own in waiting]
        assert [response.status_code for response in responses] == [200] * 10
        output, _ = server.process.communicate(timeout=60)
        assert "Traceback" not in output
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.url)
    finally:
        server.end()
