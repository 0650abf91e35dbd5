"""The interpreter of Graph IR: binds inputs and runs one rank (spec sections 3.1, 4; LANG-04-01, -03)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..ir.diagnostics import Diagnostic, Location, Rejection, UnsupportedConstruct
from ..ir.operation import (
    Block,
    Builder,
    Composite,
    Function,
    Instruction,
    Module,
    Operation,
    Refusal,
    Steps,
    Stepwise,
    diagnostic_of,
    refused_by,
)
from ..ir.types import Scalar, Tensor, Value, is_unknown
from ..numerics.array import BLOCK, Array
from ..numerics.errors import DivisionByZero, ShapeMismatch
from ..numerics.formats import DTYPES, NumericsFailure
from .elementwise import Identity
from .grad import Executed, Grad, Tape, gradients, on_types_of, type_of

# Inputs against the signature of a function (spec section 3.1).
#
# The inputs bind the dimensions that the signature leaves open: equal names to equal sizes (AMB-LANG-08), each `?` to
# any size.


class InputMismatch(Exception):
    """The inputs do not fit the signature. `expected` is empty for an unexpected input, `given` for a missing one."""

    def __init__(self, name: str, expected: str, given: str, why: str = "") -> None:
        self.name = name
        self.expected = expected
        self.given = given
        self.why = why
        super().__init__(name, expected, given, why)

    def __str__(self) -> str:
        if not self.given:
            return f"input {self.name} is missing: expected {self.expected}"
        if not self.expected:
            return f"input {self.name} is not a parameter; {self.why}"
        return f"input {self.name}: expected {self.expected}, given {self.given}{self.why and f' ({self.why})'}"


def bind(function: Function, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return the inputs in the order of the parameters; missing ones take their defaults (AMB-LANG-74).

    Raises `InputMismatch` for the first that does not fit.
    """
    for type_ in function.results:
        if not isinstance(type_, Tensor | Scalar):
            raise UnsupportedConstruct(f"execute.{type(type_).__name__.lower()}", function.location)
    names = [parameter.name for parameter in function.parameters]
    for name, array in inputs.items():
        if name not in names:
            raise InputMismatch(name, "", describe(array), f"@{function.name} takes {', '.join(names) or 'none'}")
    bound: dict[str, tuple[int, str]] = {}
    arguments = {**function.defaults, **inputs}
    for parameter in function.parameters:
        if parameter.name not in arguments:
            raise InputMismatch(parameter.name, str(parameter.type), "")
        _bind_one(function, parameter, arguments[parameter.name], bound)
    return tuple(arguments[name] for name in names)


def _bind_one(function: Function, parameter: Value, array: Array, bound: dict[str, tuple[int, str]]) -> None:
    type_ = parameter.type
    if not isinstance(type_, Tensor | Scalar):
        raise UnsupportedConstruct(f"execute.{type(type_).__name__.lower()}", function.location)
    expected, actual = str(type_), describe(array)
    if array.dtype != type_.dtype or len(array.shape) != len(type_.shape):
        raise InputMismatch(parameter.name, expected, actual)
    for dim, extent in zip(type_.shape, array.shape, strict=True):
        if isinstance(dim, int):
            if dim != extent:
                raise InputMismatch(parameter.name, expected, actual)
        elif not is_unknown(dim):
            first, owner = bound.setdefault(dim, (extent, parameter.name))
            if first != extent:
                raise InputMismatch(parameter.name, expected, actual, f"{dim} is {first} in {owner}")


def describe(array: Array) -> str:
    """Return an array's type as the source would write it."""
    return f"tensor<{'x'.join(map(str, (*array.shape, array.dtype)))}>" if array.shape else array.dtype.name


# The interpreter of Graph IR: runs one rank, one instruction after another (spec section 4; LANG-04-01, -03).
#
# It runs as a coroutine, so that many ranks can run side by side in one process: at a collective it yields its arrival
# and receives the results. A failure ends the run with a diagnostic at the instruction.


Frame: TypeAlias = dict[Value, Array]
"""The values of one activation of a function."""

Observer = Callable[[Instruction, tuple[Array, ...]], None]
"""A function called for every executed instruction with its results; those of regions precede their owner."""

NUMBERS = DTYPES["int32"]
"""The dtype in which the functions of a module are numbered."""

LARGE = 1 << 20
"""The number of elements from which elementwise instructions are executed slice by slice."""

MOST_STEPS = 400_000
"""The number of instructions that one run may execute, under 5 s on scalars: a diagnostic ends an endless loop."""


class _Returned(Exception):  # not an error: a return from within regions
    """A return inside regions: the results of the function."""

    def __init__(self, results: tuple[Array, ...]) -> None:
        self.results = results


@dataclass(frozen=True)
class RandomSource:
    """The start of a run's random numbers: the seed and the first stream of operations that name none."""

    seed: int = 0
    stream: int = 0


FROM_ZERO = RandomSource()
"""The source of a run that names no other."""


class Interpreter:
    """The interpreter of the functions of one module."""

    def __init__(self, module: Module, observer: Observer | None = None, source: RandomSource = FROM_ZERO) -> None:
        self.module = module
        self.observer = observer
        self.steps_left = MOST_STEPS
        self.seed = source.seed
        self.stream = source.stream
        self.tape: Tape | None = None
        self.has_large = False
        self.last_uses: dict[Block, list[tuple[Value, ...]]] = {}
        self.expansions: dict[tuple[Instruction, tuple[tuple[int, ...], ...]], Block] = {}

    def run(self, function: Function, arguments: tuple[Array, ...]) -> Steps:
        """Run a function; return its results."""
        if any(isinstance(instruction.operation, Grad) for instruction in reachable(self.module, function)):
            self.tape = Tape()
        return self.function(function, arguments)

    def function(self, function: Function, arguments: tuple[Array, ...]) -> Steps:
        """Run a function as part of a run; return its results."""
        self.has_large |= any(prod(array.shape) >= LARGE for array in arguments)
        try:
            return (yield from self.block(function.body, arguments, {}))
        except _Returned as returned:
            return returned.results

    def block(self, block: Block, arguments: tuple[Array, ...], frame: Frame) -> Steps:
        """Run a block; return its results. Raises `Rejection` and `UnsupportedConstruct`."""
        if self.tape is not None:
            arguments = self._renewed(arguments)
        frame.update(zip(block.arguments, arguments, strict=True))
        unread = self.last_uses.get(block)
        if unread is None:
            unread = self.last_uses[block] = last_uses(block)
        executed = 0
        for place, (instruction, dead) in enumerate(zip(block.instructions, unread, strict=True)):
            self.count(instruction)
            if self.has_large and place >= executed and instruction.operation.lanewise:
                executed = place + self._execute_chain(block, place, frame)
            if place < executed:
                for value in dead:
                    frame.pop(value, None)
                continue
            operation = instruction.operation
            operands = tuple([frame[operand] for operand in instruction.operands])
            try:
                if isinstance(operation, Stepwise):
                    results = yield from operation.steps(*operands, env=Within(self, instruction, frame))
                else:
                    result = operation.execute(*operands, env=self)
                    results = result if isinstance(result, tuple) else (result,)
            except NumericsFailure as failure:
                raise Rejection([failed(instruction, failure)]) from failure
            except MemoryError as error:
                raise UnsupportedConstruct("execute.more_memory", instruction.location) from error
            if self.tape is not None:
                results = self._record(operation, operands, results, instruction.location)
            if self.observer is not None:
                self.observer(instruction, results)
            for value, array in zip(instruction.results, results, strict=True):
                frame[value] = array
            for value in dead:
                del frame[value]
        results = tuple([frame[result] for result in block.results])
        if block.exit == "return":
            raise _Returned(results)
        return results

    def _execute_chain(self, block: Block, place: int, frame: Frame) -> int:
        """Execute elementwise instructions from `place` on together, slice by slice of large arrays of one shape.

        Return their number, or 0 if they are fewer than two, are observed or fail: they must then run one by one.
        Values that nothing reads afterwards have memory for one slice only.
        """
        shape = max((frame[value].shape for value in block.instructions[place].operands), key=prod, default=())
        row = prod(shape[1:])
        if prod(shape) < LARGE or row > BLOCK or self.tape is not None or self.observer is not None:
            return 0
        chain = chain_from(block, place, shape, frame)
        if len(chain) < 2:
            return 0
        produced = {value for instruction in chain for value in instruction.results}
        live = produced.difference(*self.last_uses[block][place : place + len(chain)])
        read = {value for instruction in chain for value in instruction.operands}
        outer = {value: frame[value] for value in read - produced}
        whole: dict[Value, npt.NDArray[Any]] = {}
        part: Frame = {}
        try:
            for start in range(0, shape[0], BLOCK // row):
                rows = slice(start, start + BLOCK // row)
                part = {value: Array(x.dtype, x.values[rows] if x.shape else x.values) for value, x in outer.items()}
                for instruction in chain:
                    operands = [part[value] for value in instruction.operands]
                    (value,) = instruction.results
                    part[value] = instruction.operation.execute(*operands, env=self)
                for value in live:
                    values = part[value].values
                    if values.shape:
                        whole.setdefault(value, np.empty(shape, values.dtype))[rows] = values
        except (NumericsFailure, MemoryError):
            return 0
        frame.update((value, Array(part[value].dtype, whole.get(value, part[value].values))) for value in live)
        return len(chain)

    def count(self, instruction: Instruction) -> None:
        """Count a step: an instruction, or one turn of its region. Raises `Rejection` when there are too many."""
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Rejection([too_many_steps(instruction)])

    def next_stream(self) -> int:
        """Return the number of a random stream that nothing drew from before."""
        stream, self.stream = self.stream, (self.stream + 1) % (1 << 64)
        return stream

    def _record(
        self, operation: Operation, operands: tuple[Array, ...], results: tuple[Array, ...], location: Location
    ) -> tuple[Array, ...]:
        """Record an execution with new result objects: differentiation tells arrays apart by identity."""
        if isinstance(operation, Stepwise) and operation.transparent:
            return self._renewed(results)
        assert self.tape is not None
        fresh = tuple(Array(result.dtype, result.values) for result in results)
        self.tape.add(Executed(operation, operands, fresh, location))
        return fresh

    def _renewed(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the same arrays as new objects, since an argument and the value passed for it are distinct values."""
        assert self.tape is not None
        fresh = tuple(Array(array.dtype, array.values) for array in arrays)
        for before, after in zip(arrays, fresh, strict=True):
            identity = Identity(x=type_of(before))
            self.tape.add(Executed(identity, (before,), (after,), self.module.location))
        return fresh


@dataclass(frozen=True)
class Within:
    """The `StepEnvironment` of one instruction."""

    interpreter: Interpreter
    instruction: Instruction
    frame: Frame

    @property
    def location(self) -> Location:
        """The location of the instruction."""
        return self.instruction.location

    @property
    def seed(self) -> int:
        """The seed of the interpreter."""
        return self.interpreter.seed

    def next_stream(self) -> int:
        """Return the next stream of the interpreter."""
        return self.interpreter.next_stream()

    def region(self, index: int, arguments: tuple[Array, ...]) -> Steps:
        """Run a region of the instruction; return what it yields."""
        self.interpreter.count(self.instruction)
        return self.interpreter.block(self.instruction.regions[index], arguments, self.frame)

    def call(self, function: str, arguments: tuple[Array, ...]) -> Steps:
        """Run another function of the module; return its results."""
        return self.interpreter.function(self.interpreter.module.functions[function], arguments)

    def number_of(self, function: str) -> Array:
        """Return the number of a function among those of the module."""
        return Array(NUMBERS, np.asarray(list(self.interpreter.module.functions).index(function), NUMBERS.carrier))

    def function_of(self, number: Array) -> str:
        """Return the function with that number."""
        return list(self.interpreter.module.functions)[int(number.values)]

    def expand(self, operation: Composite, operands: tuple[Array, ...]) -> Steps:
        """Run the operations of a composite, built once for each instruction and shapes."""
        key = (self.instruction, tuple([operand.shape for operand in operands]))
        block = self.interpreter.expansions.get(key)
        if block is None:
            block = self.interpreter.expansions[key] = self._expansion(operation, operands)
        return self.interpreter.block(block, operands, {})

    def _expansion(self, operation: Composite, operands: tuple[Array, ...]) -> Block:
        actual = on_types_of(operation, operands)
        build = Builder(self.location)
        arguments = tuple(build.value(type_) for _, type_ in actual.operand_types)
        try:
            actual.results()
        except Refusal as refusal:
            raise Rejection([refused_by(actual, refusal, self.location, "execute")]) from refusal
        built = actual.decompose(build, *arguments)  # type: ignore[attr-defined]  # still the same class
        return build.block(arguments, built if isinstance(built, tuple) else (built,))

    def differentiate(self, y: Array, wrt: tuple[Array, ...]) -> Steps:
        """Return the gradients of the sum of y's elements, computed backwards along what was executed so far."""
        interpreter = self.interpreter
        assert interpreter.tape is not None

        def run(block: Block, arguments: tuple[Array, ...]) -> Steps:
            return interpreter.block(block, arguments, {})

        return gradients(interpreter.tape, run, y, wrt, self.location)


def chain_from(block: Block, place: int, shape: tuple[int, ...], frame: Frame) -> list[Instruction]:
    """Return the elementwise instructions from `place` on whose operands are scalars or have one shape."""
    chain: list[Instruction] = []
    chains: dict[Value, tuple[int, ...]] = {}
    for index in range(place, len(block.instructions)):
        instruction = block.instructions[index]
        shapes = {chains[value] if value in chains else frame[value].shape for value in instruction.operands}
        type_ = instruction.results[0].type if instruction.operation.lanewise else None
        if not isinstance(type_, Tensor | Scalar) or not shapes <= {shape, ()} or (type_.shape and shape not in shapes):
            break
        chain.append(instruction)
        chains[instruction.results[0]] = shape if type_.shape else ()
    return chain


def last_uses(block: Block) -> list[tuple[Value, ...]]:
    """Return for each instruction the values of its block that nothing reads after it, whose memory is then freed."""
    alive = {value for instruction in block.instructions for value in instruction.results} - set(block.results)
    dead = []
    for instruction in reversed(block.instructions):
        last = alive.intersection([*instruction.results, *_read_by(instruction)])
        alive -= last
        dead.append(tuple(last))
    return dead[::-1]


def _read_by(instruction: Instruction) -> Iterator[Value]:
    """Yield the values that an instruction and its regions read."""
    yield from instruction.operands
    for region in instruction.regions:
        for inner in region.instructions:
            yield from _read_by(inner)
        yield from region.results


def reachable(module: Module, function: Function) -> list[Instruction]:
    """Return every instruction that running a function may execute."""
    instructions: list[Instruction] = []
    pending, visited = [function.name], set()
    while pending:
        name = pending.pop()
        if name in visited or name not in module.functions:
            continue
        visited.add(name)
        body = list(module.functions[name].body.walk())
        instructions += body
        attributes = [instruction.operation.attributes for instruction in body]
        pending += [str(own["callee"]) for own in attributes if "callee" in own]
    return instructions


def too_many_steps(instruction: Instruction) -> Diagnostic:
    """Return the diagnostic of a program that executes too many steps."""
    message = "the program has run its most steps and is not done"
    refusal = Refusal("types", message, "a program that ends", "", "does a loop never end?")
    return diagnostic_of(refusal.by(instruction.operation), instruction.location, phase="execute")


def failed(instruction: Instruction, failure: NumericsFailure) -> Diagnostic:
    """Return the diagnostic of a failure at run time, with the place of the expression."""
    if isinstance(failure, DivisionByZero):
        return divided_by_zero(instruction, failure)
    if isinstance(failure, ShapeMismatch):
        operands = tuple(f"{name} is {type_}" for name, type_ in instruction.operation.operand_types)
        return diagnostic_of(Refusal("shapes", str(failure)), instruction.location, operands, "execute")
    return refused_by(instruction.operation, Refusal("numerics", str(failure)), instruction.location, "execute")


def divided_by_zero(instruction: Instruction, failure: DivisionByZero) -> Diagnostic:
    """Return the diagnostic of a zero divisor, at the place of the quotient, the same at every level of IR."""
    remedy = "make sure that no divisor is zero"
    refusal = Refusal("numerics", f"divide: {failure}", "divisors other than zero", "AMB-LANG-55", remedy)
    return diagnostic_of(refusal, instruction.location, phase="execute")
