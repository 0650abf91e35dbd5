"""A legal call of every C function of the runtime; cases of bad arguments change one argument of it.

Each call needs a `MeshSession` and creates its other objects; a function that does not change its arguments may be
called twice. `HANDLES`, `POINTERS` and `OUTPUTS` list the parameters that are handles, memory and out parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tessera_conformance.interface import Method, interface

from .encoding import elements, packed
from .mesh_session import (
    BYTES,
    CONFIGURATION,
    COUNT,
    D2D,
    DTYPE_IDS,
    KERNELS,
    PINNED_HOST,
    SUM,
    MeshSession,
    axes_of,
    compiled,
    devices,
)
from .policies import STRICT

Arguments: TypeAlias = dict[str, Any]


def legal_call(session: MeshSession, function: str) -> Arguments:
    """Arguments with which a function succeeds."""
    return CALLS[function](session)


def new_mesh(session: MeshSession) -> Arguments:
    """Return a mesh of one device."""
    return {"context": session.context, "deviceIds": devices(session.impl, session.check, 1), "axes": axes_of(dp=1)}


def device_memory(session: MeshSession) -> int:
    """Device memory with a tensor of ones."""
    return session.upload(elements("int32", *[1] * COUNT))


def copy(session: MeshSession) -> Arguments:
    """Return a copy from one tensor of the device to another, which holds other numbers."""
    dst, src = session.upload(elements("int32", *[2] * COUNT)), device_memory(session)
    return {"dst": dst, "src": src, "bytes": BYTES, "kind": D2D, "stream": session.stream}


def module(session: MeshSession) -> Arguments:
    """Return an image, and its size."""
    image = compiled(session.impl, session.check, KERNELS)
    return {"context": session.context, "image": image, "size": len(image) // 2}


def launch(session: MeshSession) -> Arguments:
    """Return a launch of a kernel with arguments."""
    arguments = packed(("int32", 7), ("ptr", device_memory(session)))
    return {
        "kernel": session.kernel("fill"),
        "mesh": session.mesh,
        "cfg": dict(CONFIGURATION),
        "argBuffer": arguments.hex(),
        "argSize": len(arguments),
        "stream": session.stream,
    }


def collective(session: MeshSession, buffer: str, **others: Any) -> Arguments:
    """Return a collective over a tensor; `buffer` is the name of its memory."""
    whole = {"mesh": session.mesh, buffer: device_memory(session), "count": COUNT, "dtype": DTYPE_IDS["int32"]}
    return {**whole, **others, "stream": session.stream}


def recorded(session: MeshSession) -> int:
    """Return an event that the stream has recorded."""
    event = session.event()
    session.record(event)
    return event


def host_memory(session: MeshSession) -> int:
    """Memory of tessHostAlloc."""
    return int(session.ask("tessHostAlloc", bytes=BYTES, kind=PINNED_HOST)["hostPtr"])


CALLS: Mapping[str, Callable[[MeshSession], Arguments]] = {
    "tessInit": lambda session: {},
    "tessShutdown": lambda session: {"context": session.ask("tessInit")["context"]},
    "tessGetVersion": lambda session: {},
    "tessMeshCreate": new_mesh,
    "tessMeshDestroy": lambda session: {"mesh": session.ask("tessMeshCreate", **new_mesh(session))["mesh"]},
    "tessStreamCreate": lambda session: {"mesh": session.mesh, "priority": 0},
    "tessStreamDestroy": lambda session: {"stream": session.another_stream().stream},
    "tessEventCreate": lambda session: {},
    "tessEventDestroy": lambda session: {"event": session.ask("tessEventCreate")["event"]},
    "tessEventRecord": lambda session: {"event": session.ask("tessEventCreate")["event"], "stream": session.stream},
    "tessStreamWaitEvent": lambda session: {"stream": session.stream, "event": recorded(session)},
    "tessStreamSynchronize": lambda session: {"stream": session.stream},
    "tessMalloc": lambda session: {"mesh": session.mesh, "bytes": BYTES},
    "tessFree": lambda session: {"mesh": session.mesh, "devPtr": session.allocate(BYTES)},
    "tessHostAlloc": lambda session: {"bytes": BYTES, "kind": PINNED_HOST},
    "tessHostFree": lambda session: {"hostPtr": host_memory(session)},
    "tessMemcpyAsync": copy,
    "tessModuleLoad": module,
    "tessModuleUnload": lambda session: {"module": session.load()},
    "tessKernelGet": lambda session: {"module": session.load(), "name": "fill"},
    "tessLaunch": launch,
    "tessAllReduce": lambda session: collective(session, "buffer", op=SUM, axis="dp"),
    "tessReduceScatter": lambda session: collective(session, "inout", op=SUM, axis="dp"),
    "tessAllGather": lambda session: collective(session, "inout", axis="dp"),
    "tessBroadcast": lambda session: collective(session, "buffer", root=0),
    "tessSetNumericsPolicy": lambda session: {"context": session.context, "policy": STRICT},
    "tessGetNumericsPolicy": lambda session: {"context": session.context},
    "tessProfilerStart": lambda session: {"context": session.context},
}
"""Every C function but tessProfilerStop, which takes the path of a file."""


def _parameters(which: Callable[[Method], tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    """Return the parameters of some kind, by function, without functions that have none."""
    found = {name: which(interface().c_functions[name]) for name in CALLS}
    return {name: names for name, names in found.items() if names}


def _pointers(method: Method) -> tuple[str, ...]:
    optional = {parameter.name for parameter in method.parameters if interface().allows_null(parameter.type)}
    pointers = {*method.parameters_of("address"), *optional}
    return tuple(parameter.name for parameter in method.parameters if parameter.name in pointers)


OUTPUTS = _parameters(lambda method: tuple(output.name for output in method.outputs))
"""Out parameters, by function; of tessGetVersion all three."""

HANDLES = _parameters(lambda method: method.parameters_of("handle"))
"""Parameters that are handles, by function; each is named after the kind of its object."""

POINTERS = _parameters(_pointers)
"""Parameters that point to memory that the function reads or writes, by function."""

ADDRESSES = {name for c_function in interface().c_functions.values() for name in c_function.parameters_of("address")}
"""Pointers that are addresses: their NULL is 0. That of the others is null."""
