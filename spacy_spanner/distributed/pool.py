"""Processes that work for this one and end with it, however it ends.

`concurrent.futures` needs semaphores, which stay behind when all processes are killed at once, and its
workers print a trace at Ctrl-C; pipes have neither fault. This module imports nothing that takes time,
so that a process watches its parent from the first moment on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Generator, Iterator, List, Optional, Sequence, Tuple, cast


def run_in_pool(
    make_worker: Callable[[Any], Callable[[Any], Any]],
    settings: Any,
    tasks: Sequence[Any],
    *,
    count: int,
) -> Generator[Any, None, None]:
    """Yield what `make_worker(settings)`, called once in each process, gives for every task. Raises
    what a worker raises, and EOFError or ConnectionError where one died."""
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads
    maker = pickle.dumps((make_worker, settings))
    left = list(reversed(tasks))
    processes: List[Any] = []
    busy: List[Connection] = []
    try:
        for _ in range(min(count, len(tasks))):
            ours, theirs = context.Pipe()
            processes.append(context.Process(target=serve, args=(theirs, maker)))
            with without_ctrl_c():  # it reaches all processes, but is for this one
                processes[-1].start()
            theirs.close()
            ours.send(left.pop())
            busy.append(ours)
        while busy:
            for connection in cast(List[Connection], wait(busy)):
                result, error = cast(Tuple[Any, Optional[Exception]], connection.recv())
                if error is not None:
                    raise error
                if left:
                    connection.send(left.pop())
                else:
                    busy.remove(connection)
                yield result
    finally:
        for process in processes:
            process.kill()  # loses no result: files are written whole or not at all
            process.join()


def serve(connection: Connection, maker: bytes) -> None:
    """Work until the process that waits for the results has no more tasks, or is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    exit_after(parent.join)
    try:
        make_worker, settings = pickle.loads(maker)
        worker = make_worker(settings)
        while True:
            connection.send((worker(connection.recv()), None))
    except Exception as error:
        connection.send((None, error))


def exit_after(wait_for_end: Callable[[], Any]) -> None:
    """End this process, whatever it does then, when the function returns."""

    def watch() -> None:
        wait_for_end()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_with_driver(host: str, pid: int) -> None:
    """End this process soon after another one on the same machine. A driver on another machine, or
    one that cannot be seen from here, is left to the engine."""

    def wait_for_end() -> None:
        while is_running(pid):
            time.sleep(1)

    if host == socket.gethostname() and is_running(pid):
        exit_after(wait_for_end)


def is_running(pid: int) -> bool:
    """Is there such a process?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True


@contextlib.contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Processes that are started in this context ignore Ctrl-C, from before their first line of Python."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
