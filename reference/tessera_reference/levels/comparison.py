"""Comparison of one program at every level: `tessera-reference compare-levels` (AMB-LANG-78).

A difference is reported with its level, the operations that computed it and their place, the element and both bit
patterns. In the functions of the host one instruction executes each nest, at every level in the same order. Its results
are compared with those of the nest's operations. Its inputs agree, or an earlier difference is reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..graph import execution as graph_execution
from ..ir.diagnostics import Location, Rejection
from ..ir.operation import Instruction, Module
from ..ir.targets import Target
from ..ir.types import Value
from ..numerics.array import Array
from ..schedule.execution import RunNest
from ..schedule.nests import Nest, with_nests_replaced
from ..tile.interpreter import Launch
from .execution import LEVELS, Execution, Options, executable, lower, specialized


@dataclass(frozen=True)
class Difference:
    """The first element whose bits at a level differ from those of Graph IR, in storage codes."""

    level: Execution
    operation: str
    """The operations of a nest, and its kernel where it has one; the name of a function that differs as a whole."""
    location: Location
    value: str
    index: tuple[int, ...]
    expected: str
    found: str

    def __str__(self) -> str:
        element = f"%{self.value}[{', '.join(map(str, self.index))}]"
        return f"{self.level}: {self.operation} at {self.location}: {element} is {self.found}, expected {self.expected}"


@dataclass(frozen=True)
class Comparison:
    """The levels that agree, from Graph IR down, and the end of the row: a difference, or a level that fails."""

    levels: tuple[Execution, ...]
    difference: Difference | None = None
    failure: Rejection | None = None

    @property
    def agree(self) -> bool:
        """True if all levels agree."""
        return self.difference is None and self.failure is None


def compare_levels(
    module: Module,
    function: str,
    inputs: Mapping[str, Array],
    target: Target,
    options: Options | None = None,
    levels: Sequence[Execution] = LEVELS,
) -> Comparison:
    """Run a function at every level, from the highest down, until one differs from Graph IR.

    Raises as `levels.execute_at` does where Graph IR has no result, or Schedule IR does not take the schedule.
    """
    special = specialized(module, function, inputs)
    expected = graph_execution.execute(special, function, inputs)
    scheduled = lower(special, "schedule", target, options)
    agreed: list[Execution] = []
    for level in levels:
        try:
            host = executable(special, level, target, options)
            results = graph_execution.execute(host, function, inputs)
        except Rejection as rejection:
            return Comparison(tuple(agreed), failure=rejection)
        outputs = Difference(level, f"@{function}", special.functions[function].location, "", (), "", "")
        names = [f"r{number}" for number in range(len(expected))]
        if (wrong := _first(outputs, names, expected, results)) is not None:
            inside = Tracking(scheduled, target).difference(level, host, function, inputs)
            return Comparison(tuple(agreed), inside or wrong)
        agreed.append(level)
    return Comparison(tuple(agreed))


class Tracking:
    """The nests of a scheduled module, and the results of each when its operations run one by one."""

    def __init__(self, scheduled: Module, target: Target) -> None:
        self.nests: list[Nest] = []
        self.plain = with_nests_replaced(scheduled, target, self._noted)

    def _noted(self, nest: Nest) -> Sequence[Instruction]:
        self.nests.append(nest)
        return nest.instructions

    def difference(
        self, level: Execution, host: Module, function: str, inputs: Mapping[str, Array]
    ) -> Difference | None:
        """Return the first run of a nest with another result at a level, or None if all agree."""
        expected = self._given(function, inputs)
        numbers = {instruction: number for number, instruction in enumerate(_nest_instructions(host))}
        runs, differences = Counter[int](), list[Difference]()

        def observe(instruction: Instruction, results: tuple[Array, ...]) -> None:
            number = numbers.get(instruction)
            if number is None or differences:
                return
            nest = self.nests[number]
            expected_values = [expected[value][runs[number]] for value in nest.outputs]
            runs[number] += 1
            about = Difference(level, _description(nest, instruction), nest.location, "", (), "", "")
            wrong = _first(about, [value.name for value in nest.outputs], expected_values, results)
            if wrong is not None:
                differences.append(wrong)

        graph_execution.execute(host, function, inputs, observe)
        return differences[0] if differences else None

    def _given(self, function: str, inputs: Mapping[str, Array]) -> Mapping[Value, list[Array]]:
        """Return the values of each value of the program, run for run."""
        inputs_by_value: dict[Value, list[Array]] = defaultdict(list)

        def observe(instruction: Instruction, results: tuple[Array, ...]) -> None:
            for value, array in zip(instruction.results, results, strict=True):
                inputs_by_value[value].append(array)

        graph_execution.execute(self.plain, function, inputs, observe)
        return inputs_by_value


def _nest_instructions(host: Module) -> list[Instruction]:
    """Return the instructions that execute nests, in the order of the nests."""
    functions = [function for function in host.functions.values() if not function.device]
    instructions = [instruction for function in functions for instruction in function.body.walk()]
    return [step for step in instructions if isinstance(step.operation, RunNest | Launch)]


def _description(nest: Nest, instruction: Instruction) -> str:
    """Return the operations of a nest, and its kernel."""
    operations = ", ".join(step.operation.short_name for step in nest.operations)
    operation = instruction.operation
    return f"{operations} in @{operation.kernel}" if isinstance(operation, Launch) else operations


def _first(
    about: Difference, names: Sequence[str], expected: Sequence[Array], actual: Sequence[Array]
) -> Difference | None:
    """Return a difference with its value, element and codes, or None."""
    for name, reference, result in zip(names, expected, actual, strict=True):
        place = first_difference(reference, result)
        if place is not None:
            index = tuple(map(int, np.unravel_index(place, reference.shape))) if reference.shape else ()
            codes = (code(reference, place), code(result, place))
            return replace(about, value=name, index=index, expected=codes[0], found=codes[1])
    return None


def first_difference(expected: Array, actual: Array) -> int | None:
    """Return the first element, in row-major order, whose codes differ in two arrays of one dtype and size."""
    size, expected_bits, actual_bits = expected.dtype.storage_bytes, expected.to_bits(), actual.to_bits()
    if expected_bits == actual_bits:
        return None
    starts = range(0, len(expected_bits), size)
    return next(
        start // size for start in starts if expected_bits[start : start + size] != actual_bits[start : start + size]
    )


def differing(expected: Array, actual: Array) -> list[int]:
    """Return the elements, in row-major order, whose codes differ in two arrays of one dtype and size.

    Any NaN is like any other.
    """
    codes = [
        np.frombuffer(array.to_bits(), np.uint8).reshape(-1, array.dtype.storage_bytes) for array in (expected, actual)
    ]
    alike = np.all(codes[0] == codes[1], axis=1)
    if expected.dtype.kind in ("float", "complex"):
        alike |= np.isnan(expected.values).reshape(-1) & np.isnan(actual.values).reshape(-1)
    return [int(place) for place in np.flatnonzero(~alike)]


def code(array: Array, place: int) -> str:
    """Return the storage code of an element, as the protocol writes it."""
    size, parts = array.dtype.storage_bytes, 2 if array.dtype.kind == "complex" else 1
    bits = array.to_bits()[place * size : (place + 1) * size]
    words = [bits[start : start + size // parts] for start in range(0, size, size // parts)]
    return "".join(word[::-1].hex() for word in words)
