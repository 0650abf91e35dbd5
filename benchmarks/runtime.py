"""The runtime on its simulated machine: the engine against SimPy, the host's side of calls against plain queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.abi.status import Status
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.engine import Engine
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.runtime import Runtime
from tessera_reference.runtime.launches import LaunchConfig

PROCESSES, SLEEPS = 200, 250
CALLS = 1000
STREAMS, ROUNDS = 1000, 25
CONFIG = LaunchConfig((1, 1, 1))


def measure() -> list[Outcome]:
    """Events a second; microseconds a launch and an event call; seconds for 100,000 operations on 1,000 streams."""
    launch, event = _host_calls()
    return [*_engine(), launch, event, _many_streams()]


def _engine() -> list[Outcome]:
    """Processes that sleep; processor time, since what runs is one thread of Python."""
    if not find_spec("simpy"):
        return [NotMeasured("virtual-time engine", "pip install simpy")]
    mine, other = events(SLEEPS)
    rate = PROCESSES * SLEEPS / mine / 1000
    faster = Measurement("virtual-time engine, times SimPy", mine, "SimPy", other, other / mine, "x", 2, at_least=True)
    return [
        Measurement("virtual-time engine", mine, "SimPy", other, rate, "Kevent/s", 2000, at_least=True),
        faster,
    ]


def events(sleeps: int) -> tuple[float, float]:
    """Return the seconds in which 200 processes sleep so many times, in the engine and in SimPy."""
    import simpy

    def ours() -> None:
        engine = Engine()

        async def sleeper(pause: int) -> None:
            for _ in range(sleeps):
                await engine.sleep(pause)

        for number in range(PROCESSES):
            engine.spawn("sleeper", sleeper(10 + number))
        engine.run()

    def theirs() -> None:
        environment = simpy.Environment()

        def sleeper(pause: int) -> Any:
            for _ in range(sleeps):
                yield environment.timeout(pause)

        for number in range(PROCESSES):
            environment.process(sleeper(10 + number))
        environment.run()

    return in_turns(ours, theirs, 5)


def _done(answer: Any) -> Any:
    status, output = answer if isinstance(answer, tuple) else (answer, None)
    assert status is Status.TESS_OK, status.name
    return output


def _machine() -> tuple[Runtime, int, int]:
    """A runtime, a mesh of one device, an empty kernel."""
    runtime = Runtime()
    context = _done(runtime.tessInit())
    mesh = _done(runtime.tessMeshCreate(context, [0], 1, MeshAxes()))
    image = compile_module("module m { kernel nothing() { } }", ["sm_90"])
    module = _done(runtime.tessModuleLoad(context, image, len(image)))
    return runtime, mesh, _done(runtime.tessKernelGet(module, "nothing"))


def _queue() -> Callable[[], None]:
    """The time of a call that does no more than queue a dictionary."""
    queue: deque[dict[str, object]] = deque()

    def call(**arguments: object) -> int:
        queue.append(arguments)
        return 0

    def run() -> None:
        for _ in range(CALLS):
            call(kernel=1, mesh=2, cfg=CONFIG, argBuffer=b"", argSize=0, stream=3)
        queue.clear()

    return run


def _host_calls() -> tuple[Measurement, Measurement]:
    runtime, mesh, kernel = _machine()
    stream, event = _done(runtime.tessStreamCreate(mesh, 0)), _done(runtime.tessEventCreate())

    def launches() -> None:
        for _ in range(CALLS):
            runtime.tessLaunch(kernel, mesh, CONFIG, None, 0, stream)

    def events() -> None:
        for _ in range(CALLS // 2):
            runtime.tessEventRecord(event, stream)
            runtime.tessStreamWaitEvent(stream, event)

    found = []
    for name, action, limit in (("launch an empty kernel", launches, 60), ("event record or wait", events, 15)):
        mine, other = in_turns(action, _queue(), 5)
        _done(runtime.tessStreamSynchronize(stream))
        found.append(Measurement(name, mine, "deque", other, mine / CALLS * 1e6, "us", limit))
    return found[0], found[1]


def _many_streams() -> Measurement:
    mine, other = on_streams(STREAMS)
    return Measurement("1,000 streams, 100,000 operations", mine, "deque", other, mine, "s", 10)


def on_streams(number_of_streams: int) -> tuple[float, float]:
    """Return the seconds of copies, launches, records and waits on streams, queued and done, and of a deque's."""

    def ours() -> None:
        runtime, mesh, kernel = _machine()
        streams = [_done(runtime.tessStreamCreate(mesh, 0)) for _ in range(number_of_streams)]
        events = [_done(runtime.tessEventCreate()) for _ in range(number_of_streams)]
        buffers = [_done(runtime.tessMalloc(mesh, 256)) for _ in range(number_of_streams)]
        host = _done(runtime.tessHostAlloc(256, 1))
        _done(runtime.tessxHostWrite(host, bytes(256)))
        for _ in range(ROUNDS):
            for number, stream in enumerate(streams):
                _done(runtime.tessMemcpyAsync(buffers[number], host, 256, 0, stream))
                _done(runtime.tessLaunch(kernel, mesh, CONFIG, None, 0, stream))
                _done(runtime.tessEventRecord(events[number], stream))
                _done(runtime.tessStreamWaitEvent(streams[(number * 7 + 1) % number_of_streams], events[number]))
        for stream in streams:
            _done(runtime.tessStreamSynchronize(stream))

    queue = _queue()

    def theirs() -> None:
        for _ in range(number_of_streams * ROUNDS * 4 // CALLS):
            queue()

    return in_turns(ours, theirs, 1)
