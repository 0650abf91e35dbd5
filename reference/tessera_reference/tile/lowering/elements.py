"""The kernel of a nest, and the elements of its operations (spec sections 3.2, 8.1, 16)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

from ...graph.constant import Constant, ConstTensor, LayoutCast
from ...graph.elementwise import Cast, Elementwise, Identity
from ...graph.movement import (
    Broadcast,
    Concat,
    Entry,
    Gather,
    Iota,
    Pad,
    Reshape,
    Slice,
    StridedSlice,
    Transpose,
    Update,
    held_in,
)
from ...graph.term import Term
from ...ir.operation import Function, Instruction, Names, Operation, Refusal, Role
from ...ir.targets import Target
from ...ir.types import Memref, Numeric, Scalar, Tensor, Value
from ...numerics.formats import DTYPES, DType
from ...numerics.movement import Stretch
from ...schedule.nests import Nest
from ..interpreter import Launch
from .kernel import Condition, Extents, Index, KernelBuilder, Position, broadcast_to, extents_of, linear, unravelled

# The kernel of a nest: its parameters, and the passing of the host's values (spec sections 8.1, 16).
#
# Input buffers first, output buffers next, scalars last. A scalar of 32 or 64 bits that an ABI takes is a parameter;
# any other is passed as a buffer of one element, as is a scalar result (AMB-LANG-235).


SCALARS = ("int32", "int64", "fp32", "fp64")
"""The dtypes of scalar parameters (LANG-08.1-05)."""


@dataclass(frozen=True, eq=False)
class Extra:
    """An input that the lowering adds: a constant of the host."""

    operation: ConstTensor

    @cached_property
    def value(self) -> Value:
        """The value that represents it among the inputs."""
        return Value("constant", self.operation.infer())


class NestKernel(KernelBuilder):
    """A kernel under construction, whose parameters are the values that a nest reads and writes."""

    def __init__(self, nest: Nest, target: Target, extras: Iterable[Extra] = ()) -> None:
        super().__init__(nest.location)
        self.nest = nest
        self.target = target
        self.extras = tuple(extras)
        inputs = (*nest.inputs, *(extra.value for extra in self.extras))
        self.buffers = tuple(value for value in inputs if not is_parameter(value.type))
        self.scalars = tuple(value for value in inputs if is_parameter(value.type))
        self.through: dict[Value, Callable[[Position], Term]] = {}
        """Readers of the elements of staged inputs."""
        self._of: dict[Value, Value] = {}
        self._made: dict[Value, Value] = {}
        for number, value in enumerate(self.buffers):
            self._of[value] = Value(f"in{number}", memref_of(value))
        for number, value in enumerate(nest.outputs):
            self._made[value] = Value(f"out{number}", memref_of(value))
        for number, value in enumerate(self.scalars):
            self._of[value] = Value(f"scalar{number}", value.type)

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The parameters in the order of the ABI (LANG-16-02)."""
        inputs, scalars = ([self._of[value] for value in values] for values in (self.buffers, self.scalars))
        return (*inputs, *self._made.values(), *scalars)

    def memory_of(self, value: Value) -> Value:
        """Return the buffer of an input."""
        return self._of[value]

    def read(self, value: Value, at: Position) -> Term:
        """Return an element of an input, from its stage if it has one."""
        return self.through[value](at) if value in self.through else self.read_there(value, at)

    def read_there(self, value: Value, at: Position) -> Term:
        """Return an element of an input from global memory, or the scalar."""
        parameter = self._of[value]
        if isinstance(parameter.type, Scalar):
            return self.term(parameter)
        return self.load(parameter, at or (self.index(0),))

    def write(self, value: Value, at: Position, element: Term) -> None:
        """Write an element of an output."""
        self.store(element, self._made[value], at or (self.index(0),))

    def finish(self, name: str, grid: Extents, threads: int) -> Function:
        """Return the kernel. Raises `Refusal` where it does not fit the target."""
        room = self.target.shared_bytes
        if self.shared_bytes > room:
            message = f"its tiles take {self.shared_bytes} bytes of shared memory"
            requirement = f"at most {room} bytes, which a block of {self.target.name} has"
            raise Refusal("schedule", message, requirement, "LANG-07.3-03", "choose smaller tiles or a smaller depth")
        return self.function(name, self.parameters, grid, threads, self.target)

    def launch(self, name: str, names: Names) -> tuple[Instruction, ...]:
        """Return the host instructions that replace the nest; their values have fresh names."""
        instructions: list[Instruction] = []
        replaced: dict[Value, Value] = {}
        for extra in self.extras:
            replaced[extra.value] = Value(names.unique(extra.value.name), extra.value.type)
            instructions.append(self._host(extra.operation, (), (replaced[extra.value],)))
        arguments = []
        for own in self.buffers:
            value = replaced.get(own, own)
            if isinstance(value.type, Scalar):
                buffer = _in_buffer(value, names)
                instructions.append(self._host(Reshape(x=value.type, shape=(1,)), (value,), (buffer,)))
                value = buffer
            arguments.append(value)
        arguments += self.scalars
        outputs = self.nest.outputs
        results = tuple(_in_buffer(value, names) if isinstance(value.type, Scalar) else value for value in outputs)
        types = tuple(value.type for value in results)
        operation = Launch(arguments=tuple(map(numeric, arguments)), kernel=name, returns=types)
        instructions.append(self._host(operation, tuple(arguments), results))
        for value, buffer in zip(outputs, results, strict=True):
            if buffer is not value:
                instructions.append(self._host(Reshape(x=numeric(buffer), shape=()), (buffer,), (value,)))
        return tuple(instructions)

    def _host(self, operation: Operation, operands: tuple[Value, ...], results: tuple[Value, ...]) -> Instruction:
        return Instruction(operation, operands, results, self.location)


def _in_buffer(value: Value, names: Names) -> Value:
    """Return the buffer of a scalar."""
    return Value(names.unique(f"{value.name}_buffer"), Tensor((1,), dtype_of(value)))


def is_parameter(type_: object) -> bool:
    """True if a value of the host is passed by value."""
    return isinstance(type_, Scalar) and type_.dtype.name in SCALARS


def numeric(value: Value) -> Numeric:
    """Return the type of a tensor or scalar."""
    assert isinstance(value.type, Tensor | Scalar)
    return value.type


def dtype_of(value: Value) -> DType:
    """Return the dtype of a tensor or scalar."""
    return numeric(value).dtype


def memref_of(value: Value) -> Memref:
    """Return the type of the buffer in which a value of the host is passed."""
    return Memref(extents_of(value.type) or (1,), dtype_of(value))


# Single elements of fused operations: the elements that each operation reads for one element of its result, and the
# computation of it.
#
# Elementwise operations are applied to scalars, as they apply to each element (section 3.2); operations that move
# elements become index arithmetic. First the needed positions are propagated from results to operands; then the
# elements are computed in program order, once for each needed position. The rules for moving elements are in
# `movements`.


@dataclass(frozen=True)
class Reading:
    """The operand elements that one element of a result needs; `combine` computes it from them, in that order."""

    elements: tuple[tuple[Value, Position], ...]
    combine: Callable[..., Term]


@singledispatch
def reading(operation: Operation, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the reading of an operation's element at a position of its result. Raises `Refusal`."""
    message = f"no kernel holds {operation.short_name}"
    requirement = "operations on elements, products, and operations on rows"
    raise Refusal("tile", message, requirement, "LANG-08.2-03", "leave it in the host function")


def _of_elements(operation: Operation, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the operands' elements at the position, or at its projection where an operand broadcasts."""
    elements = tuple((value, broadcast_to(at, extents_of(value.type))) for value in instruction.operands)
    return Reading(elements, lambda *operands: applied(operation, operands, kernel))


for _kind in (Elementwise, Constant):
    reading.register(_kind, _of_elements)


def applied(operation: Operation, operands: Sequence[Term], kernel: NestKernel) -> Term:
    """Return the operation on scalars."""
    own = {name: getattr(operation, name) for name, role in operation.roles.items() if role in _STATED}
    return kernel.term(kernel.build(type(operation), *(operand.value for operand in operands), **own))


_STATED = (Role.ATTRIBUTE, Role.HIDDEN)


def evaluate(
    kernel: NestKernel,
    instructions: Sequence[Instruction],
    values: Sequence[Value],
    at: Position,
    terms_of: Mapping[Value, Term] | None = None,
) -> tuple[Term, ...]:
    """Return elements at a position of values that instructions compute, or that `terms_of` has. Raises `Refusal`."""
    terms = {
        (value, place): term
        for value, term in (terms_of or {}).items()
        for place in (at, broadcast_to(at, extents_of(value.type)))  # so that an extent of 1 is found
    }
    needed: dict[Value, dict[Position, None]] = {value: {at: None} for value in values}
    plans: list[tuple[Value, Position, Reading]] = []
    for instruction in reversed(instructions):
        (result,) = instruction.results
        for position in needed.get(result, {}):
            if (result, position) not in terms:
                rule = reading(instruction.operation, instruction, position, kernel)
                plans.append((result, position, rule))
                for value, place in rule.elements:
                    needed.setdefault(value, {})[place] = None
    for result, position, rule in reversed(plans):
        for value, place in rule.elements:
            if (value, place) not in terms:
                terms[value, place] = kernel.read(value, place)
        terms[result, position] = rule.combine(*(terms[element] for element in rule.elements))
    return tuple(terms[value, at] for value in values)


# Operations that move elements, as index arithmetic: the source of the element at a position (section 3.2).
#
# An element with several possible sources is read from each of them, at a position clamped to its bounds, and selected.
# So a read is out of bounds only where the program's own index is, which the interpreter reports as Graph IR does
# (AMB-LANG-96).


def _only(value: Value, at: Position) -> Reading:
    """Return the element of the only operand, unchanged."""
    return Reading(((value, at),), lambda element: element)


@reading.register(Identity)
@reading.register(LayoutCast)
def _same(operation: object, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    return _only(instruction.operands[0], at)


@reading.register
def _transpose(operation: Transpose, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    return _only(instruction.operands[0], tuple(at[operation.perm.index(axis)] for axis in range(len(at))))


@reading.register
def _broadcast(operation: Broadcast, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    (x,) = instruction.operands
    return _only(x, broadcast_to(at, extents_of(x.type)))


@reading.register
def _reshape(operation: Reshape, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the element at the same row-major index."""
    (x,), (result,) = instruction.operands, instruction.results
    place = linear(at, extents_of(result.type)) if at else kernel.index(0)
    return _only(x, unravelled(place, extents_of(x.type)))


@reading.register
def _iota(operation: Iota, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    position = at[operation.axis % len(at)]
    return Reading((), lambda: kernel.term(kernel.build(Cast, position.value, dtype=operation.dtype)))


@reading.register
def _concat(operation: Concat, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the element of the last part that begins at or before the position."""
    axis = operation.axis % len(at)
    elements: list[tuple[Value, Position]] = []
    starts: list[int] = []
    start = 0
    for part in instruction.operands:
        extent = extents_of(part.type)[axis]
        if extent:
            elements.append((part, (*at[:axis], (at[axis] - start).between(0, extent - 1), *at[axis + 1 :])))
            starts.append(start)
        start += extent

    def combine(*parts: Term) -> Term:
        result = parts[0]
        for begin, part in zip(starts[1:], parts[1:], strict=True):
            result = kernel.chosen(at[axis].below(begin), result, part)
        return result

    return Reading(tuple(elements), combine)


@reading.register
def _pad(operation: Pad, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the operand's element, or the padding value."""
    (x,) = instruction.operands
    shape, dtype = extents_of(x.type), dtype_of(x)
    frame = held_in(dtype, operation.value)
    assert frame is not None, "infer has checked it"
    if 0 in shape:
        return Reading((), lambda: kernel.exactly(frame, dtype))
    inner = tuple(index - low for index, low in zip(at, operation.low, strict=True))
    inside: list[Condition] = []
    for index, extent, low, high in zip(inner, shape, operation.low, operation.high, strict=True):
        inside += [index.at_least(0)] if low else []
        inside += [index.below(extent)] if high else []
    nearest = tuple(index.between(0, extent - 1) for index, extent in zip(inner, shape, strict=True))
    return Reading(
        ((x, nearest),), lambda element: kernel.chosen(kernel.every(*inside), element, kernel.exactly(frame, dtype))
    )


@reading.register
def _gather(operation: Gather, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the slice selected by the index at this position."""
    x, indices = instruction.operands
    shape = extents_of(x.type)
    axis, rank = operation.axis % len(shape), len(extents_of(indices.type))

    def combine(index: Term) -> Term:
        place = _as_index(index, shape[axis], kernel)
        return kernel.read(x, (*at[:axis], place, *at[axis + rank :]))

    return Reading(((indices, at[axis : axis + rank]),), combine)


def _as_index(index: Term, extent: int, kernel: NestKernel) -> Index:
    """Return an index of the program as int32; a 64-bit index out of bounds becomes -1, which is out of bounds too."""
    if index.dtype.name == "int64":
        low, high = (kernel.number(bound, index.dtype) for bound in (0, extent))
        inside = kernel.every(index.greater_equal(low), index < high)
        index = kernel.chosen(inside, index, kernel.number(-1, index.dtype)).cast_to(DTYPES["int32"])
    return kernel.index(index.value)


@reading.register
def _slice(operation: Slice | StridedSlice, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    x, *bounds = instruction.operands
    return _only(x, _selected(operation.spec, bounds, x, at, kernel))


def _selected(spec: tuple[str, ...], bounds: list[Value], x: Value, at: Position, kernel: NestKernel) -> Position:
    """Return the position in the operand of a slice's element at a position."""
    left, place = list(at), []
    for text, extent in zip(spec, extents_of(x.type), strict=False):
        entry = Entry.read(text)
        if entry.is_index:
            place.append(_index_of(entry, bounds, kernel))
        else:
            positions = _positions(entry, extent)
            place.append(left.pop(0) * positions.step + positions.start)
    return (*place, *left)


def _index_of(entry: Entry, bounds: list[Value], kernel: NestKernel) -> Index:
    """Return the index that drops a dimension."""
    (part,) = entry.parts
    if part.operand is None:
        assert part.value is not None
        return kernel.index(part.value)
    return kernel.index(kernel.read(bounds[part.operand], ()).value)


def _positions(entry: Entry, extent: int) -> range:
    """Return the positions that a slice takes of a dimension; an empty one begins anywhere. Raises `Refusal`."""
    if not entry.is_constant:
        message = "the bounds of a slice are not known"
        requirement = "known extents before Tile IR"
        remedy = "write the bounds as integers, or leave the operation in the host function"
        raise Refusal("shapes", message, requirement, "LANG-11-02", remedy)
    stretch = entry.given(())
    assert isinstance(stretch, Stretch)
    positions = stretch.over(extent)
    assert positions is not None
    return positions


@reading.register
def _update(operation: Update, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """Return the value's element where the position is in the part, else the operand's; both are read."""
    x, value, *bounds = instruction.operands
    shape = extents_of(x.type)
    inside: list[Condition] = []
    place: list[Index] = []
    corner: list[Index] = []
    for entry, index, extent in zip(map(Entry.read, operation.spec), at, shape, strict=False):
        if entry.is_index:
            chosen = _index_of(entry, bounds, kernel)
            inside.append(index.equals(chosen))
            corner.append(chosen)
        else:
            positions = _positions(entry, extent)
            ahead = (index - positions.start) if positions.step > 0 else (kernel.index(positions.start) - index)
            inside += _within(ahead, len(positions), abs(positions.step))
            place.append((ahead // abs(positions.step)).between(0, max(len(positions) - 1, 0)))
            corner.append(kernel.index(0))
    rest = at[len(operation.spec) :]
    is_empty = False in inside
    taken_from = broadcast_to((*place, *rest), extents_of(value.type))
    elements = [(x, at)] if is_empty else [(x, at), (value, taken_from)]
    if bounds:  # reading there detects an index of the program that is out of bounds
        elements.append((x, (*corner, *rest)))

    def combine(old: Term, *new: Term) -> Term:
        return old if is_empty else kernel.chosen(kernel.every(*inside), new[0], old)

    return Reading(tuple(elements), combine)


def _within(ahead: Index, count: int, step: int) -> list[Condition]:
    """Return the conditions that a position at this distance from the first is one of `count`, `step` apart."""
    if not count:
        return [False]
    conditions = [ahead.at_least(0), ahead.below((count - 1) * step + 1)]
    return [*conditions, (ahead % step).equals(0)] if step > 1 else conditions
