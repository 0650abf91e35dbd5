"""A machine that is not used again is freed at once, not when Python next looks for cycles: its memory may be large."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from conftest import Used

from tessera_reference.adapter import make
from tessera_reference.c_library.serving import Session
from tessera_reference.mesh.axes import MeshAxes


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Nothing but its reference counts frees an object."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("state", ["idle", "queued", "held up", "stream destroyed"])
def test_a_runtime_that_is_closed_frees_its_machine(image: bytes, state: str) -> None:
    used = Used(image=image)
    second = used.ask("tessStreamCreate", used.mesh, 0)
    match state:
        case "queued":
            used.launch(used.kernel("met"), used.memory.to_bytes(8, "little"))
        case "held up":  # rank 1 issues nothing, so that rank 0 waits for it while the host goes on
            used.issue(0, second)
            used.runtime.machine.engine.run(until=lambda: True)
        case "stream destroyed":
            used.ask("tessStreamDestroy", second)
    machine = weakref.ref(used.runtime.machine)
    used.runtime.close()
    del used
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
