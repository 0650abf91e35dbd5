"""Kernels in the form `wsp-kernel`: straight-line instructions over whole tensors, and their report of cycles.

A parameter is a tensor or a u64 scalar. An instruction works element by element on tensors of one dtype and one count.
A scalar or a constant stands for a value of that dtype. Integers wrap, floats are IEEE, and every NaN that arithmetic
gives is the quiet one. `sum` adds in element order into the one element of its destination (AMB-WSP-62). A kernel takes
`fixed + per_element * n` cycles, n the elements of its largest tensor (AMB-WSP-61).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import ProgramRefused
from .statements import U64, member, members, name, objects, record, whole

Values: TypeAlias = npt.NDArray[Any]
Effect: TypeAlias = Callable[[Sequence[int]], None]

DTYPES: Mapping[str, np.dtype[Any]] = {
    **{f"i{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "fp32": np.dtype("<f4"),
    "fp64": np.dtype("<f8"),
    "bool": np.dtype("?"),
}
EXECUTORS = ("vector", "matrix", "dma")
MOST_CYCLES = (1 << 32) - 1


@dataclass(frozen=True)
class Operand:
    """A parameter by name, or a constant."""

    parameter: str = ""
    constant: int = 0


@dataclass(frozen=True)
class Instruction:
    """One operation on whole tensors."""

    op: str
    destination: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Kernel:
    """An entry of the kernel registry."""

    name: str
    executor: str
    entry: str
    parameters: Mapping[str, str]
    instructions: tuple[Instruction, ...]
    fixed: int = 0
    per_element: int = 0

    @property
    def written(self) -> tuple[str, ...]:
        """The tensors that some instruction has as its destination, by parameter, in their order."""
        destinations = {instruction.destination for instruction in self.instructions}
        return tuple(parameter for parameter in self.parameters if parameter in destinations)

    def cycles(self, counts: Sequence[int]) -> int:
        """Its own report, for tensors of these counts."""
        return self.fixed + self.per_element * max(counts, default=0)


def read_kernel(value: Mapping[str, Any], path: str) -> Kernel:
    """A kernel of a program or package. Raises `ProgramRefused`."""
    stated = members(value, path, ("name", "payload", "cycles"), ("executor", "entry"))
    called = name(stated["name"], f"{path}/name")
    payload = members(stated["payload"], f"{path}/payload", ("form", "parameters", "instructions"))
    member(payload["form"], f"{path}/payload/form", ("wsp-kernel",))
    parameters = {}
    for place, entry in enumerate(objects(payload["parameters"], f"{path}/payload/parameters")):
        at = f"{path}/payload/parameters/{place}"
        parameter = members(entry, at, ("name", "kind"))
        if name(parameter["name"], f"{at}/name") in parameters:
            raise ProgramRefused(f"{at}/name", f"{parameter['name']} is there twice")
        parameters[parameter["name"]] = member(parameter["kind"], f"{at}/kind", ("tensor", "scalar"))
    listed = objects(payload["instructions"], f"{path}/payload/instructions")
    instructions = [
        _instruction(instruction, f"{path}/payload/instructions/{place}", parameters)
        for place, instruction in enumerate(listed)
    ]
    cycle = partial(whole, least=0, most=MOST_CYCLES)
    cycles = record(stated["cycles"], f"{path}/cycles", {}, {"fixed": cycle, "per_element": cycle})
    return Kernel(
        called,
        member(stated.get("executor", "vector"), f"{path}/executor", EXECUTORS),
        name(stated.get("entry", called), f"{path}/entry"),
        parameters,
        tuple(instructions),
        **cycles,
    )


def _instruction(value: Mapping[str, Any], path: str, parameters: Mapping[str, str]) -> Instruction:
    stated = members(value, path, ("op", "destination", "operands"))
    op = member(stated["op"], f"{path}/op", tuple(INSTRUCTIONS))
    destination = name(stated["destination"], f"{path}/destination")
    if parameters.get(destination) != "tensor":
        raise ProgramRefused(f"{path}/destination", f"{destination} is no tensor parameter")
    operands = objects(stated["operands"], f"{path}/operands")
    count = INSTRUCTIONS[op].operands
    if len(operands) != count:
        raise ProgramRefused(f"{path}/operands", f"are {len(operands)}, expected {count} for {op}")
    read = [_operand(operand, f"{path}/operands/{place}", parameters) for place, operand in enumerate(operands)]
    if op in ("copy", "sum") and parameters.get(read[0].parameter) != "tensor":
        raise ProgramRefused(f"{path}/operands/0", f"is no tensor, as {op} needs")
    if op in ("fill", "iota") and parameters.get(read[0].parameter) == "tensor":
        raise ProgramRefused(f"{path}/operands/0", f"is a tensor, and {op} needs a scalar or a constant")
    return Instruction(op, destination, tuple(read))


def _operand(value: Mapping[str, Any], path: str, parameters: Mapping[str, str]) -> Operand:
    if set(value) == {"constant"}:
        return Operand(constant=whole(value["constant"], f"{path}/constant", 0, U64))
    parameter = name(members(value, path, ("parameter",))["parameter"], f"{path}/parameter")
    if parameter not in parameters:
        raise ProgramRefused(f"{path}/parameter", f"{parameter} is no parameter of the kernel")
    return Operand(parameter=parameter)


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """The form of a kernel in a package, without its id."""
    return {
        "name": kernel.name,
        "executor": kernel.executor,
        "entry": kernel.entry,
        "payload": {
            "form": "wsp-kernel",
            "parameters": [{"name": parameter, "kind": kind} for parameter, kind in kernel.parameters.items()],
            "instructions": [
                {
                    "op": instruction.op,
                    "destination": instruction.destination,
                    "operands": [
                        {"parameter": operand.parameter} if operand.parameter else {"constant": operand.constant}
                        for operand in instruction.operands
                    ],
                }
                for instruction in kernel.instructions
            ],
        },
        "cycles": {"fixed": kernel.fixed, "per_element": kernel.per_element},
    }


def check_call(kernel: Kernel, tensors: Mapping[str, tuple[str, int]], path: str) -> None:
    """The instructions are defined for tensors of these dtypes and counts, by parameter. Raises `ProgramRefused`."""
    for instruction in kernel.instructions:
        dtype, count = tensors[instruction.destination]
        if dtype == "bool" and not INSTRUCTIONS[instruction.op].of_bool:
            raise ProgramRefused(path, f"kernel {kernel.name}: {instruction.op} is not defined for bool")
        if instruction.op == "sum" and count != 1:
            raise ProgramRefused(path, f"kernel {kernel.name}: the destination of sum has {count} elements, expected 1")
        for operand in instruction.operands:
            if operand.parameter not in tensors:
                continue
            other, length = tensors[operand.parameter]
            if other != dtype or (length != count and instruction.op != "sum"):
                expected = dtype if instruction.op == "sum" else f"{count} of {dtype}"
                actual = f"{operand.parameter} is {length} of {other}"
                raise ProgramRefused(path, f"kernel {kernel.name}: {actual}, and {instruction.op} needs {expected}")


def bound(kernel: Kernel, tensors: Mapping[str, Values]) -> Effect:
    """Return the effect of a call on its tensors, as a function of the scalar arguments in their parameters' order."""
    scalars = [parameter for parameter, kind in kernel.parameters.items() if kind == "scalar"]
    steps = []
    for instruction in kernel.instructions:
        destination = tensors[instruction.destination]
        readers = [_value_of(operand, tensors, scalars, destination.dtype) for operand in instruction.operands]
        steps.append((INSTRUCTIONS[instruction.op].apply, destination, readers))

    def effect(values: Sequence[int]) -> None:
        for apply, destination, readers in steps:
            apply(destination, *(read(values) for read in readers))

    return effect


def _value_of(
    operand: Operand, tensors: Mapping[str, Values], scalars: Sequence[str], dtype: np.dtype[Any]
) -> Callable[[Sequence[int]], Any]:
    if operand.parameter in tensors:
        tensor = tensors[operand.parameter]
        return lambda values: tensor
    if operand.parameter:
        place = scalars.index(operand.parameter)
        return lambda values: _element(values[place], dtype)
    constant = _element(operand.constant, dtype)
    return lambda values: constant


def _element(value: int, dtype: np.dtype[Any]) -> Any:
    """A u64 as an element: integers wrap, floats round to nearest even, bool is whether it is not 0."""
    number = np.uint64(value)
    return number != 0 if dtype.kind == "b" else number.astype(dtype)


def _settled(values: Values) -> None:
    """Every NaN becomes the quiet one."""
    if values.dtype.kind == "f":
        nan = np.isnan(values)
        if nan.any():
            values[nan] = np.nan


def _fill(destination: Values, value: Any) -> None:
    destination[:] = value


def _iota(destination: Values, first: Any) -> None:
    count = np.arange(len(destination), dtype=np.uint64)
    np.add(count.astype(destination.dtype), first, out=destination)


def _arithmetic(operation: Callable[..., Any]) -> Callable[..., None]:
    def apply(destination: Values, a: Any, b: Any) -> None:
        operation(a, b, out=destination)
        _settled(destination)

    return apply


def _extreme(first_is_smaller: bool) -> Callable[..., None]:
    """The reference arithmetic's minimum or maximum: a NaN goes on, and -0 is below +0."""

    def apply(destination: Values, a: Any, b: Any) -> None:
        if destination.dtype.kind != "f":
            destination[:] = np.where((a < b) == first_is_smaller, a, b)
            return
        below = np.less(a, b) | (np.equal(a, b) & np.signbit(a))
        chosen = np.where(below == first_is_smaller, a, b)
        destination[:] = np.where(np.isnan(a) | np.isnan(b), destination.dtype.type(np.nan), chosen)

    return apply


def _sum(destination: Values, source: Values) -> None:
    if source.dtype.kind != "f":
        destination[0] = np.array([sum(map(int, source)) & U64], dtype=np.uint64).astype(source.dtype)[0]
        return
    total = source[0]
    for instruction in source[1:]:
        total = total + instruction
    destination[0] = total
    _settled(destination)


@dataclass(frozen=True)
class InstructionKind:
    """A kind of instruction: its effect, and its operands."""

    apply: Callable[..., None]
    operands: int
    of_bool: bool = False


INSTRUCTIONS: Mapping[str, InstructionKind] = {
    "fill": InstructionKind(_fill, 1, of_bool=True),
    "iota": InstructionKind(_iota, 1),
    "copy": InstructionKind(_fill, 1, of_bool=True),
    "add": InstructionKind(_arithmetic(np.add), 2),
    "sub": InstructionKind(_arithmetic(np.subtract), 2),
    "mul": InstructionKind(_arithmetic(np.multiply), 2),
    "min": InstructionKind(_extreme(True), 2, of_bool=True),
    "max": InstructionKind(_extreme(False), 2, of_bool=True),
    "sum": InstructionKind(_sum, 1),
}
