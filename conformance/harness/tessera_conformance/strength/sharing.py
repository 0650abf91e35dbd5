"""Violators shared out to processes of this machine, or to the workers of a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.cases import clauses_directory
from tessera_conformance.executor.cases import seconds_of_case
from tessera_conformance.executor.engine import Engine, Lost, units_of
from tessera_conformance.executor.worker import AnswerWriter, do_unit
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.strength.matrix import Fate, Judged, Trial, suite_of
from tessera_conformance.strength.violation import Violation, load_violations
from tessera_conformance.terminal import SIGNALS, Interrupted, interrupt_once
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import load_adapter

# Work distributed to forked processes: they inherit the collected tests and the violators, neither of which can be
# sent.


Task = TypeVar("Task")
Result = TypeVar("Result")

PARTS = 8
"""The number of parts of the work for each process, so that they end about together."""
FOREVER = 7 * 24 * 3600.0
GRACE = 2.0
"""Seconds that a process has to clean up after a signal."""


def available_processes() -> int:
    """Return the number of processes worth starting: 1 where the system cannot fork."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(jobs: int, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Return the result of each task, in order; results must be picklable, the work and its tasks need not be.

    Raises `ChildProcessError`: a process died.
    """
    if jobs <= 1 or len(tasks) <= 1:
        return [work(task) for task in tasks]
    size = -(-len(tasks) // (PARTS * jobs))
    parts = [tasks[first : first + size] for first in range(0, len(tasks), size)]
    results: dict[int, list[Result]] = {}
    for place, done in isolated(jobs, lambda part: list(map(work, part)), parts, FOREVER):
        if done is None:
            raise ChildProcessError(f"a process died that had {len(parts[place])} of {len(tasks)} tasks")
        results[place] = done
    return [result for place in sorted(results) for result in results[place]]


def isolated(
    jobs: int, work: Callable[[Task], Result], tasks: Sequence[Task], patience: float
) -> Iterator[tuple[int, Result | None]]:
    """Yield the place and the result of each task as they end, every task in a process of its own, forked from here.

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
        self.process.terminate()
        self.process.join(GRACE)
        self.process.kill()
        self.process.join()


def _started(work: Callable[[Task], Any], place: int, task: Task, patience: float) -> tuple[Connection, _Running]:
    def perform() -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        restore = interrupt_once()
        try:
            result = work(task)
        except Interrupted as interruption:  # after the task's clean-up; the parent reports it
            os._exit(interruption.exit_code)
        restore()
        theirs.send(result)

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=perform)
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


# The violators of a kill matrix, spread over the workers of a cluster.


MODULE = "tessera_conformance.strength.sharing"
LEAST_SECONDS = 20.0
"""The least seconds of a unit: its process collects the suite."""
MOST_OF_ONE = 3.0
"""Seconds of a violator: it is caught before all cases of its clause have run."""


def judge_on_workers(engine: Engine, trial: Trial, violations: Sequence[Violation], least: float) -> list[Judged]:
    """Return the fate of each violation, in order.

    A violation whose process died is killed by a fault. One that no worker could judge survives and fails the run.

    Raises `ExecutorUnavailable`: a worker that came later is not like this machine; or `ExecutorLost`: the scheduler
    went away, or all workers did.
    """
    by_name = {violation.name: violation for violation in violations}

    def seconds(violation: Violation) -> float:
        cases = [item.stash[CASE].id for item in trial.tagged(violation)]
        return min(sum(map(seconds_of_case, cases)), MOST_OF_ONE)

    units = units_of({name: seconds(violation) for name, violation in by_name.items()}, engine.slots, least)
    judged: dict[str, Judged] = {}
    for name, result in engine.results(units):
        if isinstance(result, Lost):
            violation, lost_by_task = by_name[name], result.by_task
            level = violation.level or "strict"
            fate: Fate = "killed_by_fault" if lost_by_task else "survived"
            failures = [] if lost_by_task else [f"{name}, which was not judged: {result.reason}"]
            judged[name] = (fate, (), len(trial.tagged(violation)), level), failures
        else:
            (fate, killers, tagged, level), failures = result
            judged[name] = (fate, tuple(killers), tagged, level), failures
    return [judged[name] for name in by_name]


# The process that judges a unit of violators, after it has collected the suite.


def judge(settings: Mapping[str, Any], names: Sequence[str], answers: AnswerWriter) -> None:
    """Judge the violators of these names; without names, only check that violators and control can be loaded."""
    folder = settings["violators"] and Path(settings["violators"])
    if folder and not folder.is_dir():
        answers.write("refusal", f"has no folder {folder}, where the violators are")
        return
    violations = {violation.name: violation for violation in load_violations(folder)}
    try:
        load_adapter(settings["control"])
    except ImplementationUnavailable as error:
        answers.write("refusal", str(error))
        return
    for name in names:
        missing = violations[name].missing if name in violations else "there is none of that name"
        if missing:
            answers.write("refusal", f"cannot run the violator {name}: {missing}")
            return
    if not names:
        return
    registry, control = load_registry(clauses_directory()), settings["control"]
    suite = suite_of(settings["cases"])
    trial = Trial(suite.items, registry, lambda: load_adapter(control), settings["thorough"], settings["known"])
    for name in names:
        answers.write("running", name)
        answers.write("result", [name, trial.judge(violations[name])])


if __name__ == "__main__":
    sys.exit(do_unit(judge))
