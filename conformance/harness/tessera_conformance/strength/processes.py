"""Work shared out to processes.

They are forked, so that they have the collected tests and the violators as they are here: neither can be sent.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_shared: tuple[Callable[[Any], Any], Sequence[Any]]


def available() -> int:
    """How many processes are worth starting: 1 where the system cannot fork."""
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
