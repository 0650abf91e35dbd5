"""Verification of kernels of Target IR: entry, intrinsics, memory (LANG-08.1-*, -11-10, -16-*).

The core verifier has checked definitions, uses and types; the entry is checked as that of Tile IR is."""

from __future__ import annotations

from ..ir.operation import Function, Instruction, Problems, Refusal
from ..ir.targets import Target
from ..ir.types import Pointer
from ..tile.verifier import require_declared, verify_entry
from .operation import TargetOperation
from .operations.memory import SPACES, AddressOf
from .operations.vendors import Mfma, MmaSync


def verify_target_kernel(function: Function, target: Target) -> None:
    """Raise `Rejection` unless the target can run a kernel of Target IR."""
    problems = Problems()
    verify_entry(problems, function, target, Pointer)
    with problems.at(function.location):
        require_declared(function, "globals", shared_bound(function))
    names: set[str] = set()
    for instruction in function.body.walk():
        with problems.at(instruction.location):
            _verify_instruction(instruction, target)
        if isinstance(instruction.operation, AddressOf):
            with problems.at(instruction.location):
                _verify_global(instruction.operation, instruction, function, names)
    problems.require_none()


def shared_bound(function: Function) -> int:
    """Return the bytes of shared memory that the globals of a kernel take, one after another, each aligned."""
    end = 0
    for instruction in function.body.walk():
        operation = instruction.operation
        if isinstance(operation, AddressOf):
            begin = -(-end // operation.alignment) * operation.alignment
            end = begin + operation.size
    return end


def _verify_global(operation: AddressOf, instruction: Instruction, function: Function, names: set[str]) -> None:
    """Require that shared memory is declared once, for the whole kernel."""
    if operation.global_name in names:
        message = f"@{operation.global_name} is declared twice"
        raise Refusal("tile", message, "one llvm.mlir.addressof for each global", "LANG-08.1-05")
    names.add(operation.global_name)
    if not any(instruction is candidate for candidate in function.body.instructions):
        message = f"@{operation.global_name} is declared inside a region"
        raise Refusal("tile", message, "shared memory declared in the body of the kernel", "LANG-08.1-05")


def _verify_instruction(instruction: Instruction, target: Target) -> None:
    operation = instruction.operation
    if not isinstance(operation, TargetOperation):
        requirement = "operations of the dialects llvm, scf, nvvm and rocdl"
        message = f"{operation.name} is no operation of Target IR"
        raise Refusal("tile", message, requirement, "LANG-08-01", "lower the kernel")
    if operation.vendor not in ("", target.vendor):
        message = f"{operation.name} is an instruction of {operation.vendor}"
        raise Refusal("tile", message, f"what {target.name} has", "LANG-11-10", "lower the kernel for this target")
    for value in (*instruction.operands, *instruction.results):
        if isinstance(value.type, Pointer) and value.type.space not in SPACES:
            requirement = f"one of the address spaces {', '.join(map(str, SPACES))}"
            raise Refusal("types", f"%{value.name} is {value.type}", requirement, "LANG-08.3-01", "")
    if isinstance(operation, MmaSync) and not target.shapes_of(operation.a.dtype):
        message = f"{target.name} has no mma.sync of {operation.a.dtype}"
        requirement = f"one of {', '.join(dict.fromkeys(shape.dtype.name for shape in target.mma))}"
        raise Refusal("tile", message, requirement, "LANG-11-10")
    if isinstance(operation, Mfma) and target.name not in operation.kind.targets:
        raise Refusal("tile", f"{operation.name} on {target.name}", "its intrinsics", "LANG-11-10")
