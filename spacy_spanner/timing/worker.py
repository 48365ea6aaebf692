"""`python -m spacy_spanner.timing.worker PIPELINE TEXTS THREADS`: one pipeline in a process of its own.

It loads the pipeline and says what that took. Then it runs the texts once for each line of standard
input, and answers with one line of JSON. So several pipelines are measured in turn.
"""

from __future__ import annotations

import time

BEGIN = time.perf_counter()  # before the imports: they are a part of the start

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any, Dict, List  # noqa: E402

if TYPE_CHECKING:
    from spacy.language import Language

TOKENIZER = "tokenizer"


def started(pipeline: str, text: str, threads: int) -> Any:
    """The pipeline, and the seconds until it was loaded and had annotated a first text."""
    import spacy

    from ..acceleration import use_fastest_ops

    products = use_fastest_ops()
    imported = time.perf_counter()
    nlp = spacy.load(pipeline)
    loaded = time.perf_counter()
    nlp(text)
    ready = time.perf_counter()
    if threads:
        import torch

        torch.set_num_threads(threads)
    seconds = {"import": imported - BEGIN, "load": loaded - imported, "first": ready - loaded}
    return nlp, {"products": products, "seconds": seconds}


def run_texts(nlp: Language, texts: List[str]) -> Dict[str, Any]:
    """Seconds of each component for all texts in batches, and of each text by itself."""
    return {**component_seconds(nlp, texts), "latency": latencies(nlp, texts)}


def component_seconds(nlp: Language, texts: List[str]) -> Dict[str, Any]:
    """Every component sees all documents before the next one does: only so each can be timed."""
    before = time.perf_counter()
    docs = [nlp.make_doc(text) for text in texts]
    seconds = {TOKENIZER: time.perf_counter() - before}
    for name, component in nlp.pipeline:
        before = time.perf_counter()
        if hasattr(component, "pipe"):
            docs = list(component.pipe(docs, batch_size=nlp.batch_size))
        else:
            docs = [component(doc) for doc in docs]
        seconds[name] = time.perf_counter() - before
    return {"words": sum(map(len, docs)), "components": seconds}


def latencies(nlp: Language, texts: List[str]) -> List[float]:
    seconds = []
    for text in texts:
        before = time.perf_counter()
        nlp(text)
        seconds.append(time.perf_counter() - before)
    return seconds


def peak_mb() -> float:
    """Of this process. `ru_maxrss` is at least that of the process which started it: on Linux the
    kernel knows better."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(pipeline: str, texts_file: str, threads: str) -> None:
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    nlp, start = started(pipeline, texts[0], int(threads))
    print(json.dumps(start), flush=True)
    for _ in sys.stdin:
        print(json.dumps({**run_texts(nlp, texts), "memory": peak_mb()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
