"""Operations that move elements, as index arithmetic: where the element at a position comes from (section 3.2).

An element with several possible sources is read from each of them, at a position clamped to its bounds, and selected.
So a read is out of bounds only where the program's own index is, which the interpreter reports as Graph IR does
(AMB-LANG-96).
"""

from __future__ import annotations

from ...graph.cast import Cast
from ...graph.gathering import Gather
from ...graph.identity import Identity
from ...graph.layouts import LayoutCast
from ...graph.movement import Concat, Iota, Pad, held_in
from ...graph.shaping import Broadcast, Reshape
from ...graph.slicing import Entry, Slice, StridedSlice, Update
from ...graph.term import Term
from ...graph.transpose import Transpose
from ...ir.module import Instruction, Value
from ...ir.operation import Refusal
from ...numerics.formats import DTYPES
from ...numerics.movement import Stretch
from .elements import Reading, reading
from .index import Condition, Index, Position, broadcast_to, linear, unravelled
from .kernel import extents_of
from .nest_kernel import NestKernel, dtype_of


def _only(value: Value, at: Position) -> Reading:
    """The element of the only operand, unchanged."""
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
    """The same row-major index."""
    (x,), (result,) = instruction.operands, instruction.results
    place = linear(at, extents_of(result.type)) if at else kernel.index(0)
    return _only(x, unravelled(place, extents_of(x.type)))


@reading.register
def _iota(operation: Iota, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    position = at[operation.axis % len(at)]
    return Reading((), lambda: kernel.term(kernel.build(Cast, position.value, dtype=operation.dtype)))


@reading.register
def _concat(operation: Concat, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """The element of the last part that begins at or before the position."""
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
        found = parts[0]
        for begin, part in zip(starts[1:], parts[1:], strict=True):
            found = kernel.chosen(at[axis].below(begin), found, part)
        return found

    return Reading(tuple(elements), combine)


@reading.register
def _pad(operation: Pad, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """The operand's element, or the padding value."""
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
        ((x, nearest),),
        lambda element: kernel.chosen(kernel.every(*inside), element, kernel.exactly(frame, dtype)),
    )


@reading.register
def _gather(operation: Gather, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """The slice selected by the index at this position."""
    x, indices = instruction.operands
    shape = extents_of(x.type)
    axis, rank = operation.axis % len(shape), len(extents_of(indices.type))

    def combine(index: Term) -> Term:
        place = _as_index(index, shape[axis], kernel)
        return kernel.read(x, (*at[:axis], place, *at[axis + rank :]))

    return Reading(((indices, at[axis : axis + rank]),), combine)


def _as_index(index: Term, extent: int, kernel: NestKernel) -> Index:
    """An index of the program as int32; a 64-bit index out of bounds becomes -1, which is out of bounds too."""
    if index.dtype.name == "int64":
        low, high = (kernel.number(bound, index.dtype) for bound in (0, extent))
        inside = kernel.every(index.greater_equal(low), index < high)
        index = kernel.chosen(inside, index, kernel.number(-1, index.dtype)).cast_to(DTYPES["int32"])
    return kernel.index(index.value)


@reading.register
def _slice(operation: Slice, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    x, *bounds = instruction.operands
    return _only(x, _selected(operation.spec, bounds, x, at, kernel))


@reading.register
def _strided_slice(operation: StridedSlice, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    (x,) = instruction.operands
    parts = zip(operation.starts, operation.stops, operation.steps, strict=True)
    return _only(x, _selected(tuple(f"{start}:{stop}:{step}" for start, stop, step in parts), [], x, at, kernel))


def _selected(spec: tuple[str, ...], bounds: list[Value], x: Value, at: Position, kernel: NestKernel) -> Position:
    """The position in the operand of the element at a position of a slice."""
    left, place = list(at), []
    for text, extent in zip(spec, extents_of(x.type), strict=False):
        entry = Entry.read(text)
        if entry.is_index:
            place.append(_index_of(entry, bounds, kernel))
        else:
            taken = _positions(entry, extent)
            place.append(left.pop(0) * taken.step + taken.start)
    return (*place, *left)


def _index_of(entry: Entry, bounds: list[Value], kernel: NestKernel) -> Index:
    """The index that drops a dimension."""
    (part,) = entry.parts
    if part.operand is None:
        assert part.value is not None
        return kernel.index(part.value)
    return kernel.index(kernel.read(bounds[part.operand], ()).value)


def _positions(entry: Entry, extent: int) -> range:
    """What a slice takes of a dimension; an empty one begins anywhere. Raises `Refusal`."""
    if not entry.is_constant:
        raise Refusal(
            "shapes",
            "the bounds of a slice are not known",
            "known extents before Tile IR",
            "LANG-11-02",
            "write the bounds as integers, or leave the operation in the host function",
        )
    stretch = entry.given(())
    assert isinstance(stretch, Stretch)
    taken = stretch.over(extent)
    assert taken is not None
    return taken


@reading.register
def _update(operation: Update, instruction: Instruction, at: Position, kernel: NestKernel) -> Reading:
    """The value's element where the position is in the part, else the operand's; both are read."""
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
            taken = _positions(entry, extent)
            ahead = (index - taken.start) if taken.step > 0 else (kernel.index(taken.start) - index)
            inside += _within(ahead, len(taken), abs(taken.step))
            place.append((ahead // abs(taken.step)).between(0, max(len(taken) - 1, 0)))
            corner.append(kernel.index(0))
    rest = at[len(operation.spec) :]
    is_empty = False in inside
    taken_from = broadcast_to((*place, *rest), extents_of(value.type))
    elements = [(x, at)] if is_empty else [(x, at), (value, taken_from)]
    if bounds:  # an index of the program that lies outside is found by reading there
        elements.append((x, (*corner, *rest)))

    def combine(old: Term, *new: Term) -> Term:
        return old if is_empty else kernel.chosen(kernel.every(*inside), new[0], old)

    return Reading(tuple(elements), combine)


def _within(ahead: Index, count: int, step: int) -> list[Condition]:
    """Whether a position at this distance from the first is one of `count` positions, `step` apart."""
    if not count:
        return [False]
    found = [ahead.at_least(0), ahead.below((count - 1) * step + 1)]
    return [*found, (ahead % step).equals(0)] if step > 1 else found
