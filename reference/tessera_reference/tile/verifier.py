"""Verification of kernels of Tile IR: entry, memory, and instructions of the target (7.3, 8.1, 11).

The core verifier has checked definitions, uses and types; the interpreter checks what depends on values.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..graph.constant import Constant
from ..ir.diagnostics import Location
from ..ir.operation import Function, Instruction, Problems, Refusal
from ..ir.targets import Target
from ..ir.types import Fragment, Memref, Scalar, Tensor, Type, Value
from ..kernel_machine.block import KernelOperation
from .fragments import ALIGNMENT, LoadMatrix, MmaSync, fragment_uses
from .interpreter import Launch
from .operations import CopyAsync, SharedAlloc

MOST_BLOCKS = ((1 << 31) - 1, 65535, 65535)
"""The most blocks along x, y and z (AMB-LANG-203)."""

SYMBOL = "tss_kernel_"
"""The prefix of a kernel's symbol (LANG-16-01)."""


def verify_kernel(function: Function, target: Target) -> None:
    """Raise `Rejection` unless the target can run a kernel of Tile IR."""
    problems = Problems()
    verify_entry(problems, function, target, Memref)
    with problems.at(function.location):
        require_declared(function, "allocations", shared_bound(function))
    for parameter in function.parameters:
        if isinstance(parameter.type, Memref):
            with problems.at(function.location):
                _verify_type(parameter, False)
    constants: dict[Value, int] = {}
    for instruction in function.body.walk():
        operation = instruction.operation
        if isinstance(operation, Constant) and isinstance(operation.value, int):
            constants[instruction.results[0]] = operation.value
        with problems.at(instruction.location):
            _verify_instruction(instruction, target, constants)
    for instruction in _allocations_inside(function):
        message, remedy = "shared.alloc is in a region", "move it out of the loop or branch"
        requirement = "allocations at the top of the kernel, of which a static bound is the sum"
        problems.add(Refusal("tile", message, requirement, "LANG-07.3-04", remedy), instruction.location)
    for place in _left_early(function):
        message = "a region does not come back: its threads would leave the others alone"
        requirement = "regions that yield, and a kernel that returns at its end"
        remedy = "put the rest of the kernel into a branch"
        problems.add(Refusal("tile", message, requirement, "LANG-08.3-02", remedy), place)
    for clash in fragment_uses(function)[1]:
        message = f"one fragment is {clash.uses[0]} and {clash.uses[1]}"
        requirement = "one use of a fragment: A, B, or an accumulator of one dtype"
        problems.add(Refusal("tile", message, requirement, "LANG-07.1-01", "load it twice"), clash.instruction.location)
    problems.require_none()


def shared_bound(function: Function) -> int:
    """Return the most bytes of shared memory that a block can hold: the end of its last allocation (LANG-07.3-04).

    Allocations follow one another, each at a multiple of 16 bytes (AMB-LANG-200).
    """
    end = 0
    for instruction in function.body.walk():
        if isinstance(instruction.operation, SharedAlloc):
            memref = instruction.operation.returns
            begin = -(-end // ALIGNMENT) * ALIGNMENT
            end = begin + prod(memref.extents) * memref.dtype.storage_bytes
    return end


def verify_entry(problems: Problems, function: Function, target: Target, buffer: type[Type]) -> None:
    """Check a kernel's entry at either level: launch attributes, parameters (section 8.1, section 16)."""
    with problems.at(function.location):
        _verify_target(function, target)
    for name, clause, most in (("grid", "LANG-08.1-04", MOST_BLOCKS), ("block", "LANG-08.1-11", None)):
        with problems.at(function.location):
            _verify_extents(function, name, clause, most, target)
    with problems.at(function.location):
        _verify_shared_size(function, target)
    with problems.at(function.location):
        _verify_signature(function, buffer)


# The entry


def _verify_target(function: Function, target: Target) -> None:
    stated = function.attributes.get("target", target.name)
    if stated != target.name:
        message = f"@{function.name} is made for {stated}"
        raise Refusal("tile", message, f"a kernel for {target.name}", "LANG-11-10", "lower it for that target")


def _verify_extents(function: Function, name: str, clause: str, most: tuple[int, ...] | None, target: Target) -> None:
    """Require a grid or block of three positive extents within the target's limits."""
    extents = function.attributes.get(name)
    if extents is None:
        raise Refusal("tile", f"@{function.name} states no {name}", f"{name} = [x, y, z]", clause)
    positive = isinstance(extents, tuple) and all(isinstance(size, int) and size >= 1 for size in extents)
    if not isinstance(extents, tuple) or len(extents) != 3 or not positive:
        message = f"its {name} is {_listed(extents)}"
        requirement = "three extents of at least 1"
        raise Refusal("tile", message, requirement, {"grid": "LANG-08.1-07", "block": "LANG-08.1-08"}[name])
    if most is None and prod(extents) > target.threads_per_block:
        message = f"its block has {prod(extents)} threads"
        requirement = f"at most {target.threads_per_block} on {target.name}"
        raise Refusal("tile", message, requirement, "LANG-11-15", "use a smaller block")
    if most is not None and any(extent > limit for extent, limit in zip(extents, most, strict=True)):
        raise Refusal("tile", f"its {name} is {_listed(extents)}", f"at most {_listed(most)}", "LANG-08.1-04")


def _verify_shared_size(function: Function, target: Target) -> None:
    declared = function.attributes.get("smem_bytes")
    if declared is None:
        raise Refusal("tile", f"@{function.name} does not declare its shared memory", "smem_bytes = N", "LANG-08.1-05")
    if not isinstance(declared, int) or declared < 0:
        raise Refusal("tile", f"smem_bytes is {declared}", "a number of bytes", "LANG-08.1-09")
    if declared > target.shared_bytes:
        message = f"it declares {declared} bytes of shared memory"
        requirement = f"at most {target.shared_bytes} in a block of {target.name}"
        raise Refusal("tile", message, requirement, "LANG-07.3-03", "use smaller tiles, or fewer stages")


def require_declared(function: Function, pieces: str, bound: int) -> None:
    """Require that the declared size covers these pieces; only a dynamic segment may follow (LANG-08.1-05, -06)."""
    declared = function.attributes.get("smem_bytes")
    if isinstance(declared, int) and bound > declared:
        message = f"its {pieces} take {bound} bytes of shared memory, it declares {declared}"
        raise Refusal("tile", message, f"smem_bytes of at least {bound}", "LANG-07.3-04")


def _verify_signature(function: Function, buffer: type[Type]) -> None:
    """Require global buffers, then scalars of 32 or 64 bits; no results (LANG-08.1-02, -03, LANG-16-01 to -03)."""
    if not function.name.startswith(SYMBOL) or len(function.name) <= len(SYMBOL) or not function.name.isidentifier():
        raise Refusal("tile", f"the symbol is {function.name}", f"{SYMBOL} and a mangled name", "LANG-16-01")
    if function.results:
        raise Refusal("types", f"@{function.name} returns values", "buffers that it writes", "LANG-08.1-01")
    scalar = ""
    for parameter in function.parameters:
        type_ = parameter.type
        if isinstance(type_, buffer):
            if scalar:
                raise Refusal("tile", f"%{parameter.name} stands behind %{scalar}", "buffers first", "LANG-16-02")
            space = getattr(type_, "space", "global")
            if space not in ("global", 1):
                raise Refusal("tile", f"%{parameter.name} is {type_}", "global memory", "LANG-08.1-02")
            continue
        scalar, dtype = parameter.name, type_.dtype if isinstance(type_, Scalar) else None
        if dtype is None or dtype.kind not in ("int", "float") or dtype.bits not in (32, 64):
            message = f"%{parameter.name} is {type_}"
            raise Refusal("types", message, "a buffer, or a scalar of 32 or 64 bits", "LANG-08.1-03")


# Instructions


def _verify_instruction(instruction: Instruction, target: Target, constants: dict[Value, int]) -> None:
    operation = instruction.operation
    lanewise = operation.lanewise
    if not lanewise and (not isinstance(operation, KernelOperation) or not operation.name.startswith("tessera.tile.")):
        why = ", which the host runs" if isinstance(operation, Launch) else ""
        message = f"a kernel cannot hold {operation.name}{why}"
        requirement = "operations of Tile IR, and of Graph IR those that work lane by lane"
        raise Refusal("tile", message, requirement, "LANG-08.2-03")
    for value in (*instruction.operands, *instruction.results):
        _verify_type(value, lanewise)
    if isinstance(operation, MmaSync):
        _verify_shape(operation, target)
    if isinstance(operation, LoadMatrix):
        _verify_alignment(instruction, operation.memory, constants)
    if isinstance(operation, CopyAsync):
        _verify_copy(instruction, operation, constants)


def _verify_type(value: Value, lanewise: bool) -> None:
    type_ = value.type
    if isinstance(type_, Tensor) or (lanewise and not isinstance(type_, Scalar)):
        requirement = "scalars, which each lane has its own of"
        raise Refusal("types", f"%{value.name} is {type_}", requirement, "LANG-08.2-03", "")
    if isinstance(type_, Memref) and not all(isinstance(dim, int) for dim in type_.shape):
        requirement, remedy = "extents that are numbers", "specialize the function to the shapes that it runs on"
        raise Refusal("shapes", f"%{value.name} is {type_}", requirement, "LANG-11-02", remedy)


def _verify_shape(operation: MmaSync, target: Target) -> None:
    fragment: Fragment = operation.c
    shapes = ", ".join(f"{shape.m}x{shape.n}x{shape.k}" for shape in target.shapes_of(fragment.dtype))
    if not target.has_mma(fragment.dtype, operation.m, operation.n, operation.k):
        message = f"{target.name} has no mma.sync of {operation.m}x{operation.n}x{operation.k} on {fragment.dtype}"
        requirement = shapes or f"a dtype that {target.name} has matrix instructions for"
        remedy = "choose another shape" if shapes else "compute it without matrix instructions"
        raise Refusal("tile", message, requirement, "LANG-07.3-02", remedy)


def _offset(memory: Memref, indices: tuple[Value, ...], constants: dict[Value, int]) -> int | None:
    """Return the byte offset of constant indices; where rows are aligned the last index is enough."""
    size, extents = memory.dtype.storage_bytes, memory.extents
    steps = [prod(extents[axis + 1 :]) * size for axis in range(len(extents))]
    total = 0
    for index, step in zip(indices, steps, strict=bool(indices)):
        if index in constants:
            total += constants[index] * step
        elif step % ALIGNMENT:
            return None
    return total


def _verify_alignment(instruction: Instruction, memory: Memref, constants: dict[Value, int]) -> None:
    """Require that rows of ldmatrix begin at multiples of 16 bytes, as far as constants show (LANG-07.3-01)."""
    offset = _offset(memory, instruction.operands[1:], constants)
    if offset is not None and offset % ALIGNMENT != 0:
        message = f"the corner is at byte {offset} of a row"
        requirement = f"a multiple of {ALIGNMENT}"
        raise Refusal("tile", message, requirement, "LANG-07.3-01", "move the corner to an aligned column")


def _verify_copy(instruction: Instruction, operation: CopyAsync, constants: dict[Value, int]) -> None:
    """Require that both ends of a copy are aligned to its bytes, as far as constants show."""
    rank = len(operation.source.shape)
    indices = instruction.operands[2:]
    for memory, used in ((operation.source, indices[:rank]), (operation.destination, indices[rank:])):
        offset = _offset(memory, used, constants)
        if offset is not None and offset % operation.bytes != 0:
            message = f"it copies {operation.bytes} bytes at byte {offset}"
            raise Refusal("tile", message, f"a multiple of {operation.bytes}", "LANG-11-14")


def _allocations_inside(function: Function) -> list[Instruction]:
    """Return the shared allocations in regions."""
    outer = set(function.body.instructions)
    return [step for step in function.body.walk() if isinstance(step.operation, SharedAlloc) and step not in outer]


def _left_early(function: Function) -> Iterator[Location]:
    """Yield the locations of early ends: a kernel that does not return at its end, regions that do not yield."""
    if function.body.exit != "return":
        yield function.location
    for instruction in function.body.walk():
        if any(region.exit != "yield" for region in instruction.regions):
            yield instruction.location


def _listed(extents: object) -> str:
    return f"[{', '.join(map(str, extents))}]" if isinstance(extents, tuple) else str(extents)
