"""Arguments of a wrong type: each function names itself, what it was given, and what it takes (RT-05-07)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera_reference as ts
from tessera_reference.abi import Status

ARRAY = np.zeros(4, np.float32)
STRANGERS = [None, 3, 1.5, "dp", b"image", [1], {"dp": 2}, object(), ARRAY]

CALLS: dict[str, tuple[tuple[type, ...], Callable[[Any, Any, Any], Any]]] = {
    "init's topology": ((type(None),), lambda mesh, kernel, x: ts.init(x)),
    "init's environment": ((type(None), dict), lambda mesh, kernel, x: ts.init(environment=x)),
    "mesh's devices": ((), lambda mesh, kernel, x: ts.mesh(x, {"dp": 2})),
    "mesh's axes": ((dict,), lambda mesh, kernel, x: ts.mesh([0, 1], x)),
    "mesh's context": ((type(None),), lambda mesh, kernel, x: ts.mesh([0, 1], {"dp": 2}, x)),
    "load's image": ((), lambda mesh, kernel, x: ts.module.load(x)),
    "a kernel's name": ((), lambda mesh, kernel, x: kernel.module.kernel[x]),
    "launch's kernel": ((), lambda mesh, kernel, x: ts.launch(x, mesh, grid=(1,))),
    "launch's mesh": ((), lambda mesh, kernel, x: ts.launch(kernel, x, grid=(1,))),
    "launch's grid": (
        (int, list),
        lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=x, args=ts.pack_args(ARRAY, 4)),
    ),
    "launch's arguments": ((), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), args=x)),
    "launch's flags": ((), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), flags=x)),
    "launch's stream": ((type(None),), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), stream=x)),
    "launch's shared bytes": ((), lambda mesh, kernel, x: ts.launch(kernel, mesh, grid=(1,), shmem_bytes=x)),
    "a stream's mesh": ((), lambda mesh, kernel, x: ts.Stream(x)),
    "a stream's priority": ((int,), lambda mesh, kernel, x: ts.Stream(mesh, x)),
    "an event to record": ((), lambda mesh, kernel, x: mesh.default_stream.record(x)),
    "an event to wait for": ((), lambda mesh, kernel, x: mesh.default_stream.wait(x)),
    "a stream to synchronize": ((type(None),), lambda mesh, kernel, x: ts.synchronize(x)),
    "an array's mesh": ((), lambda mesh, kernel, x: ts.DeviceArray(x, (2,))),
    "an array's shape": ((int, list), lambda mesh, kernel, x: ts.DeviceArray(mesh, x)),
    "an array's dtype": ((), lambda mesh, kernel, x: ts.DeviceArray(mesh, (2,), x)),
    "what an array is to hold": ((np.ndarray,), lambda mesh, kernel, x: ts.DeviceArray(mesh, (4,)).put(x)),
    "a rank's array": ((type(None), int), lambda mesh, kernel, x: ts.DeviceArray(mesh, (4,)).put(ARRAY, x)),
    "a copy's source": ((np.ndarray,), lambda mesh, kernel, x: ts.copy(ts.DeviceArray(mesh, (4,)), x)),
    "all_reduce's mesh": ((), lambda mesh, kernel, x: ts.collectives.all_reduce(x, ARRAY, axis="dp")),
    "all_reduce's array": ((np.ndarray, bytes), lambda mesh, kernel, x: ts.collectives.all_reduce(mesh, x, axis="dp")),
    "all_reduce's op": ((), lambda mesh, kernel, x: ts.collectives.all_reduce(mesh, ARRAY, op=x, axis="dp")),
    "all_reduce's axis": ((str,), lambda mesh, kernel, x: ts.collectives.all_reduce(mesh, ARRAY, axis=x)),
    "broadcast's root": ((int,), lambda mesh, kernel, x: ts.collectives.broadcast(mesh, ARRAY, root=x)),
    "a policy": ((), lambda mesh, kernel, x: setattr(mesh.context, "policy", x)),
    "a switch": ((), lambda mesh, kernel, x: mesh.context.set_policy(deterministic=x)),
    "a profile's path": ((str, bytes), lambda mesh, kernel, x: mesh.context.profile(x).__enter__()),
}
"""Calls with one argument open, and the types that it may have."""


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_wrong_type_is_named(mesh: ts.Mesh, mod: ts.Module, name: str) -> None:
    taken, call = CALLS[name]
    for stranger in STRANGERS:
        if isinstance(stranger, taken):
            continue
        with pytest.raises(ts.TesseraError) as caught:
            call(mesh, mod.kernel["increase"], stranger)
        assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
        assert "expected" in caught.value.message


def test_an_unknown_switch_is_named(ctx: ts.Context) -> None:
    with pytest.raises(ts.TesseraError, match="switch precise; expected one of stableReductions"):
        ctx.set_policy(precise=1)
