"""Modules, the code made of them, and launches of their kernels (runtime spec 4.5, 6, 8.2, 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..abi.cache import CacheKey, CacheStore, CacheTags, path_named
from ..abi.fatbin import Fatbin, KernelEntry
from ..abi.parameters import unpack
from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import Failure, LaunchFlag, Status, unsupported
from ..compilation.compiler import Compiler
from ..compilation.extents import named_dimensions, shapes_of
from ..graph.interpreter import RandomSource
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..mesh.engine import Signal
from ..mesh.memory import Region
from ..mesh.topology import kernel_duration, occupancy
from ..numerics.array import Array
from ..numerics.formats import DType, NumericsFailure, dtype, shown
from ..numerics.trees import Tree
from .contexts import Context, Fault
from .machine import INT, KERNELS_AT_ONCE, SIZE, UNSIGNED, Access, Machine, integer, invalid, required
from .streams import (
    Carried,
    GraphWork,
    Mesh,
    Rendezvous,
    Stream,
    Work,
    host_bytes,
    region_of,
    require_aligned,
    require_connected,
)

if TYPE_CHECKING:
    from ..compilation.executables import Executable

# Loaded modules and their kernels (runtime spec 4.5, 8.1, 8.2; AMB-RT-18, AMB-RT-35, AMB-RT-42, AMB-RT-43).


@dataclass(eq=False)
class LoadedModule:
    """A module of a context, and its executables by kernel, target, extents and policy."""

    handle: int
    context: Context
    fatbin: Fatbin
    executables: dict[tuple[object, ...], Executable] = field(default_factory=dict)
    kernels: dict[str, int] = field(default_factory=dict)
    """The handles of its kernels, by name."""

    def entry(self, name: str) -> KernelEntry | None:
        """Return the entry descriptor of a kernel, or None."""
        return next((kernel for kernel in self.fatbin.metadata.kernels if kernel.name == name), None)


@dataclass(eq=False)
class Kernel:
    """A kernel of a loaded module."""

    handle: int
    module: LoadedModule
    entry: KernelEntry

    @property
    def context(self) -> Context:
        """The context of its module."""
        return self.module.context


# Kernels made ready to run, in memory and in the directory TESS_CACHE_DIR (runtime spec 8.2; AMB-RT-22, AMB-RT-69).


@dataclass(eq=False)
class CodeCache:
    """The store of executables; finds or makes that of a launch, and counts hits and misses of the directory."""

    machine: Machine
    compiler: Compiler
    hits: int = 0
    misses: int = 0
    _stores: dict[str, CacheStore] = field(default_factory=dict)

    def store(self, context: Context) -> CacheStore | None:
        """Return the cache directory of a context, if its environment names one. Raises `Failure`."""
        directory = context.environment.cache_dir
        if directory is None:
            return None
        if directory not in self._stores:
            self._stores[directory] = CacheStore(path_named(directory))
        return self._stores[directory]

    def tags(self, policy: NumericsPolicy) -> CacheTags:
        """Return the tags under which results are valid now."""
        return CacheTags(self.machine.driver, self.machine.abi_hash, policy)

    def arch(self, *targets: str) -> tuple[str, ...]:
        """Return the architecture that results are for (RT-08.2-03)."""
        return (*targets, self.machine.revision) if self.machine.revision else targets

    def executable(
        self, module: LoadedModule, entry: KernelEntry, target: str, extents: Mapping[str, int], policy: NumericsPolicy
    ) -> Executable:
        """Return the executable of a kernel for a target and these extents, under a policy (RT-08.2-01, RT-08.2-06).

        Raises `Failure` with TESS_ERR_CACHE_CORRUPT, and as `executables_of` does.
        """
        key = (entry.name, target, tuple(sorted(extents.items())), policy)
        if key not in module.executables:
            module.executables[key] = self._made(module, entry, target, extents, policy)
        return module.executables[key]

    def _made(
        self, module: LoadedModule, entry: KernelEntry, target: str, extents: Mapping[str, int], policy: NumericsPolicy
    ) -> Executable:
        store = self.store(module.context)
        if store is None:
            return self.compiler.executable(module.fatbin, entry.name, target, extents)
        from ..compilation.executables import executable_from, specialise

        key = _key(module, entry, extents, target, self.arch(target))
        payload = store.get("binary", key, self.tags(policy), same_policy=bool(policy.deterministic))
        if payload is not None:
            self.hits += 1
        else:
            self.misses += 1
            payload = specialise(module.fatbin, entry.name, target, extents, self.compiler.text)
            store.put("binary", key, self.tags(policy), payload)
        return executable_from(payload, entry, target, self.compiler.text)


def _key(
    module: LoadedModule, entry: KernelEntry, extents: Mapping[str, int], target: str, arch: tuple[str, ...]
) -> CacheKey:
    """Return the key of kernel, shape, dtype and architecture; its name and its IR identify a kernel."""
    from ..compilation.executables import code_digest

    shapes = tuple((name, shape) for name, shape in shapes_of(entry, extents).items())
    dtypes = tuple((parameter.name, parameter.dtype or parameter.type) for parameter in entry.parameters)
    return CacheKey((entry.name, code_digest(module.fatbin, target)), shapes, dtypes, arch)


# Kernel launches: arguments are read from the buffer at once, the kernel runs later (runtime spec 4.5, 6, 10).


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
    """A pointer argument: the tensor at that address, which is None only for a tensor of no bytes."""

    region: Region | None
    dtype: DType
    shape: tuple[int, ...]
    bytes: int
    written: bool


@dataclass(eq=False, kw_only=True)
class LaunchWork(Work):
    """One launch: on every rank, the kernel reads its tensors, runs, and writes its results."""

    kind = "launch"
    function = "tessLaunch"

    executables: Mapping[str, Executable]
    """The executables, by target."""
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
        return [Carried(self.name, self.descriptor, self.policy)]

    @property
    def _source(self) -> RandomSource:
        """Return the source of the program's random numbers (RT-11-03, RT-11-04; AMB-RT-175)."""
        return RandomSource(self.descriptor.seed, self.descriptor.stream)

    def when_queued(self) -> None:
        """Look up the faults planned for this launch; a captured launch counts at its replay, not before."""
        self.faults = self.stream.mesh.context.faults.of_launch(self.name)

    def accesses(self) -> Sequence[Access]:
        return [
            (tensor.region, tensor.bytes, tensor.written)
            for tensor in self.tensors.values()
            if tensor.region is not None
        ]

    async def run(self, rank: int) -> None:
        """Run on one rank. Raises `Failure`.

        A kernel with collectives waits for its other ranks before it takes a place on its device. Kernels that held a
        place while they wait could keep one another from running.
        """
        mesh = self.stream.mesh
        device = mesh.device(rank)
        befalls = [fault for fault in self.faults if fault.rank in (None, rank)]
        kinds = {fault.kind for fault in befalls}
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
        if any(fault.kind == "kernel_hang" for fault in befalls):
            await self._hang(rank)
        slow = sum(fault.nanoseconds for fault in befalls) * 1000
        quick = bool(self.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY)
        duration = kernel_duration(mesh.device(rank).description, self.grid, self.block, quick) + slow
        if any(fault.kind == "kernel_trap" for fault in befalls):
            await self.spend(duration)
            raise self._failed(rank, "it trapped")
        written = self._executed(executable, rank, arguments) if results is None else results
        await self.spend(duration)
        for name, array in written.items():
            self._write(executable, name, rank, array.to_bits(), arguments[name])
        if self.flags & LaunchFlag.TESS_LAUNCH_PERSISTENT:
            await self._stay()

    def _arguments(self, executable: Executable, rank: int) -> dict[str, Array]:
        """Return the contents of the tensors; those that the kernel only writes may be uninitialised."""
        mesh, arguments = self.stream.mesh, dict(self.scalars)
        for name, tensor in self.tensors.items():
            if tensor.region is None:
                data = b""
            elif name in executable.reads:
                data = bytes(mesh.read(tensor.region, rank, tensor.bytes, self.name))
            else:
                data = mesh.peek(tensor.region, rank, tensor.bytes)
            arguments[name] = Array.from_bits(tensor.dtype, tensor.shape, data)
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
        """Write a tensor; of one that the kernel also reads, write only the changed elements (AMB-RT-96).

        An element also changes if its bytes are not the ones that encode its value, such as a bool of 5.
        """
        mesh, tensor = self.stream.mesh, self.tensors[name]
        if tensor.region is None:
            return
        if name not in executable.reads:
            mesh.write(tensor.region, rank, data)
            return
        size, read = tensor.dtype.storage_bytes, before.to_bits()
        changed = _differ(read, data, size)
        stored = bytes(mesh.peek(tensor.region, rank, tensor.bytes))
        if stored != read:
            changed |= _differ(stored, Array.from_bits(tensor.dtype, tensor.shape, stored).to_bits(), size)
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
    """Return a mask of the elements, each of `size` bytes, that differ."""
    ours, theirs = (np.frombuffer(array, np.uint8).reshape(-1, size) for array in (one, other))
    return np.asarray((ours != theirs).any(axis=1))


def _runs(marked: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of consecutive marked elements, as start and stop."""
    edges = (marked[1:] != marked[:-1]).nonzero()[0] + 1
    bounds = [0, *edges.tolist(), len(marked)]
    yield from ((start, stop) for start, stop in pairwise(bounds) if start < stop and marked[start])


# Arguments that tessLaunch reads and checks before queueing (runtime spec 4.5, 6, 10; AMB-RT-10, -16, -61, -85).


FUNCTION = "tessLaunch"


def flags_of(config: LaunchConfig) -> LaunchFlag:
    """Return the flags of a launch. Raises `Failure` for an undefined bit (AMB-RT-10)."""
    if not isinstance(config, LaunchConfig):
        raise invalid(f"cfg is {shown(config)}", "tessLaunchConfig")
    flags = integer("flags", config.flags, UNSIGNED)
    undefined = flags & ~int(~LaunchFlag(0))
    if undefined:
        raise invalid(f"flags is {flags:#x}, in which {undefined:#x} is not defined", "the bits 0x1 to 0xf")
    return LaunchFlag(flags)


def configuration_of(config: LaunchConfig) -> tuple[Extents, Extents, int]:
    """Return grid, block and shared bytes of a launch; the kernel checks the device's limits. Raises `Failure`."""
    grid, block = _three("grid", config.grid, 1), _three("block", config.block, 0)
    return grid, block, integer("shmemBytes", config.shmemBytes, SIZE)


def _three(name: str, value: Any, least: int) -> Extents:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise invalid(f"{name} is {shown(value)}", "three numbers")
    x, y, z = (integer(f"{name}[{i}]", number, (least, INT[1])) for i, number in enumerate(value))
    return x, y, z


def require_targets(mesh: Mesh, targets: tuple[str, ...]) -> None:
    """Require a target for every device of a mesh. Raises `Failure` with TESS_ERR_ARCH_MISMATCH (RT-19.A-05)."""
    for name in mesh.targets:
        if name not in targets:
            subject = f"a module for {', '.join(targets) or 'no target'} on a mesh with a device {name}"
            raise Failure(Status.TESS_ERR_ARCH_MISMATCH, "", subject, f"a module with code for {name}")


def require_order(kernel: Kernel, mesh: Mesh, order: Tree | None) -> None:
    """Require that a kernel adds in the order of its descriptor, or adds nothing (RT-11-02, AMB-RT-78).

    Raises `Failure` with TESS_ERR_UNSUPPORTED for one that was lowered in another order.
    """
    if order is None:
        return
    from ..compilation.executables import reduction_orders  # imports the whole compiler

    for target in mesh.targets:
        own = reduction_orders(kernel.module.fatbin, kernel.entry.name, target)
        if own - {order}:
            subject = f"kernel {kernel.entry.name}, which adds in the order {', '.join(sorted(map(str, own)))}"
            raise unsupported("", subject, f"the order of the descriptor, {order}")


def scalars_of(entry: KernelEntry, buffer: bytes) -> tuple[Mapping[str, int], Mapping[str, Array]]:
    """Return pointers and scalars of a parameter buffer, by name. Raises `Failure` for a buffer that is too short."""
    values = unpack(entry.layout, buffer)
    pointers: dict[str, int] = {}
    scalars: dict[str, Array] = {}
    layout = entry.layout
    for parameter, value, offset, size in zip(entry.parameters, values, layout.offsets, layout.sizes, strict=True):
        if parameter.type == "ptr":
            pointers[parameter.name] = value  # type: ignore[assignment]  # a pointer's value is a whole number
        else:
            raw = bytes([bool(value)]) if parameter.type == "bool" else buffer[offset : offset + size]
            scalars[parameter.name] = Array.from_bits(dtype(parameter.type), (), raw)
    return pointers, scalars


def extents_of(entry: KernelEntry, scalars: Mapping[str, Array]) -> dict[str, int]:
    """Return named dimensions' extents from the integer parameters so named (AMB-RT-85). Raises `Failure`."""
    extents = {name: int(scalars[name].values) for name in named_dimensions(entry) if name in scalars}
    for name, extent in extents.items():
        if extent < 0:
            raise invalid(f"{name}, the extent of a dimension, is {extent}", "at least 0")
    return extents


def argument_bytes(kernel: Kernel, buffer: bytes | int | None, size: int, stream: Stream) -> bytes:
    """Return the parameter buffer of a launch, up to the end of its last argument. Raises `Failure`."""
    count = integer("argSize", size, SIZE)
    needed = kernel.entry.layout.end_of_last_argument
    if count < needed:
        allowed = f"at least {needed}, where the last argument of {kernel.entry.name} ends"
        raise invalid(f"argSize is {count}", allowed)
    if needed == 0:
        return b""
    memory = stream.mesh.machine.memory
    return host_bytes(memory, FUNCTION, "argBuffer", required("argBuffer", buffer), needed, "argSize")


def tensors_of(
    entry: KernelEntry, pointers: Mapping[str, int], extents: Mapping[str, int], stream: Stream
) -> dict[str, Tensor]:
    """Return the tensors behind the pointers. Raises `Failure` for a pointer that is NULL, misaligned or too short."""
    shapes = shapes_of(entry, extents)
    tensors: dict[str, Tensor] = {}
    for parameter in entry.parameters:
        if parameter.type != "ptr":
            continue
        argument, pointer = f"argument {parameter.name}", pointers[parameter.name]
        if parameter.dtype is None:
            tensors[parameter.name] = _untyped(argument, pointer, parameter.written, stream)
            continue
        element, shape = dtype(parameter.dtype), shapes[parameter.name]
        size = prod(shape) * element.storage_bytes
        if size == 0 and pointer == 0:  # nothing is read or written there (AMB-RT-172)
            tensors[parameter.name] = Tensor(None, element, shape, 0, parameter.written)
            continue
        required(argument, pointer)
        require_aligned(argument, pointer, element)
        region = region_of(FUNCTION, argument, pointer, size, "device", stream, parameter.written)
        tensors[parameter.name] = Tensor(region, element, shape, size, parameter.written)
    return tensors


def _untyped(argument: str, pointer: int, written: bool, stream: Stream) -> Tensor:
    """Return the bytes from a pointer to the end of its allocation, as a tensor."""
    region = region_of(FUNCTION, argument, required(argument, pointer), 1, "device", stream)
    size = region.allocation.bytes - region.offset
    return Tensor(region, dtype("int8"), (size,), size, written)


def require_together(kernel: Kernel, mesh: Mesh, stream: Stream) -> None:
    """Require that kernel, mesh and stream belong together. Raises `Failure`."""
    stream.require_of(mesh)
    if kernel.context is not mesh.context:
        subject = f"a kernel of context {kernel.context.handle} on a mesh of context {mesh.context.handle}"
        raise invalid(subject, "a kernel and a mesh of one context")


def require_place(stream: Stream, streams: Sequence[Stream]) -> None:
    """Require a free place for a persistent kernel on every device of a stream, beside one per stream (AMB-RT-65).

    Raises `Failure`.
    """
    others = [queue for queue in streams if queue is not stream and _may_stay(queue)]
    for device in stream.mesh.devices:
        count = sum(device in other.mesh.devices for other in others)
        if count >= KERNELS_AT_ONCE - 1:
            subject = f"one more stream with persistent kernels beside {count} on device {device}"
            raise unsupported("", subject, f"at most {KERNELS_AT_ONCE - 1} at a time")


def _may_stay(stream: Stream) -> bool:
    """True if a stream has persistent kernels that have not ended."""
    works = [unit for work in stream.queued for unit in (work.works if isinstance(work, GraphWork) else (work,))]
    return any(isinstance(work, LaunchWork) and work.flags & LaunchFlag.TESS_LAUNCH_PERSISTENT for work in works)
