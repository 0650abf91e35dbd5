"""Collectives on a stream (runtime spec 4.6, 13; AMB-RT-02 to -05, -28, -40, -57, -59)."""

# ruff: noqa: N802, the names are those of the C API

# ruff: noqa: N802, the names are those of the C API
from __future__ import annotations

from typing import Any

from .collectives import FUNCTIONS, collective_work, read_call
from .state import State, entry, submit

# Collectives on a stream (runtime spec 4.6, 13; AMB-RT-02 to -05, -28, -40, -57, -59).


@entry()
def tessAllReduce(
    state: State, mesh: Any, buffer: Any, count: int, dtype: int, op: int, axis: str | None, stream: Any
) -> None:
    """The combination of the group's buffers, on every rank (RT-04.6-08 to -10)."""
    _queue(state, "all_reduce", mesh, buffer, count, dtype, stream, op=op, axis=axis)


@entry()
def tessReduceScatter(
    state: State, mesh: Any, inout: Any, count: int, dtype: int, op: int, axis: str | None, stream: Any
) -> None:
    """To each rank its share of the combination (RT-04.6-11, AMB-RT-04)."""
    _queue(state, "reduce_scatter", mesh, inout, count, dtype, stream, op=op, axis=axis)


@entry()
def tessAllGather(state: State, mesh: Any, inout: Any, count: int, dtype: int, axis: str | None, stream: Any) -> None:
    """The shares of all ranks of the group, on every rank (RT-04.6-12, AMB-RT-04)."""
    _queue(state, "all_gather", mesh, inout, count, dtype, stream, axis=axis)


@entry()
def tessBroadcast(state: State, mesh: Any, buffer: Any, count: int, dtype: int, root: int, stream: Any) -> None:
    """The root's buffer, on every rank of the mesh (RT-04.6-13, AMB-RT-02)."""
    _queue(state, "broadcast", mesh, buffer, count, dtype, stream, root=root)


def _queue(
    state: State, collective: str, mesh: Any, buffer: Any, count: int, dtype: int, stream: Any, **parameters: Any
) -> None:
    on, queue = state.mesh(mesh), state.stream(stream)
    queue.require_of(on)
    policy = on.context.governing()
    on.context.require_policy(FUNCTIONS[collective], policy)
    call = read_call(on, state.code, collective, count, dtype, **parameters)
    submit(state, collective_work(call, buffer, queue, policy))
