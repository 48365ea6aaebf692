"""The output folder of a run: its lock, its manifest, and what is left to do."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, List

from filelock import FileLock, Timeout

from ..corpus.record import CorpusError
from ..errors import Errors, OutputError
from .inputs import InputFile, Shard, display_name
from .output import is_whole, part_name, remove_unfinished, to_json, write_whole
from .records import cut_files
from .worker import WorkerSettings

MANIFEST = "manifest.json"
# What the result does not depend on: such a setting may change from one start to the next.
FREE = ("output", "gpu_id", "threads")


@dataclass(frozen=True)
class Plan:
    """All shards of a run, those that still have to be written, and how many of these had been
    finished but were changed, cut or emptied since."""

    shards: List[Shard]
    todo: List[Shard]
    damaged: int


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One run at a time in a folder. The lock ends with the process, however that ends."""
    lock = FileLock(folder / "lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise CorpusError(Errors.S120.format(path=display_name(folder))) from error
    except OSError as error:
        raise OutputError(Errors.S056.format(path=display_name(folder), reason=error)) from error
    try:
        yield
    finally:
        lock.release()


def plan_run(settings: WorkerSettings, files: List[InputFile], *, shard_size: int) -> Plan:
    """Begin a run, or resume the one in the output folder if it is the same.

    Finished shards stay as they are. What is not as it was written is removed, to be done again.
    """
    folder = Path(settings.output)
    facts = run_facts(settings, files, shard_size)
    manifest = folder / MANIFEST
    if manifest.exists():
        shards = read_shards(manifest, facts)
    else:
        if any(folder.glob("part-*")):
            raise CorpusError(Errors.S052.format(path=display_name(folder)))
        shards = cut_files(files, shard_size)
        write_whole(manifest, to_json({**facts, "shards": [asdict(shard) for shard in shards]}))
    remove_unfinished(folder)
    there = {entry.name for entry in os.scandir(folder)}
    results = {shard.name: part_name(shard.name, settings.format) for shard in shards}
    old = [name for name, result in results.items() if result in there]
    with ThreadPoolExecutor() as threads:  # hashing and reading leave Python's lock
        whole = threads.map(partial(is_whole, folder), old)
    damaged = {name for name, is_good in zip(old, whole) if not is_good}
    for name in damaged:
        (folder / results[name]).unlink()
    done = set(old) - damaged
    return Plan(shards, [shard for shard in shards if shard.name not in done], len(damaged))


def run_facts(settings: WorkerSettings, files: List[InputFile], shard_size: int) -> Dict[str, Any]:
    """The settings that must not change until a stopped run is resumed, as plain JSON values."""
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
            name = os.fsencode(path.relative_to(folder).as_posix())
            digest.update(name + f" {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def read_shards(manifest: Path, facts: Dict[str, Any]) -> List[Shard]:
    """The shards of the run in a folder, if it is the run that `facts` describe."""
    try:
        stored = json.loads(manifest.read_text(encoding="utf-8"))
        old = {name: stored[name] for name in facts}
        shards = [Shard.from_dict(fields) for fields in stored["shards"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(Errors.S053.format(path=display_name(manifest), reason=error)) from error
    settings, new_settings = old.pop("settings"), facts["settings"]
    what = [
        f"{name} (was {settings.get(name)!r}, is {value!r})"
        for name, value in new_settings.items()
        if settings.get(name) != value
    ]
    what += [name for name, value in old.items() if value != facts[name]]
    if what:
        folder = display_name(manifest.parent)
        raise CorpusError(Errors.S051.format(path=folder, what=", ".join(what)))
    return shards
