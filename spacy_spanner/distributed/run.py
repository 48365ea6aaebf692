"""A run of annotation: its folder, its manifest, and what is left to do."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List

from ..corpus.record import CorpusError
from ..errors import Errors
from .inputs import InputFile
from .shards import Shard, cut_files
from .worker import Settings, part_path
from .writers import to_json, write_whole

MANIFEST = "manifest.json"
# What the result does not depend on: such a setting may change from one start to the next.
FREE = ("output", "gpu_id", "threads")


@dataclass(frozen=True)
class Run:
    """All shards of a run, and those that still have to be written."""

    shards: List[Shard]
    todo: List[Shard]


def open_run(settings: Settings, files: List[InputFile], *, shard_size: int) -> Run:
    """Begin a run, or go on with the one in the output folder if it is the same.

    Files that a stopped run left half-written are removed; whole shards stay as they are.
    """
    folder = Path(settings.output)
    folder.mkdir(parents=True, exist_ok=True)
    facts = run_facts(settings, files, shard_size)
    manifest = folder / MANIFEST
    if manifest.exists():
        shards = read_shards(manifest, facts)
    else:
        if any(folder.glob("part-*")):
            raise CorpusError(Errors.S052.format(path=folder))
        shards = cut_files(files, shard_size)
        write_whole(manifest, to_json({**facts, "shards": [asdict(shard) for shard in shards]}))
    for left in (*folder.glob(".part-*"), *folder.glob("rejects/.part-*")):
        left.unlink(missing_ok=True)
    done = {entry.name for entry in os.scandir(folder)}
    todo = [s for s in shards if part_path("", s.name, settings.format).name not in done]
    return Run(shards, todo)


def run_facts(settings: Settings, files: List[InputFile], shard_size: int) -> Dict[str, Any]:
    """What must not change while a run is stopped, as plain JSON values."""
    fixed = {name: value for name, value in asdict(settings).items() if name not in FREE}
    facts = {
        "settings": {**fixed, "shard_size": shard_size},
        "pipeline": pipeline_fingerprint(settings.model),
        "inputs": [{**file.fingerprint(), "format": file.format} for file in files],
    }
    return json.loads(json.dumps(facts))


def pipeline_fingerprint(model: str) -> str:
    """Of a folder, names, sizes and times of its files; of a package, its version."""
    folder = Path(model)
    if not folder.is_dir():
        try:
            return metadata.version(model)
        except metadata.PackageNotFoundError as error:
            reason = "neither the folder nor the package of a pipeline"
            raise CorpusError(Errors.S029.format(path=model, reason=reason)) from error
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        stat = path.stat()
        if path.is_file():
            place = path.relative_to(folder).as_posix()
            digest.update(f"{place} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def read_shards(manifest: Path, facts: Dict[str, Any]) -> List[Shard]:
    """The shards of the run in a folder, if it is the run that `facts` describe."""
    try:
        stored = json.loads(manifest.read_text(encoding="utf-8"))
        old = {name: stored[name] for name in facts}
        shards = [Shard(**{**s, "file": InputFile(**s["file"])}) for s in stored["shards"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(Errors.S053.format(path=manifest, reason=error)) from error
    settings, new_settings = old.pop("settings"), facts["settings"]
    what = [
        f"{name} (was {settings.get(name)!r}, is {value!r})"
        for name, value in new_settings.items()
        if settings.get(name) != value
    ]
    what += [name for name, value in old.items() if value != facts[name]]
    if what:
        raise CorpusError(Errors.S051.format(path=manifest.parent, what=", ".join(what)))
    return shards
