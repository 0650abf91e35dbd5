"""What a run knows of its processes, tasks, workers and scopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["CallSite", "ProcessState", "ScopeState", "TaskState", "Waiting", "WorkerState"]


class Waiting(NamedTuple):
    """Why a process or task waits, since when, for which channel or resource (or tasks), and at which statement."""

    reason: str
    since: int
    subject: str
    statement: str


@dataclass(slots=True, eq=False)
class CallSite:
    """A `run` or `task` statement as it is executed; tensors by id, each once; `heap` is the bytes of those written.

    Nothing changes one; it is not frozen since it is made for every call of every execution, in a third of the time.
    """

    kernel: int
    cycles: int
    effect: Callable[[Sequence[int]], None]
    scalars: tuple[Callable[[], int], ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    heap: int
    statement: str
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class ScopeState:
    """A scope, and what it holds of complete tasks while it is open: ring slots, TensorMap entries and bytes."""

    open: bool = True
    slots: int = 0
    entries: int = 0
    heap: int = 0


@dataclass(slots=True, eq=False)
class ProcessState:
    """A process; `pc` is its place in `code`, whose functions return the next place, BLOCKED or DONE."""

    index: int
    name: str
    produces: tuple[int, ...]
    code: Sequence[Callable[[ProcessState], int]] = ()
    statements: Sequence[str] = ()
    pc: int = 0
    time: int = 0
    done: bool = False
    queued: bool = False
    waiting: Waiting | None = None
    delivered: int | None = None
    pending: Any = None
    awaited: int = 0
    in_flight: int = 0
    loops: list[list[int]] = field(default_factory=list)
    scopes: list[ScopeState] = field(default_factory=list)
    signalling: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class TaskState:
    """A task in flight; `missing` counts the tasks and tokens that it needs before it is ready, and its issue."""

    number: int
    site: CallSite
    scalars: Sequence[int]
    process: ProcessState
    worker: WorkerState
    scope: ScopeState | None
    nodes: int
    missing: int = 0
    started: int = -1
    sent: int = 0
    waiting: Waiting | None = None
    dependents: list[TaskState] = field(default_factory=list)
    watchers: list[ProcessState] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class WorkerState:
    """A worker: `ready` is a heap of (time, task number), `places` counts its tasks that have not started."""

    index: int
    ready: list[tuple[int, int]] = field(default_factory=list)
    places: int = 0
    task: TaskState | None = None
    busy: int = 0
    tasks: int = 0
    time: int = 0
