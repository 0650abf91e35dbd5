"""Kernel launches: arguments are read from the buffer at once, the kernel runs later (runtime spec 4.5, 6, 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..abi.descriptor import Descriptor
from ..abi.enumerations import LaunchFlag
from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status
from ..graph.execution import RandomSource
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..mesh.allocations import Region
from ..mesh.costs import kernel_duration, occupancy
from ..mesh.engine import Signal
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from ..numerics.formats import DType
from .faults import Fault
from .rendezvous import Rendezvous, require_connected
from .work import Access, Carried, Work

if TYPE_CHECKING:
    from ..compilation.executable import Executable

__all__ = ["LaunchConfig", "LaunchWork", "Tensor"]

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchConfig:
    """tessLaunchConfig (runtime spec 4.5)."""

    grid: Extents
    block: Extents = (0, 0, 0)
    shmemBytes: int = 0  # noqa: N815, the name of the C member
    flags: int = 0


@dataclass(frozen=True)
class Tensor:
    """A pointer argument: the tensor at that address; a tensor of no bytes may have none."""

    region: Region | None
    dtype: DType
    shape: tuple[int, ...]
    bytes: int
    written: bool


@dataclass(eq=False, kw_only=True)
class LaunchWork(Work):
    """One launch: on every rank the kernel reads its tensors, runs, and writes its results."""

    kind = "launch"
    function = "tessLaunch"

    executables: Mapping[str, Executable]
    """By target."""
    tensors: Mapping[str, Tensor]
    scalars: Mapping[str, Array]
    grid: Extents
    block: Extents
    flags: LaunchFlag
    descriptor: Descriptor
    policy: NumericsPolicy
    faults: Sequence[Fault] = field(default=(), init=False)
    rendezvous: Rendezvous | None = field(default=None, init=False)
    results: dict[int, Mapping[str, Array]] = field(default_factory=dict, init=False)

    def carries(self) -> Sequence[Carried]:
        """The descriptor and policy of the launch."""
        return [Carried(self.name, self.descriptor, self.policy)]

    @property
    def _source(self) -> RandomSource:
        """Where the program's random numbers begin (RT-11-03, RT-11-04; AMB-RT-175)."""
        return RandomSource(self.descriptor.seed, self.descriptor.stream)

    def when_queued(self) -> None:
        """Look up the faults planned for this launch; a captured launch counts when it is replayed, not before."""
        self.faults = self.stream.mesh.context.faults.of_launch(self.name)

    def accesses(self) -> Sequence[Access]:
        """The memory that its tensors cover."""
        return [(each.region, each.bytes, each.written) for each in self.tensors.values() if each.region is not None]

    async def run(self, rank: int) -> None:
        """Run on one rank. Raises `Failure`.

        A kernel with collectives waits for its other ranks before it takes a place on its device: kernels that held
        one while they wait could keep one another from running.
        """
        mesh = self.stream.mesh
        device = mesh.device(rank)
        befalls = [each for each in self.faults if each.rank in (None, rank)]
        kinds = {each.kind for each in befalls}
        executable = self.executables[device.description.target]
        arguments, results = None, None
        if executable.needs_mesh and not kinds & {"kernel_trap", "kernel_hang"}:
            arguments = self._arguments(executable, rank)
            results = await self._run_on_mesh(executable, rank, arguments)
        await device.kernels.acquire(self.stream.priority)
        start = mesh.machine.engine.now
        resident = rank == 0 and bool(self.flags & LaunchFlag.TESS_LAUNCH_PERSISTENT)
        if resident:
            mesh.resident.append(self.name)
        try:
            arguments = arguments or self._arguments(executable, rank)
            await self._computed(rank, befalls, arguments, results)
        finally:
            device.kernels.release()
            if resident:
                mesh.resident.remove(self.name)
        busy = occupancy(device.description, self.grid, self.block)
        self.profile(rank, start, occupancy=busy)

    async def _computed(
        self, rank: int, befalls: Sequence[Fault], arguments: Mapping[str, Array], results: Mapping[str, Array] | None
    ) -> None:
        """Compute, spend the kernel's duration and write the results; a persistent kernel then stays."""
        mesh = self.stream.mesh
        executable = self.executables[mesh.device(rank).description.target]
        if any(each.kind == "kernel_hang" for each in befalls):
            await self._hang(rank)
        slow = sum(each.nanoseconds for each in befalls) * 1000
        quick = bool(self.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY)
        duration = kernel_duration(mesh.device(rank).description, self.grid, self.block, quick) + slow
        if any(each.kind == "kernel_trap" for each in befalls):
            await self.spend(duration)
            raise self._failed(rank, "it trapped")
        written = self._executed(executable, rank, arguments) if results is None else results
        await self.spend(duration)
        for name, array in written.items():
            self._write(executable, name, rank, array.to_bits(), arguments[name])
        if self.flags & LaunchFlag.TESS_LAUNCH_PERSISTENT:
            await self._stay()

    def _arguments(self, executable: Executable, rank: int) -> dict[str, Array]:
        """The contents of the tensors; those that the kernel only writes may be uninitialised."""
        mesh, arguments = self.stream.mesh, dict(self.scalars)
        for name, each in self.tensors.items():
            if each.region is None:
                data = b""
            elif name in executable.reads:
                data = bytes(mesh.read(each.region, rank, each.bytes, self.name))
            else:
                data = mesh.peek(each.region, rank, each.bytes)
            arguments[name] = Array.from_bits(each.dtype, each.shape, data)
        return arguments

    def _executed(self, executable: Executable, rank: int, arguments: Mapping[str, Array]) -> Mapping[str, Array]:
        try:
            return executable.run(arguments, self.grid, self.block, self._source)
        except (Rejection, UnsupportedConstruct, NumericsFailure) as problem:
            raise self._failed(rank, str(problem)) from None

    async def _hang(self, rank: int) -> None:
        """Never end."""
        never = Signal(self.stream.mesh.machine.engine, f"the end of {self.name}")
        await self.wait_for(never, 1, lambda: self._failed(rank, "it never ends"))

    def _write(self, executable: Executable, name: str, rank: int, data: bytes, before: Array) -> None:
        """Write a tensor; of one that the kernel also reads, only the elements that changed (AMB-RT-96).

        Those change too whose bytes are not the ones that their value is written as, such as a bool of 5.
        """
        mesh, tensor = self.stream.mesh, self.tensors[name]
        if tensor.region is None:
            return
        if name not in executable.reads:
            mesh.write(tensor.region, rank, data)
            return
        size, read = tensor.dtype.storage_bytes, before.to_bits()
        changed = _differ(read, data, size)
        held = bytes(mesh.peek(tensor.region, rank, tensor.bytes))
        if held != read:
            changed |= _differ(held, Array.from_bits(tensor.dtype, tensor.shape, held).to_bits(), size)
        for start, stop in _runs(changed):
            part = Region(tensor.region.allocation, tensor.region.offset + start * size)
            mesh.write(part, rank, data[start * size : stop * size])

    async def _stay(self) -> None:
        """Stay resident until the stream is synchronized or destroyed (AMB-RT-65)."""
        if self.number <= self.stream.ended:
            return
        ended = Signal(self.stream.mesh.machine.engine, f"the end of the persistent {self.name}")
        self.stream.residents.append(ended)
        await self.wait_for(ended, 0, None)

    async def _run_on_mesh(self, executable: Executable, rank: int, arguments: dict[str, Array]) -> Mapping[str, Array]:
        """Run a kernel with collectives: the last rank to arrive runs it for all."""
        if self.rendezvous is None:
            self.rendezvous = Rendezvous.of(self, f"kernel {self.name}")

        def complete(contributions: Mapping[int, dict[str, Array]]) -> tuple[int, Callable[[], None]]:
            try:
                require_connected(self, executable.groups_met())
                self.results.update(
                    enumerate(executable.run_on_mesh(list(contributions.values()), source=self._source))
                )
            except (Rejection, UnsupportedConstruct, NumericsFailure) as problem:
                raise self._failed(rank, str(problem)) from None
            return 0, lambda: None

        await self.rendezvous.arrive(self, rank, arguments, complete)
        return self.results[rank]

    def _failed(self, rank: int, why: str) -> Failure:
        problem = f"kernel {self.name} failed on rank {rank}: {why}"
        return Failure(Status.TESS_ERR_LAUNCH_FAILED, self.function, problem, "a kernel that runs to its end")


def _differ(one: bytes, other: bytes, size: int) -> npt.NDArray[np.bool_]:
    """Which elements of so many bytes differ."""
    ours, theirs = (np.frombuffer(each, np.uint8).reshape(-1, size) for each in (one, other))
    return np.asarray((ours != theirs).any(axis=1))


def _runs(marked: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The ranges of consecutive marked elements, as start and stop."""
    edges = (marked[1:] != marked[:-1]).nonzero()[0] + 1
    bounds = [0, *edges.tolist(), len(marked)]
    yield from ((start, stop) for start, stop in pairwise(bounds) if start < stop and marked[start])
