"""Diagnostics of kernels that fail while they run (section 12), and the limit on their instructions."""

from __future__ import annotations

from ..ir.diagnostics import Diagnostic, Location, Rejection, Span
from ..ir.module import Function, Instruction
from ..numerics.errors import DivisionByZero, NumericsFailure
from .faults import KernelFault, Unwritten
from .lanes import Lanes
from .program import Code

MOST_STEPS = 10_000_000
"""Instructions that one launch may run, each counted once for a block."""


NOWHERE = Location("<source>", Span(1, 1, 1, 1))


class Budget:
    """The instructions that may still run."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.left = steps

    def spend(self, code: Code, owner: Instruction | None) -> None:
        """Count a block of instructions, and one for entering it. Raises `Rejection` where they are too many."""
        self.left -= len(code.steps) + 1
        if self.left < 0:
            reached = max(len(code.steps) + self.left, 0)
            instruction = code.steps[reached].instruction if code.steps else owner
            raise Rejection([too_many_steps(instruction, self.steps)])

    def require(self, turns: int, code: Code, owner: Instruction | None) -> None:
        """Raise `Rejection` unless this many iterations of a region are within the budget."""
        if turns * (len(code.steps) + 1) > self.left:
            raise Rejection([too_many_steps(owner, self.steps)])


def too_many_steps(instruction: Instruction | None, steps: int) -> Diagnostic:
    """The error for a kernel that exceeds its budget at an instruction, which is None where it has none."""
    name = instruction.operation.short_name if instruction else "launch"
    location = instruction.location if instruction else NOWHERE
    return Diagnostic(
        "tile",
        "execute",
        f"{name}: a launch runs at most {steps} instructions, and the kernel is not done",
        location.span,
        location.filename,
        requirement="a kernel that ends",
        remedy="does a loop never end? else give the run more steps",
    )


def failed(instruction: Instruction, failure: NumericsFailure, lanes: Lanes) -> Diagnostic:
    """The error for a fault in an instruction."""
    operation, fault = instruction.operation, isinstance(failure, KernelFault)
    text = str(failure)
    if isinstance(failure, DivisionByZero):
        text = f"integer division by zero in {lanes.thread(int(lanes.active[failure.index[0]]))}"
    return Diagnostic(
        "tile" if fault else "numerics",
        "execute",
        f"{operation.short_name}: {text}",
        instruction.location.span,
        instruction.location.filename,
        operands=tuple(f"{name} is {type_}" for name, type_ in operation.operand_types),
        requirement=failure.requirement if isinstance(failure, KernelFault) else "",
        clause=failure.clause if isinstance(failure, KernelFault) else "",
        remedy=failure.remedy if isinstance(failure, KernelFault) else "",
    )


def unwritten(kernel: Function, fault: Unwritten) -> Diagnostic:
    """The error for a result that a kernel did not write completely."""
    place = kernel.location
    return Diagnostic(
        "tile",
        "execute",
        f"@{kernel.name}: {fault}",
        place.span,
        place.filename,
        requirement=fault.requirement,
        clause=fault.clause,
    )
