"""The workers of a dask cluster: checked to be like this machine, given units of work, and replaced when lost."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from tessera_conformance.executor.worker import Answer, own_identity, perform, read_answer, stop
from tessera_conformance.options import EXECUTORS

# Faults of the cluster; each error has the fault, its place and the remedy.


class ExecutorUnavailable(Exception):
    """The cluster cannot do this run: no scheduler, no worker, or a worker that is not like this machine."""


class ExecutorLost(Exception):
    """The cluster disappeared during the run."""


# Units of work: tasks that a worker does one after the other, in one process.


UNITS_PER_SLOT = 4
"""The number of units for each process that the workers run at a time, so that they end about together."""


Unit: TypeAlias = tuple[str, ...]
"""Tasks by name, in the order in which they are done."""


@dataclass(frozen=True)
class Lost:
    """The result of a task that was not completed."""

    reason: str
    by_task: bool
    """True if the process that did this very task died during it; else the cluster or the harness is at fault."""


def units_of(seconds: Mapping[str, float], slots: int, least_seconds: float) -> list[Unit]:
    """Return the tasks, each with its estimated seconds, cut into units, those that take longest first.

    Neighbours stay together, since they need the same files. No unit is shorter than `least_seconds`, below which
    starting its process takes longer than its tasks.
    """
    target = max(least_seconds, sum(seconds.values()) / (UNITS_PER_SLOT * max(slots, 1)))
    units: list[tuple[float, Unit]] = []
    waiting: list[str] = []
    total = 0.0
    for number, (task, needed) in enumerate(seconds.items(), start=1):
        waiting.append(task)
        total += needed
        if total >= target or number == len(seconds):
            units.append((total, tuple(waiting)))
            waiting, total = [], 0.0
    return [unit for _, unit in sorted(units, key=lambda unit: -unit[0])]


# The workers of a dask cluster, which are given units of work.
#
# The scheduler and the workers are the user's. Every worker that is present at the start proves that it is like this
# machine; of one that comes later, the process of each unit does so before the first task. Dask has the unit of a dead
# worker repeated by another; after as many deaths as the scheduler allows (`distributed.scheduler.allowed-failures`)
# its tasks are lost, and the run goes on.


SCHEDULER_DEADLINE = 10.0
WORKERS_DEADLINE = 30.0
GREETING_DEADLINE = 120.0
"""Seconds for each worker to prove that it is like this machine: it may be at other work."""
STOPPING_DEADLINE = 5.0
GRACE = 1.0
"""Seconds that a call may exceed the client's own deadline."""
POLL = 2.0
DESERIALIZERS = ("msgpack",)
"""The deserializers for results of workers: JSON alone, since dask's others unpickle the bytes of a worker."""


class Engine:
    """A connection with a cluster for one run; a module does its units as a program under the given settings.

    Raises `ExecutorUnavailable`: the extra is missing, no scheduler answers, there is no worker, or one is not like
    this machine; `greeting` is the required answer of each about the implementation.
    """

    def __init__(self, executor: str, module: str, settings: Mapping[str, Any], greeting: Any = None) -> None:
        self._module, self._settings, self._greeting = module, settings, greeting
        self._identity = own_identity()
        self._run = uuid.uuid4().hex
        self._pending: dict[str, tuple[Unit, Any]] = {}
        """The units without an answer, each with its future, by the key of that."""
        self._client, self.address = _connected(executor)
        self._seen = time.monotonic()
        """The time at which a worker was last seen."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_DEADLINE)
            threads = _in_time(SCHEDULER_DEADLINE, self._client.nthreads)
            self.slots = sum(threads.values())
            self._greet(sorted(threads))
        except TimeoutError:
            self.close()
            raise ExecutorUnavailable(self._no_worker()) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def results(self, units: Sequence[Unit]) -> Iterator[tuple[str, Any]]:
        """Yield each task with its result, or with `Lost`, as the units end.

        If a process dies during a task, another one does the tasks after it.

        Raises `ExecutorUnavailable`: a worker that came later is not like this machine; or `ExecutorLost`: the
        scheduler went away, or all workers did.
        """
        waiting = list(units)
        while waiting:
            again: list[Unit] = []
            for unit, answer in self._answers(waiting):
                yield from answer.results
                finished = {task for task, _ in answer.results}
                left = [task for task in unit if task not in finished]
                if left and not answer.whole and answer.running in left:
                    yield answer.running, Lost("", by_task=True)
                    left.remove(answer.running)
                    again += [tuple(left)] if left else []
                else:
                    reason = answer.failure or "its process ended without a result"
                    yield from ((task, Lost(reason, by_task=False)) for task in left)
            waiting = again

    def stop(self) -> None:
        """Cancel the unanswered units, and end the processes that work on them."""
        pending = [future for _, future in self._pending.values()]
        self._pending = {}
        if pending:
            _quietly(lambda: self._client.cancel(pending))
            _quietly(lambda: self._client.run(stop, self._run, on_error="ignore"))

    def close(self) -> None:
        """Stop, and disconnect from the cluster."""
        self.stop()
        _quietly(self._client.close)

    def _greet(self, workers: Sequence[str]) -> None:
        """Ask every worker to prove that it can do units as this machine would. Raises `ExecutorUnavailable`."""
        limit = time.monotonic() + GREETING_DEADLINE
        greetings = {worker: self._ask((), [worker]) for worker in workers}
        for worker, future in greetings.items():
            try:
                answer = read_answer(future.result(timeout=max(limit - time.monotonic(), POLL)))
            except TimeoutError:
                late = f"did not answer within {GREETING_DEADLINE:g} s: is it at other work, or does it hang?"
                raise ExecutorUnavailable(f"worker {worker} {late}") from None
            except Exception as error:
                raise ExecutorUnavailable(_cannot_do(f"worker {worker}", error)) from None
            self._require_likeness(answer)
            if not answer.whole:
                raise ExecutorUnavailable(f"worker {worker}: the implementation ended the process that asked for it")
            del self._pending[future.key]

    def _answers(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, Answer]]:
        """Yield each unit with its result, as they end; at most as many are pending as the workers can do."""
        waiting, looked = deque(units), time.monotonic()
        ended: SimpleQueue[Any] = SimpleQueue()
        while waiting or self._pending:
            while waiting and len(self._pending) < self.slots:
                self._ask(waiting.popleft()).add_done_callback(ended.put)
            answer = self._next(ended)
            if answer is None or time.monotonic() - looked > POLL:
                self._look_around()
                looked = time.monotonic()
            if answer is not None:
                self._seen = time.monotonic()
                self._require_likeness(answer[1])
                yield answer

    def _ask(self, unit: Unit, workers: Sequence[str] | None = None) -> Any:
        """Submit a unit, to these workers if any are named, and return its future."""
        key = f"tessera-{uuid.uuid4().hex}"
        order = json.dumps({"identity": self._identity, "settings": self._settings, "tasks": unit})
        future = self._client.submit(
            perform, order, module=self._module, run=self._run, key=key, workers=workers, pure=False
        )
        self._pending[key] = unit, future
        return future

    def _next(self, ended: SimpleQueue[Any]) -> tuple[Unit, Answer] | None:
        """Return the next unit that has ended, with its answer; None after a while."""
        try:
            future = ended.get(timeout=POLL)
            answer = self._answer_of(future)  # another worker may have to do it again
        except Empty:
            return None
        except TimeoutError:
            ended.put(future)
            return None
        unit, _ = self._pending.pop(future.key)
        return unit, answer

    def _answer_of(self, future: Any) -> Answer:
        from distributed import KilledWorker

        try:
            return read_answer(future.result(timeout=POLL))
        except KilledWorker as error:
            return Answer(failure=f"{error.allowed_failures + 1} workers died one after another while they had it")
        except CancelledError:
            raise ExecutorLost(f"the scheduler at {self.address} went away, or dropped what it was asked for") from None
        except TimeoutError:
            raise
        except Exception as error:
            raise ExecutorUnavailable(_cannot_do("a worker", error)) from None

    def _require_likeness(self, answer: Answer) -> None:
        """Raise `ExecutorUnavailable` if a worker failed its task, or has another implementation."""
        if answer.refusal:
            raise ExecutorUnavailable(f"worker {answer.worker} {answer.refusal}")
        if answer.greeting is not None and answer.greeting != self._greeting:
            here, there = _first_difference(self._greeting, answer.greeting)
            raise ExecutorUnavailable(
                f"worker {answer.worker} has another implementation than this machine: {there}, here {here}"
            )

    def _look_around(self) -> None:
        """Count the processes that the workers run at a time.

        Raises `ExecutorLost`: the scheduler has ended, or there has been no worker for long.
        """
        try:
            threads = _in_time(SCHEDULER_DEADLINE, self._client.nthreads)
        except Exception:
            raise ExecutorLost(f"the scheduler at {self.address} went away") from None
        if threads:
            self.slots, self._seen = sum(threads.values()), time.monotonic()
        elif time.monotonic() - self._seen > WORKERS_DEADLINE:
            raise ExecutorLost(self._no_worker())

    def _no_worker(self) -> str:
        waited = f"has had no worker for {WORKERS_DEADLINE:g} s"
        return f"the scheduler at {self.address} {waited}: start one, `dask worker {self.address} --nthreads=1`"


def _connected(executor: str) -> tuple[Any, str]:
    """Return a client of the scheduler that the option names, and its address. Raises `ExecutorUnavailable`."""
    form, _, address = executor.partition(":")
    if form != "dask" or not re.fullmatch(r"(tcp|tls)://[^/\s]+:\d+", address):
        raise ExecutorUnavailable(f"--executor {executor}: expected {EXECUTORS}")
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError as error:
        remedy = "pip install 'tessera-conformance[dask]'"
        raise ExecutorUnavailable(f"--executor needs dask.distributed: {remedy} ({error})") from None
    if address.startswith("tls") and Security().get_connection_args("client")["ssl_context"] is None:
        raise ExecutorUnavailable(
            f"{address} needs certificates: name them in dask's configuration, distributed.comm.tls.ca-file and "
            "distributed.comm.tls.client.cert and .key"
        )
    _silence("distributed")  # the error of the run reports what matters
    try:
        connect = partial(
            Client, address, timeout=SCHEDULER_DEADLINE, set_as_default=False, deserializers=DESERIALIZERS
        )
        return _in_time(SCHEDULER_DEADLINE + GRACE, connect), address
    except Exception as error:  # of sockets, of TLS, or of a peer with another protocol
        cause = "" if isinstance(error, TimeoutError) or "Timed out" in str(error) else f" ({error})"
        raise ExecutorUnavailable(
            f"no dask scheduler answers at {address} within {SCHEDULER_DEADLINE:g} s{cause}: "
            "start one, `dask scheduler`, and name the address that it prints"
        ) from None


def _silence(package: str) -> None:
    """Silence all loggers of a package, each of which has a level of its own."""
    for name in [package, *logging.root.manager.loggerDict]:
        if f"{name}.".startswith(f"{package}."):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _cannot_do(worker: str, error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"{worker} cannot import this project: install it where `dask worker` runs ({error})"
    return f"{worker} cannot do its work: {type(error).__name__}: {error}"


def _first_difference(ours: Any, theirs: Any) -> tuple[str, str]:
    """Return the first difference of two greetings, with both values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                here, there = _first_difference(ours.get(name), theirs.get(name))
                return f"{name} {here}", f"{name} {there}"
    return f"{ours!r}", f"{theirs!r}"


def _quietly(call: Callable[[], Any]) -> None:
    """Make a call that may hang or fail, since its peer may have ended."""
    try:
        _in_time(STOPPING_DEADLINE, call)
    except Exception:
        logging.getLogger(__name__).debug("the cluster did not answer", exc_info=True)


def _in_time(seconds: float, call: Callable[[], Any]) -> Any:
    """Return the result of a call to the cluster, within a time. Raises `TimeoutError`, and the call's errors."""
    ended: Future[Any] = Future()

    def make() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    return ended.result(seconds)
