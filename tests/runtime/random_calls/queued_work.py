"""The effect of queued work on memory, rank after rank: one of the orders that the rules allow."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tessera_reference.abi.status import Status

from .access_order import Use
from .live_objects import Mesh, Queued
from .memory import Place

__all__ = ["KERNELS", "SOURCE", "Numbers", "collective", "copy", "kernel"]

SOURCE = """module kernels {
  mesh pair = mesh<axes=[dp], shape=[2]>;
  kernel fill(v: int32, x: tensor<8xint32>) { x[0:8] = v; }
  kernel digit(v: int32, x: tensor<8xint32>) { x = x * 10 + v; }
  kernel copy(x: tensor<8xint32>, y: tensor<8xint32>) { y = x; }
  kernel divide(n: int32, x: tensor<8xint32>) { x[0] = 64 / n; }
  kernel index(n: int32, x: tensor<8xint32>) { x[n] = 1; }
  kernel any(N: int32, x: tensor<Nxint32>) { x = x + 1; }
  kernel met(x: tensor<8xint32>) { x = dist.all_reduce(x, axis=dp, op="sum"); }
  kernel nothing() { }
}
"""
"""`divide` and `index` fail for n = 0 and n = 8, `met` on any mesh that has not two ranks."""

Numbers = list[int | None]
"""None is not known."""

Cut = Callable[[], Sequence[tuple[int, int]]]
"""The pairs of ranks between which nothing passes when work runs."""

Kernel = Callable[[int, Sequence[Numbers]], Numbers | None]


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def each(function: Callable[[int], int], values: Numbers) -> Numbers:
    return [None if value is None else wrapped(function(value)) for value in values]


def put(values: Numbers, place: int, value: int) -> Numbers:
    return [*values[:place], value, *values[place + 1 :]]


KERNELS: Mapping[str, Kernel] = {
    "fill": lambda v, tensors: [v] * 8,
    "digit": lambda v, tensors: each(lambda x: x * 10 + v, tensors[0]),
    "copy": lambda v, tensors: tensors[0],
    "divide": lambda n, tensors: put(tensors[0], 0, 64 // n) if n else None,
    "index": lambda n, tensors: put(tensors[0], n, 1) if 0 <= n < 8 else None,
    "any": lambda n, tensors: each(lambda x: x + 1, tensors[0]),
}
"""From the scalar and the tensors: what the last of them then holds, or None where the kernel fails."""


def numbers(place: Place, copy: int, size: int) -> Numbers:
    """The integers of `size` bytes at a place."""
    data, known = place.block.read(copy, place.start, place.size)
    values = (int.from_bytes(data[i : i + size], "little", signed=True) for i in range(0, len(data), size))
    return [value if all(known[i * size : (i + 1) * size]) else None for i, value in enumerate(values)]


def store(place: Place, copy: int, size: int, values: Numbers) -> Sequence[Status]:
    """Put integers there; memory that is read-only refuses."""
    if place.block.read_only:
        return [Status.TESS_ERR_INVALID_VALUE] if values else []
    data = b"".join((0 if value is None else value).to_bytes(size, "little", signed=True) for value in values)
    place.block.write(copy, place.start, data, bytes(value is not None for value in values for _ in range(size)))
    return []


def shares(uses: Sequence[Use], mesh: Mesh) -> bool:
    """Several ranks use the same bytes, in whatever order."""
    blocks = [use.place.block for use in uses]
    return len(mesh.devices) > 1 and any(block.shared and not block.read_only for block in blocks)


def forgotten(uses: Sequence[Use]) -> Sequence[Status]:
    """What is written is not known."""
    for use in uses:
        if use.write:
            use.place.block.forget(use.place.start, use.place.size)
    refused = any(use.write and use.place.block.read_only for use in uses)
    return [Status.TESS_ERR_INVALID_VALUE] if refused else []


def copy(mesh: Mesh, direction: int, target: Place, source: Place) -> Queued:
    """H2D writes every rank, D2H reads rank 0, D2D stays on each rank (AMB-RT-05)."""
    uses = [Use(source, False), Use(target, True)]

    def apply() -> Sequence[Status]:
        if target.block.read_only:
            return [Status.TESS_ERR_INVALID_VALUE]
        if shares(uses, mesh):
            return forgotten(uses)
        for device in mesh.devices[:1] if direction == 1 else mesh.devices:
            data, known = source.block.read(source.block.copy_on(device), source.start, source.size)
            target.block.write(target.block.copy_on(device), target.start, data, known)
        return []

    return Queued(uses, apply)


def kernel(mesh: Mesh, name: str, scalar: int, tensors: Sequence[Place], trapped: Sequence[int], cut: Cut) -> Queued:
    """A launch, which fails on some ranks."""
    uses = [Use(place, name != "copy" or place is tensors[-1]) for place in tensors]

    def apply() -> Sequence[Status]:
        failed = [Status.TESS_ERR_LAUNCH_FAILED]
        if not tensors:
            return failed if trapped else []
        if name == "met":
            return rendezvous()
        if shares(uses, mesh):
            return [*forgotten(uses), *(failed if trapped or KERNELS[name](scalar, [[0] * 8]) is None else [])]
        errors: list[Status] = []
        for rank, device in enumerate(mesh.devices):
            found = [numbers(place, place.block.copy_on(device), 4) for place in tensors]
            result = None if rank in trapped else KERNELS[name](scalar, found)
            if result is None:
                errors += failed
            else:
                errors += store(tensors[-1], tensors[-1].block.copy_on(device), 4, result)
        return errors

    def rendezvous() -> Sequence[Status]:
        if trapped:
            missing = [Status.TESS_ERR_COLLECTIVE_MISMATCH] if len(trapped) < len(mesh.devices) else []
            return [Status.TESS_ERR_LAUNCH_FAILED, *missing]
        if (0, 1) in map(tuple, map(sorted, cut())):
            return [Status.TESS_ERR_TIMEOUT if mesh.context.timeout else Status.TESS_ERR_LAUNCH_FAILED]  # AMB-RT-171
        if len(mesh.devices) != 2:
            return [Status.TESS_ERR_LAUNCH_FAILED]
        if shares(uses, mesh):
            return forgotten(uses)
        (place,) = tensors
        found = [numbers(place, place.block.copy_on(device), 4) for device in mesh.devices]
        total = combined(found, 0, 4)
        return [error for device in mesh.devices for error in store(place, place.block.copy_on(device), 4, total)]

    return Queued(uses, apply, "launch")


WHOLE = {7: 1, 8: 2, 9: 4, 10: 8}
"""Bytes of the dtypes whose combinations the model knows."""


def combined(found: Sequence[Numbers], operator: int, size: int) -> Numbers:
    """Element by element; a sum wraps."""
    half = 1 << (8 * size - 1)
    total: Numbers = []
    for column in zip(*found, strict=True):
        known = [value for value in column if value is not None]
        if len(known) < len(column) or (operator == 0 and size < 4):
            total.append(None)
        else:
            value = (sum, max, min)[operator](known)
            total.append((value + half) % (2 * half) - half)
    return total


def collective(
    mesh: Mesh,
    name: str,
    places: Sequence[Place | None],
    dtype: int,
    *,
    operator: int = 0,
    axis: str | None = None,
    root: int = 0,
    cut: Cut = lambda: (),
    uses: Sequence[Use] = (),
    disagreeing: Mapping[tuple[int, ...], Status] = MappingProxyType({}),
) -> Queued:
    """A collective in which rank r brings `places[r]`; groups that disagree fail so, the others meet (AMB-COLL-76)."""
    whole = tuple(range(len(mesh.devices)))
    groups = [whole] if axis is None else list(mesh.axes.groups(axis))

    def apply() -> Sequence[Status]:
        late = Status.TESS_ERR_TIMEOUT if mesh.context.timeout else Status.TESS_ERR_LAUNCH_FAILED  # AMB-RT-81
        failed = {group: late for group in groups if any(a in group and b in group for a, b in cut())} | disagreeing
        met = [group for group in groups if group not in failed]
        members = [(group, [place for rank in group if (place := places[rank]) is not None]) for group in met]
        members = [(group, held) for group, held in members if len(group) > 1 and held]
        written = [Use(place, True) for _, held in members for place in held]
        if dtype not in WHOLE or shares(written, mesh) or any(use.place.block.read_only for use in written):
            return [*list(failed.values())[:1], *forgotten(written)]
        for group, held in members:
            meet(group, held)
        return list(failed.values())[:1]

    def meet(group: Sequence[int], held: Sequence[Place]) -> None:
        size = WHOLE[dtype]
        copies = [place.block.copy_on(mesh.devices[rank]) for rank, place in zip(group, held, strict=True)]
        found = [numbers(place, copy, size) for place, copy in zip(held, copies, strict=True)]
        for position, result in enumerate(results(name, found, operator, root, size)):
            store(held[position], copies[position], size, result)

    return Queued(uses, apply, "collective")


def results(name: str, found: Sequence[Numbers], operator: int, root: int, size: int) -> Sequence[Numbers]:
    """What each rank of a group then has (AMB-RT-02, AMB-RT-04)."""
    if name == "broadcast":
        return [found[root]] * len(found)
    share = len(found[0]) // len(found)
    if name == "all_gather":
        gathered = [value for rank, values in enumerate(found) for value in values[rank * share : (rank + 1) * share]]
        return [gathered] * len(found)
    total = combined(found, operator, size)
    if name == "all_reduce":
        return [total] * len(found)
    return [
        [*values[: rank * share], *total[rank * share : (rank + 1) * share], *values[(rank + 1) * share :]]
        for rank, values in enumerate(found)
    ]


def buffer(name: str, scalar: int, pointers: Sequence[int]) -> bytes:
    """The parameter buffer of a launch (runtime spec 10.1)."""
    if name in ("met", "nothing"):
        return b"".join(struct.pack("<Q", pointer) for pointer in pointers)
    if name == "copy":
        return struct.pack("<QQ", *pointers)
    return struct.pack("<i4xQ", scalar, *pointers)
