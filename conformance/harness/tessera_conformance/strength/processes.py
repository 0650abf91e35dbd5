"""Work shared out to processes.

They are forked, so that they have the collected tests and the violators as they are here: neither can be sent.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_shared: tuple[Callable[[Any], Any], Sequence[Any]]


def available() -> int:
    """Return the number of processes worth starting: 1 where the system cannot fork."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(jobs: int, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """The result of each task, in order; what is returned must be picklable, the work and its tasks need not be."""
    if jobs <= 1 or len(tasks) <= 1:
        return [work(task) for task in tasks]
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, context, _take, (work, tasks)) as pool:
        return list(pool.map(_perform, range(len(tasks))))


def _take(work: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
    global _shared
    _shared = (work, tasks)


def _perform(place: int) -> Any:
    work, tasks = _shared
    return work(tasks[place])


def isolated(
    jobs: int, work: Callable[[Task], Result], tasks: Sequence[Task], patience: float
) -> Iterator[tuple[int, Result | None]]:
    """The place and the result of each task as they end, every task in a process of its own, forked from here.

    None is the result of a process that died, or was ended after `patience` seconds.
    """
    waiting = list(enumerate(tasks))[::-1]
    running: dict[Connection, _Running] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                pipe, started = _started(work, *waiting.pop(), patience)
                running[pipe] = started
            limit = min(process.limit for process in running.values())
            ready = wait(list(running), max(0.0, limit - time.monotonic()))
            overdue = [pipe for pipe, child in running.items() if child.limit <= time.monotonic()]
            for pipe in [candidate for candidate in running if candidate in ready or candidate in overdue]:
                yield running[pipe].place, _result(pipe, pipe in ready)
                running.pop(pipe).end()
    finally:
        for process in running.values():
            process.end()


@dataclass(frozen=True)
class _Running:
    place: int
    process: ForkProcess
    limit: float

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def _started(work: Callable[[Task], Any], place: int, task: Task, patience: float) -> tuple[Connection, _Running]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(work(task)))
    process.start()
    theirs.close()
    return ours, _Running(place, process, time.monotonic() + patience)


def _result(pipe: Connection, ready: bool) -> Any:
    try:
        return pipe.recv() if ready else None
    except EOFError:
        return None
    finally:
        pipe.close()
