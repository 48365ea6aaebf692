"""Annotation runs of the tests, and what they left."""

import json
from pathlib import Path

from spacy_spanner.distributed.annotate import annotate_files
from spacy_spanner.distributed.worker import WorkerSettings

from .small import contents


def make_settings(pipeline, output, **changes):
    values = {
        "model": str(pipeline),
        "output": str(output),
        "format": "jsonl",
        "text_field": "text",
        "sources": (),
        "relations": False,
        "batch_words": 40,
    }
    return WorkerSettings(**{**values, **changes})


def run(inputs, pipeline, output, *, shard_size=5, workers=None, engine="local", **changes):
    options = {name: changes.pop(name) for name in ("stdin", "input_format") if name in changes}
    return annotate_files(
        [str(name) for name in inputs],
        make_settings(pipeline, output, **changes),
        shard_size=shard_size,
        workers=workers,
        engine=engine,
        **options,
    )


def rows(folder):
    return [json.loads(line) for part in contents(folder).values() for line in part.splitlines()]


def rejects(folder):
    files = sorted((Path(folder) / "rejects").glob("*"))
    return [json.loads(line) for path in files for line in path.read_text("utf8").splitlines()]
