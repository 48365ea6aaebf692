"""The processes of one training run, as `torchrun` starts them, and what they say to each other."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Iterator, List

import torch
import torch.distributed as dist
from torch import Tensor

# The others wait while rank 0 evaluates; a rank that dies is noticed without any timeout.
TIMEOUT = timedelta(hours=6)


class RankLost(RuntimeError):
    """Another rank does not answer any more."""


@dataclass(frozen=True)
class Ranks:
    """This process among all; a single one does not communicate."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """The rank that evaluates, logs and saves."""
        return self.rank == 0

    def sum_(self, tensor: Tensor) -> None:
        """Replace the tensor by its sum over all ranks."""
        if self.size > 1:
            with answering():
                dist.all_reduce(tensor)

    def any_(self, flags: Tensor) -> None:
        """Replace each flag by 1 where any rank has one."""
        if self.size > 1:
            with answering():
                dist.all_reduce(flags, op=dist.ReduceOp.MAX)

    def copy_first_(self, tensor: Tensor) -> None:
        """Replace the tensor by that of rank 0."""
        if self.size > 1:
            with answering():
                dist.broadcast(tensor, src=0)

    def of_first(self, value: Any) -> Any:
        """The value rank 0 has."""
        if self.size == 1:
            return value
        values = [value]
        with answering():
            dist.broadcast_object_list(values, src=0, device=self.device)
        return values[0]

    def of_all(self, value: Any) -> List[Any]:
        """The values of all ranks."""
        if self.size == 1:
            return [value]
        values: List[Any] = [None] * self.size
        with answering():
            dist.all_gather_object(values, value)
        return values


@contextlib.contextmanager
def answering() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # all that torch promises for a broken connection
        raise RankLost(str(error).split("\n")[0]) from error


@contextlib.contextmanager
def joined_ranks(gpu_id: int) -> Iterator[Ranks]:
    """Meet the other processes, if `torchrun` started any.

    gpu_id: The device of the first process of a machine; those after it take the next ones. -1 for
        the CPU.
    """
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield Ranks(0, 1, torch.device("cpu"))
        return
    device = torch.device("cpu")
    if gpu_id >= 0:
        device = torch.device("cuda", local_gpu(gpu_id))
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if gpu_id < 0 else "nccl", timeout=TIMEOUT)
    try:
        yield Ranks(dist.get_rank(), size, device)
    finally:
        dist.destroy_process_group()


def local_gpu(gpu_id: int) -> int:
    return gpu_id if gpu_id < 0 else gpu_id + int(os.environ.get("LOCAL_RANK", 0))
