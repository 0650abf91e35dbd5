"""The WSP runtime: tasks a second through a window against SimPy, a deadlock of 10,000 tasks, compiling 10,000 tasks.

All figures are processor time, which other work on the machine changes least.
"""

from __future__ import annotations

import resource
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.wsp.builder import Program, TaskWindow
from tessera_reference.wsp.deadlock import report
from tessera_reference.wsp.native import NoCompiler, build
from tessera_reference.wsp.package import Package, load
from tessera_reference.wsp.run import Run

TASKS, WINDOW, WORKERS, TENSORS, CYCLES = 20_000, 16, 4, 8, 10
NATIVE_TASKS = 200_000
MANY = 10_000


def measure() -> list[Outcome]:
    """Thousands of tasks a second; seconds."""
    return [_tasks(), _native_tasks(), *_many()]


def _tasks() -> Outcome:
    if not find_spec("simpy"):
        return NotMeasured("tasks through a window", "pip install simpy")
    mine, other = through_a_window(TASKS)
    return Measurement(
        "tasks through a window", mine, "SimPy", other, TASKS / mine / 1000, "Ktask/s", 50, at_least=True
    )


def through_a_window(tasks: int) -> tuple[float, float]:
    """Return the seconds of tasks of one process on four workers, each of which changes a tensor, and of SimPy's.

    SimPy has the same window and workers.
    """
    import simpy

    package = _stream(tasks)

    def ours() -> None:
        assert Run(package).finish().outcome == "completed"

    def theirs() -> None:
        environment = simpy.Environment()
        window = simpy.Resource(environment, WINDOW)
        workers = [simpy.Resource(environment, 1) for _ in range(WORKERS)]

        def task(number: int, slot: Any) -> Any:
            with workers[number % WORKERS].request() as turn:
                yield turn
                yield environment.timeout(CYCLES)
            window.release(slot)

        def issuer() -> Any:
            for number in range(tasks):
                slot = window.request()
                yield slot
                environment.process(task(number, slot))

        environment.process(issuer())
        environment.run()

    return in_turns(ours, theirs, 3)


def _native_tasks() -> Outcome:
    """The same tasks by the native artifact, its start and the printing of its result included, and by the executor."""
    package = _stream(NATIVE_TASKS)
    with TemporaryDirectory() as place:
        program = Path(place) / "stream"
        try:
            build(package, program)
        except NoCompiler as problem:
            return NotMeasured("tasks in the native artifact", str(problem))

        def native() -> None:
            subprocess.run([str(program)], stdout=subprocess.DEVNULL, check=True)

        mine, other = in_turns(native, lambda: Run(package).finish(), 3, _processor_time)
    rate = NATIVE_TASKS / mine / 1000
    name = "tasks in the native artifact"
    return Measurement(name, mine, "the executor", other, rate, "Ktask/s", 200, at_least=True)


def _processor_time() -> float:
    """Return the processor time of this process and of those that it ran."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _stream(tasks: int = TASKS) -> Package:
    program = Program("stream")
    program.dispatch("round_robin", workers=WORKERS)
    program.task_window(TaskWindow(WINDOW))
    kernel = program.kernel("k", cycles=CYCLES, x="tensor").add("x", "x", 1)
    tensors = [program.tensor(f"x{place}", "i32", 4) for place in range(TENSORS)]
    with program.process("p"), program.repeat(tasks // TENSORS):
        for tensor in tensors:
            program.task(kernel, tensor)
    return load(program.compile().package)


def _many() -> list[Outcome]:
    """A program that issues 10,000 tasks one by one, all of which wait for a token that comes after one task more."""
    program = Program("many")
    program.task_window(TaskWindow(MANY))
    program.resources(ready_queue=2 * MANY, tensormap_pool=2 * MANY, deplist_pool=4 * MANY, heap_arena=1 << 24)
    channel = program.channel("c")
    kernel = program.kernel("k", cycles=CYCLES, x="tensor").add("x", "x", 1)
    tensors = [program.tensor(f"x{place}", "i32", 4) for place in range(TENSORS)]
    with program.process("p"):
        for number in range(MANY + 1):
            program.task(kernel, tensors[number % TENSORS], waits=[channel])
        program.send(channel)
    started = time.process_time()
    data = program.compile().package
    compiling = time.process_time() - started
    package = load(data)
    started = time.process_time()
    waiting = report(package, Run(package).finish().state())["waiting"]
    deadlock = time.process_time() - started
    assert len(waiting) == MANY + 1
    return [
        Measurement("package of 10,000 tasks", compiling, "its limit", 2, compiling, "s", 2),
        Measurement("deadlock of 10,000 tasks", deadlock, "its limit", 1, deadlock, "s", 1),
        _building(package),
    ]


def _building(package: Package) -> Outcome:
    """The C compiler's time for the native program of as many statements."""
    name = "native program of 10,000 tasks"
    with TemporaryDirectory() as place:
        started = _processor_time()
        try:
            build(package, Path(place) / "many")
        except NoCompiler as problem:
            return NotMeasured(name, str(problem))
        seconds = _processor_time() - started
    return Measurement(name, seconds, "its limit", 20, seconds, "s", 20)
