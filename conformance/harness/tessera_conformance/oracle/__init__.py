"""The oracle: the results of the reference arithmetic, computed with exact rational numbers.

It shares nothing with the reference implementation and uses no floating-point arithmetic of the machine. An operand is
the Fraction it stands for, an operation is exact, and rounding is a division of integers. MPFR encloses functions that
have no rational value until the enclosure rounds one way. The oracle is slow and meant to be read beside the reference
arithmetic.

The functions of the oracle are the public functions of `OPERATION_MODULES` that return a `Tensor` or a tuple of
several. A function takes `Tensor` objects, then keyword arguments, and is called as `oracle.NAME`. Golden vectors name
it as the check that confirmed them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from tessera_conformance.oracle import collectives, compositions, elementwise, movement, parameter_buffers, reductions
from tessera_conformance.tensors import Tensor

OPERATION_MODULES: tuple[ModuleType, ...] = (
    collectives,
    compositions,
    elementwise,
    movement,
    parameter_buffers,
    reductions,
)


def functions_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return the functions of the oracle that a module defines, by name; `sum_` and others without the underscore."""
    return {
        name.rstrip("_"): found
        for name, found in vars(module).items()
        if isinstance(found, FunctionType)
        and found.__module__ == module.__name__
        and not name.startswith("_")
        and found.__annotations__["return"].startswith(("Tensor", "tuple[Tensor"))
    }


def _of_program(name: str, *inputs: Tensor, factor: str = "") -> Tensor:
    """Return the result of a program, every operation of which is a function of the oracle.

    Raises `TypeError`: the program takes other operands.
    """
    steps = compositions.PROGRAMS[name]
    operands = {operand for step in steps for operand in step.operands} - {step.name for step in steps}
    if operands != {*range(len(inputs)), *([compositions.LITERAL] if factor else [])}:
        taken = ", ".join(sorted(map(str, operands)))
        raise TypeError(f"{name} takes the operands {taken}; found {len(inputs)} inputs and the factor {factor!r}")

    def computed(step: compositions.Step, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        return [FUNCTIONS[f"oracle.{step.operation}"](*operands, **step.attributes)]

    return compositions.run_program(steps, inputs, factor, computed)[0]


PROGRAMS: Mapping[str, Callable[..., Any]] = {name: partial(_of_program, name) for name in compositions.PROGRAMS}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    f"oracle.{name}": function
    for named in (elementwise.UNARY, elementwise.COMPARISONS, *map(functions_of, OPERATION_MODULES), PROGRAMS)
    for name, function in named.items()
}
"""The functions that a golden vector may name as its independent check."""


def __getattr__(name: str) -> Callable[..., Any]:
    """Return a function of the oracle by its name, with or without a last underscore."""
    try:
        return FUNCTIONS[f"oracle.{name.rstrip('_')}"]
    except KeyError:
        raise AttributeError(f"the oracle has no function {name}") from None
