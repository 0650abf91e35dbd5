"""Kernels whose ranks meet, lack of memory, caches, and the end of a runtime (runtime spec 8.2, 12, 13)."""

from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tessera_reference.abi.fatbin import read, write
from tessera_reference.abi.status import Status
from tessera_reference.adapter import make
from tessera_reference.c_library.serving import Session
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.engine import Seeded
from tessera_reference.mesh.topology import MeshAxes

Maker = Callable[..., Any]


def interleaved(at: Any) -> int:
    """Return the digits of two streams that append two each to one tensor, with nothing between them."""
    digit, other = at.kernel("digit"), at.ask("tessStreamCreate", at.mesh, 0)
    at.ask("tessxPoke", at.mesh, 0, at.memory, bytes(32))
    for stream, value in ((at.stream, 1), (at.stream, 2), (other, 3), (other, 4)):
        at.launch(digit, struct.pack("<i4xQ", value, at.memory), stream)
    for stream in (at.stream, other):
        at.ask("tessStreamSynchronize", stream)
    return int.from_bytes(at.ask("tessxPeek", at.mesh, 0, at.memory, 4), "little")


def test_on_an_untimed_machine_seeds_find_launches_between_the_steps_of_others(used: Maker) -> None:
    """One stream after the other, and launches of which one writes what it had read before the other's were done."""
    actual = {interleaved(used(1, choices=Seeded(seed), timed=False)) for seed in range(60)}
    assert actual >= {1234, 3412, 12, 34, 134, 312}


CAPTURE = 2


@pytest.fixture(name="at")
def fixture_at(used: Maker) -> Any:
    """A runtime whose stream is captured, with one launch of digit(1) in the graph."""
    at = used(2)
    for rank in range(2):
        at.ask("tessxPoke", at.mesh, rank, at.memory, bytes(256))
    at.digit = at.kernel("digit")
    captured(at, 1)
    return at


def captured(at: Any, value: int, stream: int | None = None, flags: int = CAPTURE) -> None:
    at.launch(at.digit, struct.pack("<i4xQ", value, at.memory), stream, flags)


def number(at: Any, rank: int = 1) -> int:
    """The first element of what digit works on."""
    return int.from_bytes(at.ask("tessxPeek", at.mesh, rank, at.memory, 4), "little")


@pytest.mark.parametrize("seed", range(12))
def test_kernels_whose_ranks_meet_never_keep_one_another_waiting(used: Maker, seed: int) -> None:
    """Ten of them at once, of which a device runs four: in whatever order the ranks take them, all meet."""
    at = used(2, choices=Seeded(seed), timed=False)
    met = at.kernel("met")
    streams = [at.ask("tessStreamCreate", at.mesh, 0) for _ in range(10)]
    buffers = [at.ask("tessMalloc", at.mesh, 32) for _ in streams]
    for number, (stream, buffer) in enumerate(zip(streams, buffers, strict=True)):
        for rank in range(2):
            at.ask("tessxPoke", at.mesh, rank, buffer, bytes([number + 1, 0, 0, 0] * 8))
        at.launch(met, struct.pack("<Q", buffer), stream)
    for number, (stream, buffer) in enumerate(zip(streams, buffers, strict=True)):
        at.ask("tessStreamSynchronize", stream)
        assert at.ask("tessxPeek", at.mesh, 1, buffer, 4) == bytes([2 * number + 2, 0, 0, 0])


def test_work_for_which_the_simulator_has_no_memory_fails_and_the_stream_goes_on(
    used: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = used(2)
    read = at.runtime.machine.memory.read

    def exhausted(*arguments: Any) -> Any:
        monkeypatch.setattr(at.runtime.machine.memory, "read", read)
        raise MemoryError

    monkeypatch.setattr(at.runtime.machine.memory, "read", exhausted)
    for _ in range(2):
        at.ask("tessMemcpyAsync", at.memory, at.memory + 8, 8, 2, at.stream)
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_OUT_OF_MEMORY
    at.ask("tessStreamSynchronize", at.stream)


FORGED = "module kernels { kernel any(N: int32, x: tensor<Nxint32>) { x = x + 666; } }"


def counted(at: Any) -> tuple[int, int]:
    return at.runtime.code.hits, at.runtime.code.misses


def run_any(at: Any, kernel: int, count: int = 3) -> None:
    at.launch(kernel, struct.pack("<i4xQ", count, at.memory))
    at.ask("tessStreamSynchronize", at.stream)


def test_an_image_that_claims_the_hash_of_another_gets_code_of_its_own(
    used: Maker, image: bytes, tmp_path: Path
) -> None:
    """Code that an unsigned image left in the directory under a forged hash is not run for the module it imitates."""
    variables = {"TESS_CACHE_DIR": str(tmp_path)}
    other = read(compile_module(FORGED, ["sm_90"]))
    forged = write(replace(other, ir_hash=read(image).ir_hash))
    at = used(1, environment=variables)
    at.image = forged
    run_any(at, at.kernel("any"))
    assert counted(at) == (0, 1)
    at.image = image
    run_any(at, at.kernel("any"))
    assert counted(at) == (0, 2)


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Nothing but its reference counts frees an object."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("state", ["idle", "queued", "held up", "stream destroyed"])
def test_a_runtime_that_is_closed_frees_its_machine(used: Maker, state: str) -> None:
    at = used()
    second = at.ask("tessStreamCreate", at.mesh, 0)
    match state:
        case "queued":
            at.launch(at.kernel("met"), at.memory.to_bytes(8, "little"))
        case "held up":  # rank 1 issues nothing, so that rank 0 waits for it while the host goes on
            at.issue(0, second)
            at.runtime.machine.engine.run(until=lambda: True)
        case "stream destroyed":
            at.ask("tessStreamDestroy", second)
    machine = weakref.ref(at.runtime.machine)
    at.runtime.close()
    del at
    assert machine() is None


def test_a_session_that_is_reset_frees_its_machine() -> None:
    adapter = make()
    context = adapter.runtime_tessInit()["context"]
    mesh = adapter.runtime_tessMeshCreate(context=context, deviceIds=[0, 1], count=2, axes={"dp": 2})["mesh"]
    adapter.runtime_tessStreamCreate(mesh=mesh, priority=0)
    machine = weakref.ref(adapter.runtime.machine)
    adapter.session_reset()
    assert machine() is None


class NoMemory:
    """A process of which nothing is asked for."""

    reserved = range(2**40, 2**41)

    def close_all(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("extended", [False, True])
def test_a_session_of_the_c_library_that_is_reset_frees_its_machine(extended: bool) -> None:
    session = Session(NoMemory(), dict)  # type: ignore[arg-type]
    if extended:
        assert session.adapter.runtime is session.runtime
    _, context = session.runtime.tessInit()
    _, mesh = session.runtime.tessMeshCreate(context, [0, 1], 2, MeshAxes(dp=2))
    session.runtime.tessStreamCreate(mesh, 0)
    machine = weakref.ref(session.runtime.machine)
    session.reset()
    assert machine() is None
