"""Kernels of a loaded module, ready to run for one target (runtime spec 4.5, 6, 8.2; language spec 4, 8.1)."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import TypeAlias

import numpy as np

from ..abi.fatbin import Explanation, Fatbin, KernelEntry
from ..abi.status import Failure, Status, invalid
from ..graph.execution import execute, execute_on_mesh, groups_met, meets, mesh_in_force
from ..graph.interpreter import FROM_ZERO, InputMismatch, RandomSource, describe, reachable
from ..ir.diagnostics import Diagnostic, Rejection
from ..ir.operation import Function, Instruction, Module
from ..ir.targets import Target, UnknownTarget, target_of
from ..ir.types import Mesh, Pointer, Scalar, Tensor, Value
from ..levels.execution import Level, for_shapes, lower
from ..levels.texts import read_at
from ..numerics.array import Array
from ..numerics.formats import DType, NumericsFailure
from ..numerics.trees import Tree
from ..tile.interpreter import run_kernel
from ..tile.verifier import MOST_BLOCKS
from .extents import named_dimensions, refusal_at, shapes_of
from .kernels import BYTE, Offered, accessed_dtypes, canonical_text, offered

# The interface of executable kernels, and the launches that they refuse (AMB-RT-08, AMB-RT-61).


Extents: TypeAlias = tuple[int, int, int]
Arguments: TypeAlias = Mapping[str, Array]
"""An array for each parameter of the entry, by name, including scalars."""

ONE: Extents = (1, 1, 1)
OPEN: Extents = (0, 0, 0)
"""A block of the extents that the compiler chooses."""
LARGEST_GRID = ((1 << 31) - 1,) * 3


@dataclass(frozen=True, eq=False)
class Executable(ABC):
    """A kernel of a module for one target. Its results depend on its arguments only, never on the time of its run."""

    entry: KernelEntry
    target: Target

    @property
    def needs_mesh(self) -> bool:
        """True if it communicates with the other ranks of a mesh, so that `run_on_mesh` must run it."""
        return False

    def groups_met(self) -> Sequence[tuple[int, ...]]:
        """Return the groups of ranks of its collectives; none if it needs no mesh."""
        return ()

    @property
    def most_blocks(self) -> Extents:
        """The largest grid along x, y and z; C has no larger int."""
        return LARGEST_GRID

    @property
    def reads(self) -> frozenset[str]:
        """The pointer parameters whose memory it is known to read: those that it does not write."""
        pointers = [parameter for parameter in self.entry.parameters if parameter.type == "ptr"]
        return frozenset(pointer.name for pointer in pointers if not pointer.written)

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The meshes that the kernel's module declares, by name."""
        return {}

    @abstractmethod
    def run(
        self, arguments: Arguments, grid: Extents = ONE, block: Extents = OPEN, source: RandomSource = FROM_ZERO
    ) -> dict[str, Array]:
        """Run one launch; return the arrays of the written pointer parameters afterwards, by name (RT-10.2-02).

        If a kernel needs a mesh, every rank has these arguments, and the arrays are rank 0's. Raises `Rejection` with
        phase execute for what fails while it runs, `UnsupportedConstruct` for what goes beyond this reference, and
        `Failure` with TESS_ERR_INVALID_VALUE for a configuration or arguments that do not fit the entry.
        """

    def run_on_mesh(
        self, arguments: Sequence[Arguments], mesh: str | None = None, source: RandomSource = FROM_ZERO
    ) -> tuple[dict[str, Array], ...]:
        """Run one launch on every rank of a mesh, arguments and arrays by rank. Raises as `run` does."""
        return tuple(self.run(argument, source=source) for argument in arguments)

    def block_of(self, block: Extents) -> Extents:
        """Return the threads of a block, with the compiler's choice for components of zero (AMB-RT-08)."""
        x, y, z = (requested or chosen for requested, chosen in zip(block, self.entry.block, strict=True))
        return x, y, z

    def require_configuration(self, grid: Extents, block: Extents, shared_bytes: int = 0) -> None:
        """Refuse faults that a launch's arguments already show (AMB-RT-61), `shared_bytes` being the hint.

        Raises `Failure` with TESS_ERR_INVALID_VALUE.
        """
        for axis, blocks, most in zip("xyz", grid, self.most_blocks, strict=True):
            if not 1 <= blocks <= most:
                raise invalid("tessLaunch", f"{blocks} blocks along {axis}", f"1 to {most}")
        if min(block) < 0:
            raise invalid("tessLaunch", f"a block of {'x'.join(map(str, block))} threads", "extents of at least 0")
        threads, most = prod(self.block_of(block)), self.target.threads_per_block
        if threads > most:
            raise invalid("tessLaunch", f"a block of {threads} threads", f"at most {most} on {self.target.name}")
        shared, most = self.entry.shared_bytes + shared_bytes, self.target.shared_bytes
        if shared_bytes < 0 or shared > most:
            subject = f"shmemBytes is {shared_bytes}, beside the {self.entry.shared_bytes} bytes of the kernel"
            raise invalid("tessLaunch", subject, f"at least 0, and {most} in all on {self.target.name}")

    def in_order(self, arguments: Arguments) -> list[Array]:
        """Return the arguments in the order of the parameters. Raises `Failure` for a missing or unexpected one."""
        names = [parameter.name for parameter in self.entry.parameters]
        if arguments.keys() != set(names):
            subject = f"arguments {', '.join(arguments) or 'none'} for kernel {self.entry.name}"
            raise invalid("tessLaunch", subject, ", ".join(names) or "none")
        return [arguments[name] for name in names]


def held_as(parameter: Value, array: Array) -> Array:
    """Return an argument in the kernel's dtype: a tf32 scalar of the kernel arrives as fp32 (AMB-RT-28)."""
    type_ = parameter.type
    if isinstance(type_, Scalar) and type_.dtype != array.dtype and type_.dtype.storage == array.dtype:
        return Array(type_.dtype, array.values)
    return array


# Tile kernels: those of Tile or Target IR, which a host launches with a grid and blocks of its own (RT-04.5).


@dataclass(frozen=True, eq=False)
class TileExecutable(Executable):
    """A kernel of Target IR. An opaque pointer receives its bytes as int8; the kernel's accesses give their dtype."""

    kernel: Function

    @property
    def most_blocks(self) -> Extents:
        """The largest grid that the device takes (AMB-LANG-203)."""
        return MOST_BLOCKS

    def run(
        self, arguments: Arguments, grid: Extents = ONE, block: Extents = OPEN, source: RandomSource = FROM_ZERO
    ) -> dict[str, Array]:
        self.require_configuration(grid, block)
        pairs = zip(self.kernel.parameters, self.in_order(arguments), strict=True)
        values = [self._held(parameter, array) for parameter, array in pairs]
        if self.kernel.body.instructions:
            values = self._run(values, grid, self.block_of(block))
        after = zip(self.entry.parameters, values, strict=True)
        return {own.name: as_bytes(array, arguments[own.name]) for own, array in after if own.written}

    def _run(self, values: list[Array], grid: Extents, block: Extents) -> list[Array]:
        """Return the arguments after the kernel has run. Raises `Rejection`."""
        try:
            buffers = run_kernel(configured(self.kernel, grid, block), values, self.target)
        except NumericsFailure as failure:
            raise Rejection([_failed(self.kernel, failure)]) from failure
        return [*buffers, *values[len(buffers) :]]  # scalars follow buffers (LANG-16-02)

    def _held(self, parameter: Value, array: Array) -> Array:
        """Return an argument as the kernel takes it. Raises `Failure` for one that does not fit."""
        type_ = parameter.type
        if isinstance(type_, Pointer):
            entry = self.entry.parameters[self.kernel.parameters.index(parameter)]
            if entry.dtype is not None:  # the table has the tensor's type for a kernel of Tile IR
                _require(parameter.name, array, entry.dtype, entry.shape)
                return array
            return of_bytes(array, self._accessed.get(parameter, BYTE))
        assert isinstance(type_, Scalar), "a kernel of Target IR takes pointers and scalars"
        value = held_as(parameter, array)
        _require(parameter.name, value, type_.dtype.name, ())
        return value

    @cached_property
    def _accessed(self) -> dict[Value, DType]:
        return accessed_dtypes(self.kernel)


@lru_cache(maxsize=256)
def configured(kernel: Function, grid: Extents, block: Extents) -> Function:
    """Return the kernel with the grid and the block of a launch; the same object for the same launch."""
    return replace(kernel, attributes={**kernel.attributes, "grid": grid, "block": block})


def of_bytes(array: Array, dtype: DType) -> Array:
    """Return the bytes of an opaque pointer as whole elements of a dtype; an array of another dtype stays."""
    if array.dtype != BYTE or dtype == BYTE:
        return array
    data = array.to_bits()
    count = len(data) // dtype.storage_bytes
    return Array.from_bits(dtype, (count,), data[: count * dtype.storage_bytes])


def as_bytes(after: Array, array: Array) -> Array:
    """Return a kernel's results as the bytes of its argument, where the bytes of unchanged elements stay.

    An element whose bits no kernel would write, such as one of many NaN, stays as it was unless it is written.
    """
    if after.dtype == array.dtype:
        return after
    size = after.dtype.storage_bytes
    before = np.frombuffer(array.to_bits(), np.uint8)
    elements = before[: before.size // size * size].reshape(-1, size)
    old = np.frombuffer(of_bytes(array, after.dtype).to_bits(), np.uint8).reshape(-1, size)
    new = np.frombuffer(after.to_bits(), np.uint8).reshape(-1, size)
    unchanged = (old == new).all(axis=1)
    merged = np.where(unchanged[:, None], elements, new).tobytes() + before[elements.size :].tobytes()
    return Array.from_bits(BYTE, array.shape, merged)


def _require(name: str, array: Array, dtype: str, shape: tuple[int | str, ...] | None) -> None:
    if (array.dtype.name, array.shape) != (dtype, shape):
        raise invalid("tessLaunch", f"argument {name} is {describe(array)}", f"{dtype} of shape {shape}")


def _failed(kernel: Function, failure: NumericsFailure) -> Diagnostic:
    """Return the diagnostic of a launch that fails as a whole, such as one with buffers too large for this machine."""
    place = kernel.location
    return Diagnostic("tile", "execute", f"@{kernel.name}: {failure}", place.span, place.filename)


# Programs: kernels of the language, whose host function launches kernels of the device (language spec 4, 8.1).
#
# Schedule IR determines how a program is tiled, not the grid of a launch: its blocks share the work, and any number of
# them leaves the whole result. So neither grid nor block reaches the host function.


@dataclass(frozen=True, eq=False)
class ProgramExecutable(Executable):
    """A program: a host function with its module at Target IR."""

    module: Module
    function: Function

    @cached_property
    def needs_mesh(self) -> bool:
        """True if it may execute a collective."""
        return meets(self.module, self.function)

    def groups_met(self) -> Sequence[tuple[int, ...]]:
        """Return the groups along its collectives' axes. Raises `Rejection` where it is unclear which mesh runs it."""
        return groups_met(self.module, self.function) if self.needs_mesh else ()

    @cached_property
    def reads(self) -> frozenset[str]:
        """The tensors that an instruction of the host function takes."""
        used = {value for instruction in self.function.body.walk() for value in instruction.operands}
        tensors = (parameter for parameter in self.function.parameters if isinstance(parameter.type, Tensor))
        return frozenset(tensor.name for tensor in tensors if tensor in used)

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        return self.module.meshes

    def run(
        self, arguments: Arguments, grid: Extents = ONE, block: Extents = OPEN, source: RandomSource = FROM_ZERO
    ) -> dict[str, Array]:
        self.require_configuration(grid, block)
        try:
            return self._written(execute(self.module, self.function.name, self._inputs(arguments), source=source))
        except InputMismatch as mismatch:
            raise invalid("tessLaunch", str(mismatch), f"arguments of kernel {self.entry.name}") from None

    def run_on_mesh(
        self, arguments: Sequence[Arguments], mesh: str | None = None, source: RandomSource = FROM_ZERO
    ) -> tuple[dict[str, Array], ...]:
        """Run the host function on every rank, row-major over the mesh; collectives synchronize them.

        Raises as `run` does, and `Rejection` where ranks disagree, or a mesh is not the module's.
        """
        inputs = [self._inputs(argument) for argument in arguments]
        if not self.needs_mesh:
            return super().run_on_mesh(arguments, mesh, source)
        try:
            self._require_ranks(len(inputs), mesh_in_force(self.module, self.function, mesh))
            every = execute_on_mesh(self.module, self.function.name, inputs, mesh, source=source)
        except InputMismatch as mismatch:
            raise invalid("tessLaunch", str(mismatch), f"arguments of kernel {self.entry.name}") from None
        return tuple(map(self._written, every))

    def _require_ranks(self, ranks_of_mesh: int, mesh: str) -> None:
        """Refuse to run on another number of ranks than the program's mesh has (AMB-LANG-108). Raises `Rejection`."""
        ranks, place = self.module.meshes[mesh].size, self.function.location
        if ranks_of_mesh != ranks:
            message = f"@{self.function.name} runs on mesh {mesh} of {ranks} ranks, not on {ranks_of_mesh}"
            expected = f"a mesh of {ranks} ranks"
            refusal = refusal_at(place, "distributed", message, expected, "AMB-LANG-108", "launch it on another mesh")
            raise Rejection([replace(refusal, phase="execute")])

    def _inputs(self, arguments: Arguments) -> dict[str, Array]:
        pairs = zip(self.function.parameters, self.in_order(arguments), strict=True)
        return {parameter.name: held_as(parameter, array) for parameter, array in pairs}

    def _written(self, results: tuple[Array, ...]) -> dict[str, Array]:
        """Return the tensor parameters that the host function writes, with their new values."""
        return {name: results[position] for name, position in self._outputs}

    @cached_property
    def _outputs(self) -> tuple[tuple[str, int], ...]:
        tensors = [parameter.name for parameter in self.function.parameters if isinstance(parameter.type, Tensor)]
        written = {parameter.name for parameter in self.entry.parameters if parameter.written}
        return tuple((name, position) for position, name in enumerate(tensors) if name in written)


# Executables of a loaded module's kernels, for one target (runtime spec 4.5, 6, 8.2; language spec 8.1).
#
# A program runs its host function, which launches its kernels, whatever the grid; a tile kernel runs on the grid and
# the blocks of the launch. Kernels with named dimensions are first lowered for the extents of a launch: `specialise`
# returns the Target IR that a cache may keep, and `executable_from` its executable. Data only; time is the runtime's.


Reading: TypeAlias = Callable[[Level, str, Target, str], tuple[Module, ...]]
"""`read_at`, or a caching version of it: the kernels of a module share one text."""


def executables_of(
    fatbin: Fatbin, kernel_name: str, target_name: str, shapes: Mapping[str, int] | None = None, read: Reading = read_at
) -> Executable:
    """Return the executable of a module's kernel on a target, with named dimensions as in `shapes`.

    Its texts are read by `read`. Raises `Failure` with TESS_ERR_INVALID_VALUE for an unknown kernel or a missing
    extent, with TESS_ERR_ARCH_MISMATCH where the module is not for the target; `Rejection` and `UnsupportedConstruct`
    where the kernel cannot be lowered for these extents, or the module's IR is malformed.
    """
    entry = entry_named(fatbin, kernel_name)
    _target_in(fatbin, target_name)
    section = fatbin.section("target-ir", target_name)
    if section is not None and not named_dimensions(entry):
        return executable_from(section.data, entry, target_name, read)
    return executable_from(specialise(fatbin, kernel_name, target_name, shapes, read), entry, target_name, read)


def specialise(
    fatbin: Fatbin, kernel_name: str, target_name: str, shapes: Mapping[str, int] | None = None, read: Reading = read_at
) -> bytes:
    """Return the Target IR of a kernel for these extents, as the text that a cache keeps (RT-08.2-01).

    For a module written in Tile or Target IR, return that of all its kernels. Raises as `executables_of` does.
    """
    entry, target = entry_named(fatbin, kernel_name), _target_in(fatbin, target_name)
    section = fatbin.section("target-ir", target_name)
    if section is not None and fatbin.section("graph-ir") is None:
        return section.data
    lowered = lower(_special(fatbin, entry, target, shapes or {}, read), "target", target)
    return canonical_text([lowered]).encode()


def code_digest(fatbin: Fatbin, target_name: str) -> str:
    """Return the SHA-256 of the IR that `specialise` reads, whatever hash the header of the image claims."""
    source, code = fatbin.section("graph-ir"), fatbin.section("target-ir", target_name)
    if source is not None:
        return hashlib.sha256(source.data).hexdigest()
    return hashlib.sha256(b"target-ir\0" + (b"" if code is None else code.data)).hexdigest()


def executable_from(payload: bytes, entry: KernelEntry, target_name: str, read: Reading = read_at) -> Executable:
    """Return the executable of an entry in a text of Target IR, made by `specialise` or carried by a module.

    Raises `Rejection` for malformed text, `Failure` with TESS_ERR_INVALID_VALUE where it lacks the kernel.
    """
    target = target_of(target_name)
    executable = _offered(payload, "target", entry, target, read)
    if entry.level == "tile":
        return TileExecutable(entry, target, executable.function)
    return ProgramExecutable(entry, target, executable.module, executable.function)


def explain_launch(
    fatbin: Fatbin, kernel_name: str, target_name: str, shapes: Mapping[str, int] | None = None
) -> Explanation:
    """Return the fusion groups and tile shapes of a program on a target. Raises as `executables_of` does."""
    entry, target = entry_named(fatbin, kernel_name), _target_in(fatbin, target_name)
    if entry.level == "tile":
        return Explanation()
    from .images import explanation_of  # imports the lowering to Schedule IR

    return explanation_of(entry.name, _special(fatbin, entry, target, shapes or {}), target)


def reduction_orders(fatbin: Fatbin, kernel_name: str, target_name: str) -> frozenset[Tree]:
    """Return the orders in which a program's values that round are added. Raises as `executables_of` does."""
    entry, section = entry_named(fatbin, kernel_name), fatbin.section("graph-ir")
    if section is None or entry.level == "tile":
        return frozenset()
    kernel = _offered(section.data, "graph", entry, _target_in(fatbin, target_name))
    adding = filter(_rounds, reachable(kernel.module, kernel.function))
    return frozenset(Tree(order) for instruction in adding for order in instruction.operation.orders)


def _rounds(instruction: Instruction) -> bool:
    """True if it takes tensors other than integers, whose sums are the same in any order."""
    types = [operand.type for operand in instruction.operands]
    return any(isinstance(type_, Tensor) and type_.dtype.kind != "int" for type_ in types)


def entry_named(fatbin: Fatbin, kernel_name: str) -> KernelEntry:
    """Return the entry of a kernel. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    entry = fatbin.metadata.kernel(kernel_name)
    if entry is None:
        names = ", ".join(kernel.name for kernel in fatbin.metadata.kernels)
        raise invalid("tessKernelGet", f"no kernel {kernel_name!r}", f"one of {names or 'none'}")
    return entry


def _target_in(fatbin: Fatbin, name: str) -> Target:
    if name in fatbin.targets:
        try:
            return target_of(name)
        except UnknownTarget:
            pass
    allowed = f"one of {', '.join(fatbin.targets)}"
    raise Failure(Status.TESS_ERR_ARCH_MISMATCH, "tessModuleLoad", f"a module without code for {name}", allowed)


def _special(
    fatbin: Fatbin, entry: KernelEntry, target: Target, extents: Mapping[str, int], read: Reading = read_at
) -> Module:
    section = fatbin.section("graph-ir")
    if section is None:
        raise invalid("tessModuleLoad", f"kernel {entry.name} without its Graph IR", "a module with a section graph-ir")
    shapes = shapes_of(entry, extents)
    kernel = _offered(section.data, "graph", entry, target, read)
    return for_shapes(kernel.module, kernel.function, shapes)


def _offered(text: bytes, level: Level, entry: KernelEntry, target: Target, read: Reading = read_at) -> Offered:
    """Return the kernel of an entry among those that a text offers. Raises `Rejection` and `Failure`."""
    modules = read(level, text.decode(), target, f"<{level}-ir>")
    kind = entry.level == "tile"
    for kernel in offered(modules):
        if kernel.name == entry.name and bool(kernel.function.device) == kind:
            return kernel
    subject = f"no kernel {entry.name} in the {level} IR of the module"
    raise invalid("tessModuleLoad", subject, "the kernels of its table")
