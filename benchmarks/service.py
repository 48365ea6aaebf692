"""The service under load: requests at a fixed rate by `hey`, a load tool, from a process of its own."""

from __future__ import annotations

import csv
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Optional

import numpy

CLIENTS = 40  # `hey` lets all of them send at the same moments
WARM_UP = 5  # seconds
SENTENCE = "The IL-2 gene is expressed in human T cells after stimulation with phorbol ester ."


def measure_service(pipeline: Path, *, rate: int, seconds: int) -> Optional[Dict[str, Any]]:
    """Requests a second and latency in ms; None where the tool is not installed.

    rate: Requests of one sentence each that are sent in a second."""
    tool = shutil.which("hey")
    if tool is None:
        return None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "spacy", "spanner", "serve", str(pipeline), f"--port={port}"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(f"{url}/health")
        with TemporaryDirectory() as folder:
            body = Path(folder) / "body.json"
            body.write_text(json.dumps({"text": SENTENCE}))
            load = [tool, "-c", str(CLIENTS), "-q", str(rate / CLIENTS), "-o", "csv"]
            load += ["-m", "POST", "-T", "application/json", "-D", str(body)]
            for length in (WARM_UP, seconds):
                command = [*load, "-z", f"{length}s", f"{url}/annotate"]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    finally:
        server.terminate()
        server.wait(30)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    latency = 1000 * numpy.array([float(row["response-time"]) for row in rows])
    return {
        "rate": rate,
        "seconds": seconds,
        "requests_per_second": round(len(rows) / seconds, 1),
        "failed": sum(row["status-code"] != "200" for row in rows),
        **{f"p{p}": round(float(numpy.percentile(latency, p)), 1) for p in (50, 95, 99)},
    }


def wait_for(url: str, *, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
