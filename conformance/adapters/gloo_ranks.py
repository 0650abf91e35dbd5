"""Eight processes that gloo connects: each holds one rank's input; collectives run between them."""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import os
import sys
import tempfile
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
from conformance.adapters.collective_requests import Request
from conformance.adapters.gloo_group import GlooGroup
from conformance.adapters.rank_collectives import Array, taken_part

RANKS = 8
LIMIT = datetime.timedelta(seconds=20)
PATIENCE = 2.0
"""Seconds after which it is said which ranks are waited for."""


class GlooRanks:
    """The processes, started at once; they end with the one that started them.

    Raises:
        RuntimeError: from `carry_out`, where a rank has died or gloo has failed; then all are to be started anew.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tessera-gloo-")
        context = multiprocessing.get_context("forkserver")  # which imports torch once, not in each of them
        context.set_forkserver_preload([__name__])
        self._pipes: list[Connection] = []
        self.processes = []
        for rank in range(RANKS):
            here, there = context.Pipe()
            process = context.Process(target=follow, args=(rank, self._folder.name, there), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self.processes.append(process)

    def carry_out(self, request: Request, arrays: list[Array]) -> list[Array]:
        """Return the results of the ranks that have an input."""
        waiting = {}
        for rank, (pipe, array) in enumerate(zip(self._pipes, arrays, strict=False)):
            with _naming(rank):
                pipe.send((request, array))
            waiting[pipe] = rank
        outputs: dict[int, Array] = {}
        silent: list[int] = []
        while waiting:  # for all at once: those that wait for a dead rank would wait until gloo's limit
            answering = wait(list(waiting), PATIENCE)
            if not answering and silent != list(waiting.values()):
                silent = list(waiting.values())  # a hang is reported with the end of standard error
                print(f"gloo: {request.operation} waits for ranks {silent}", file=sys.stderr, flush=True)
            for pipe in answering:
                rank = waiting.pop(pipe)
                with _naming(rank):
                    outputs[rank] = pipe.recv()
                if isinstance(outputs[rank], Exception):
                    raise RuntimeError(str(outputs[rank]))
        return [outputs[rank] for rank in range(len(arrays))]


@contextlib.contextmanager
def _naming(rank: int) -> Any:
    try:
        yield
    except (EOFError, OSError) as error:
        raise RuntimeError(f"rank {rank} has died: {error!r}") from error


def follow(rank: int, folder: str, pipe: Connection) -> None:
    """One rank's process: take part in what is asked for, until the asking process ends."""
    os.dup2(2, 1)  # standard output belongs to the protocol
    torch.set_num_threads(1)
    groups: dict[tuple[int, ...], GlooGroup] = {}
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            request, own = pipe.recv()
            members = next(group for group in request.groups if rank in group)
            try:
                if members not in groups:
                    groups[members] = _joined(rank, members, folder)
                pipe.send(taken_part(groups[members], request, own))
            except Exception as error:
                pipe.send(RuntimeError(f"rank {rank}: {error}"))


def _joined(rank: int, members: tuple[int, ...], folder: str) -> GlooGroup:
    """The group of these ranks, which find each other through a file."""
    name = "-".join(map(str, members))
    store = distributed.FileStore(str(Path(folder) / name), len(members))
    return GlooGroup(distributed.ProcessGroupGloo(store, members.index(rank), len(members), LIMIT))
