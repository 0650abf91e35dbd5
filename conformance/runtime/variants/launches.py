"""Launches whose grids, blocks, memory, arguments and flags are taken otherwise (runtime spec 4.5 and 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from math import prod
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.abi.status import LaunchFlag, invalid
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.compilation.executables import Executable, Extents
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork, Tensor
from tessera_reference.runtime.state import State

REACH = (
    "runtime/captured*",
    "runtime/graph*",
    "runtime/kernel-arguments/*",
    "runtime/launch*",
    "runtime/persistent*",
    "runtime/sample-program/*",
)
"""The cases of launches."""
INVALID, UNSUPPORTED = "TESS_ERR_INVALID_VALUE", "TESS_ERR_UNSUPPORTED"
CAPTURED_AND_PERSISTENT = 0b110
REQUIRE = Executable.require_configuration
QUEUE, EXECUTED, TENSORS = calls.queue_launch, LaunchWork._executed, calls.tensors_of


@varies("AMB-RT-08", "takes a block of zeros or one without any", *REACH)
class WholeBlocks(ReferenceAdapter):
    """The compiler chooses all extents of a block, or none."""

    def runtime_tessLaunch(self, *, cfg: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Launch."""
        if any(cfg["block"]) and not all(cfg["block"]):
            raise Refusal(INVALID, "call", "tessLaunch: block")
        return super().runtime_tessLaunch(cfg=cfg, **arguments)


@varies("AMB-RT-145", "captures no persistent launch", *REACH)
class NoPersistentCapture(ReferenceAdapter):
    """Refuses to replay work that stays resident."""

    def runtime_tessLaunch(self, *, cfg: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Launch."""
        if cfg["flags"] <= 0b1111 and cfg["flags"] & CAPTURED_AND_PERSISTENT == CAPTURED_AND_PERSISTENT:
            raise Refusal(UNSUPPORTED, "call", "tessLaunch: flags")
        return super().runtime_tessLaunch(cfg=cfg, **arguments)


def in_place_of_the_declaration(executable: Executable, grid: Extents, block: Extents, shared_bytes: int = 0) -> None:
    """A size that is stated is all the shared memory that there is."""
    if 0 < shared_bytes < executable.entry.shared_bytes:
        raise invalid("tessLaunch", f"shmemBytes is {shared_bytes}", f"at least {executable.entry.shared_bytes}")
    REQUIRE(executable, grid, block, max(0, shared_bytes - executable.entry.shared_bytes))


def apart(*arguments: Any) -> Mapping[str, Tensor]:
    """The tensors of a launch, none of which lies over another that the kernel writes."""
    tensors = TENSORS(*arguments)
    placed = [tensor for tensor in tensors.values() if tensor.region is not None]
    for one, other in permutations(placed, 2):
        overlap = (
            one.region.offset < other.region.offset + other.bytes
            and other.region.offset < one.region.offset + one.bytes
        )
        if one.written and one.region.allocation is other.region.allocation and overlap:
            raise invalid("tessLaunch", "a tensor that lies over another", "tensors that lie apart")
    return tensors


APART = altered(
    "AMB-RT-95",
    "refuses a launch whose tensors lie over each other",
    ("runtime/kernel-arguments/*", "runtime/captured*", "runtime/launches/*", "abi/kernel-buffers/*"),
    ReferenceAdapter,
    (calls, "tensors_of", apart),
    name="tensors_apart",
)

OF_ANY_CONTEXT = altered(
    "AMB-RT-187",
    "runs kernels of one context on meshes of another",
    ("runtime/launches/a-kernel-*",),
    ReferenceAdapter,
    (calls, "require_together", lambda kernel, mesh, stream: stream.require_of(mesh)),
    name="kernels_of_any_context",
)

SHARED = altered(
    "AMB-RT-09",
    "takes shmemBytes in the place of what a kernel declares",
    REACH,
    ReferenceAdapter,
    (Executable, "require_configuration", in_place_of_the_declaration),
    name="stated_shared_memory",
)


@varies("AMB-RT-72", "reads the argument buffer when the stream is waited for", *REACH)
class LateArguments(ReferenceAdapter):
    """Launches whose arguments lie in host memory are queued by the next copy or synchronization."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[dict[str, Any]] = []

    def runtime_tessLaunch(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Defer the launch if its arguments have an address."""
        if isinstance(arguments["argBuffer"], int) and not arguments["cfg"]["flags"] & LaunchFlag.TESS_LAUNCH_CAPTURE:
            self.late.append(arguments)
            return {}
        return super().runtime_tessLaunch(**arguments)

    def runtime_tessMemcpyAsync(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Queue deferred launches first."""
        late, self.late = self.late, []
        for argument in late:
            super().runtime_tessLaunch(**argument)
        return super().runtime_tessMemcpyAsync(**arguments)

    def session_reset(self) -> dict[str, Any]:
        """Drop deferred launches."""
        self.late = []
        return super().session_reset()


@varies("AMB-RT-72", "reads the arguments of a captured launch when it is replayed", *REACH)
class LateCapturedArguments(LateArguments):
    """A captured launch has the arguments that its buffer holds at the first replay."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[dict[str, Any]] = []

    def runtime_tessLaunch(self, *, cfg: Mapping[str, Any], argBuffer: Any, **launch: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Keep a captured launch whose arguments are a pointer."""
        if cfg["flags"] & LaunchFlag.TESS_LAUNCH_CAPTURE and isinstance(argBuffer, int):
            self.kept.append({"cfg": cfg, "argBuffer": argBuffer, **launch})
            return {}
        return super().runtime_tessLaunch(cfg=cfg, argBuffer=argBuffer, **launch)

    def runtime_tessxGraphInstantiate(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """A graph of which nothing is known yet."""
        return {"graph": 1} if self.kept else super().runtime_tessxGraphInstantiate(stream=stream)

    def runtime_tessxGraphLaunch(self, *, graph: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Launch what was kept."""
        if graph != 1 or not self.kept:
            return super().runtime_tessxGraphLaunch(graph=graph, stream=stream)
        for argument in self.kept:
            ReferenceAdapter.runtime_tessLaunch(self, **{**argument, "cfg": {**argument["cfg"], "flags": 0}})
        return {}

    def session_reset(self) -> dict[str, Any]:
        """Drop what was kept."""
        self.kept = []
        return super().session_reset()


def executed_too(state: State, work: LaunchWork) -> None:
    """Capture a launch and queue it too."""
    QUEUE(state, work)
    if work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE:
        work.stream.enqueue(work.on(work.stream))


EXECUTED_TOO = altered(
    "AMB-RT-64",
    "runs a captured launch at once, too",
    REACH,
    ReferenceAdapter,
    (calls, "queue_launch", executed_too),
    name="capture_and_execute",
)

SCALE, BLOCK = "scale", 256
"""A kernel of more elements than one block computes in the variants of grids."""


def of_the_compiler(executable: Executable, grid: Extents, block: Extents, shared_bytes: int = 0) -> None:
    """The kernel has two blocks."""
    if executable.entry.name == SCALE and prod(grid) != 2:
        raise invalid("tessLaunch", f"{prod(grid)} blocks", "2")
    REQUIRE(executable, grid, block, shared_bytes)


def by_its_blocks(
    work: LaunchWork, executable: Executable, rank: int, arguments: Mapping[str, Array]
) -> Mapping[str, Array]:
    """Each block computes its elements; those of blocks that are not launched stay."""
    results = EXECUTED(work, executable, rank, arguments)
    if work.name != SCALE:
        return results
    left = {}
    for name, array in results.items():
        values = array.values.copy().ravel()
        values[prod(work.grid) * BLOCK :] = arguments[name].values.ravel()[prod(work.grid) * BLOCK :]
        left[name] = replace(array, values=values.reshape(array.values.shape))
    return left


GRIDS = [
    altered(
        "AMB-RT-84",
        "launches a kernel with the grid of its compiler alone",
        REACH,
        ReferenceAdapter,
        (Executable, "require_configuration", of_the_compiler),
        name="own_grid",
    ),
    altered(
        "AMB-RT-84",
        "leaves out what blocks beyond the grid compute",
        REACH,
        ReferenceAdapter,
        (LaunchWork, "_executed", by_its_blocks),
        name="blocks_left_out",
    ),
]

COMPILING = (*REACH, "runtime/cache*", "runtime/modules/*", "runtime/trace/*", "abi/module-images/*")
NAMED = re.compile(r"\btensor<(\d+x)*[A-Z]\w*x")


@varies("AMB-RT-85", "compiles kernels of static shapes alone", *COMPILING)
class StaticShapes(ReferenceAdapter):
    """Every extent stands in the program."""

    def abi_compile(self, *, source: Any, **arguments: Any) -> dict[str, Any]:
        """Compile."""
        if isinstance(source, str) and NAMED.search(source):
            raise Refusal(UNSUPPORTED, "call", "named dimensions")
        return super().abi_compile(source=source, **arguments)
