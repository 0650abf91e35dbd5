"""The operations of `tessera.schedule`: tile, fuse, pipeline, prefetch, layout_cast (spec sections 3.3, 6.1, 6.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from ..graph.grad import Grad
from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Function,
    Instruction,
    Module,
    Operand,
    Operands,
    Operation,
    Refusal,
    derived,
    operation,
)
from ..ir.text import read_layout
from ..ir.types import LAYOUTS, Dim, Numeric, Scalar, Tensor, Type, Value, show_dim
from ..numerics.array import Array

# Tile sizes against extents: divisibility and explicit padding (section 6.3; LANG-06.3-01).
#
# A size that does not divide its extent, or is larger than it, needs padding: extent and padding together are then a
# multiple of it (AMB-LANG-211).


Padding = int | tuple[int, ...] | None
"""A number pads every dimension that its size does not divide; a list pads m, n and, where it is tiled, k."""

SIZES = ("m", "n", "k")


def matrix_of(type_: Numeric) -> tuple[Dim, Dim]:
    """Return the last two extents, which m and n tile; missing ones are 1."""
    rows, columns = (1, 1, *type_.shape)[-2:]
    return rows, columns


def padding_of(pad: Padding, position: int, size: int, extent: int) -> int:
    """Return the padding of the dimension that the m, n or k at `position` tiles."""
    if pad is None:
        return 0
    if isinstance(pad, int):
        return pad if extent % size else 0
    return pad[position] if position < len(pad) else 0


def require_cover(position: int, size: int, extent: Dim, pad: Padding) -> None:
    """Require that a tile size divides its extent plus padding; accept any size for an unknown extent.

    Raises `Refusal`.
    """
    if not isinstance(extent, int):
        return
    name, padding = SIZES[position], padding_of(pad, position, size, extent)
    missing = -extent % size
    beside = f" with padding {padding}" if padding else ""
    if (extent + padding) % size != 0:
        message = f"tiles of {name}={size} do not cover the extent {show_dim(extent)}{beside}"
        requirement = f"{name} divides the extent, or the extent and its padding"
        raise Refusal("schedule", message, requirement, "LANG-06.3-01", f"pad by {missing}")


def needed_padding(sizes: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the least padding with which tiles cover their extents."""
    return tuple(-extent % size for size, extent in zip(sizes, extents, strict=True))


# `tessera.schedule.tile`, `fuse`, `pipeline` and `prefetch`: the schedule of a value (spec section 6.1).
#
# Each returns its last operand unchanged; instructions that read the result read the value under that schedule. Rules
# that depend on more than the operands, such as the kind of a value's producer, are checked by `verifier`.


SCOPES = ("shared", "global")
"""The memories that a prefetch may name (LANG-06.2-02)."""

LEAST_ALIGNMENT = 16
"""The least alignment in bytes (AMB-LANG-36)."""


@dataclass(frozen=True)
class ScheduleOperation(Operation):
    """Base of schedule operations: operands of any layout, and the last operand as the result."""

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Type:
        """Return the type of the last operand, after checking the schedule."""
        self.check()
        return self.operand_types[-1][1]

    def check(self) -> None:
        """Refuse attributes that are not a schedule of these operands. Raises `Refusal`."""

    def execute(self, *operands: Array, env: Environment) -> Array:
        return operands[-1]

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        return (*(None,) * (len(at.operands) - 1), at.dy)


@operation("tessera.schedule.tile", clauses=("LANG-06.1-01", "LANG-06.2-01", "LANG-06.3-01"))
class Tile(ScheduleOperation):
    """The value is computed in tiles: m of the second last dimension, n of the last, k of the contraction.

    `pad`: see `tiling`. k is for contractions only (AMB-LANG-77).
    """

    x: Operand[Tensor]
    m: Attribute[int]
    n: Attribute[int]
    k: Attribute[int | None] = None
    pad: Attribute[int | tuple[int, ...] | None] = None

    def check(self) -> None:
        """Require sizes of at least 1 that cover the known shape of the value."""
        for name, size in zip(SIZES, (self.m, self.n, self.k), strict=True):
            if size is not None and size < 1:
                raise Refusal("schedule", f"{name} is {size}", f"{name} >= 1", "LANG-06.3-01")
        if self.k is not None and self.x.rank < 2:
            message = f"k tiles a contraction, and {self.x} is none"
            raise Refusal("schedule", message, "k on the result of a matmul only", "LANG-06.1-01", "leave out k")
        self._check_padding()
        for position, (size, extent) in enumerate(zip((self.m, self.n), matrix_of(self.x), strict=True)):
            require_cover(position, size, extent, self.pad)

    def _check_padding(self) -> None:
        numbers = (self.pad,) if isinstance(self.pad, int) else self.pad or ()
        most = 2 if self.k is None else 3
        if any(number < 0 for number in numbers):
            raise Refusal("schedule", f"pad is {self.pad}", "numbers of at least 0", "LANG-06.3-01")
        if isinstance(self.pad, tuple) and not 2 <= len(numbers) <= most:
            message = f"pad has {len(numbers)} numbers"
            requirement = f"one number, or one for each of {', '.join(SIZES[:most])}"
            raise Refusal("schedule", message, requirement, "LANG-06.3-01")


@operation("tessera.schedule.fuse", clauses=("LANG-06.1-02", "LANG-06.2-01"))
class Fuse(ScheduleOperation):
    """The operations that produce the operands run in one nest; the last operand is the result (AMB-LANG-81)."""

    parts: Operands[Tensor | Scalar]

    def check(self) -> None:
        if len(self.parts) < 2:
            message = f"fuses {len(self.parts)} value{'s' * (len(self.parts) != 1)}"
            raise Refusal("schedule", message, "at least two values", "LANG-06.1-02")


@operation("tessera.schedule.pipeline", clauses=("LANG-06.1-03", "LANG-06.2-04", "LANG-06.2-05", "LANG-04-11"))
class Pipeline(ScheduleOperation):
    """Loads run `depth` - 1 tiles ahead of the computation, through `depth` buffers (AMB-LANG-33).

    `stages` names stages; an edge (a, b) orders a before b (AMB-LANG-212).
    """

    x: Operand[Tensor]
    double_buffer: Attribute[bool] = False
    depth: Attribute[int] = derived(lambda self: 2 if self.double_buffer else 1)
    stages: Attribute[tuple[str, ...]] = ()
    edges: Attribute[tuple[tuple[str, str], ...]] = ()

    def check(self) -> None:
        """Require a depth of at least 1, two buffers for double buffering, and an order of the stages."""
        if self.depth < 1:
            raise Refusal("schedule", f"depth is {self.depth}", "depth >= 1", "LANG-06.2-05")
        if self.double_buffer and self.depth < 2:
            message = f"double_buffer with depth {self.depth}"
            raise Refusal("schedule", message, "depth >= 2 with double_buffer=true", "LANG-06.2-05", "depth=2")
        if len(set(self.stages)) != len(self.stages):
            message = f"a stage is named twice among {', '.join(self.stages)}"
            raise Refusal("schedule", message, "stages of different names", "LANG-06.2-04")
        for stage in (stage for edge in self.edges for stage in edge):
            if self.stages and stage not in self.stages:
                message = f"an edge names {stage!r}, which is no stage"
                raise Refusal("schedule", message, f"one of {', '.join(self.stages)}", "LANG-06.2-04")
        self._check_order()

    def _check_order(self) -> None:
        before: dict[str, list[str]] = {}
        for first, then in self.edges:
            before.setdefault(then, []).append(first)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " -> ".join(error.args[1])
            message, requirement = f"the stages form a cycle: {circle}", "stages without a cycle"
            remedy = "take an edge of the cycle away"
            raise Refusal("schedule", message, requirement, "LANG-06.2-04", remedy) from None


@operation("tessera.schedule.prefetch", clauses=("LANG-06.1-04", "LANG-06.2-02", "LANG-06.2-03"))
class Prefetch(ScheduleOperation):
    """Nests that read the result read the operand from that memory, into which they copy it tile by tile.

    `global` leaves it in place, aligned.
    """

    x: Operand[Tensor]
    scope: Attribute[str] = "shared"
    align: Attribute[int] = LEAST_ALIGNMENT

    def check(self) -> None:
        """Require a known scope, and an alignment that is a power of two of at least 16 (AMB-LANG-36)."""
        if self.scope not in SCOPES:
            raise Refusal("schedule", f"there is no scope {self.scope!r}", " or ".join(SCOPES), "LANG-06.2-02")
        if self.align < LEAST_ALIGNMENT or self.align & self.align - 1 != 0:
            message = f"align is {self.align}"
            raise Refusal("schedule", message, f"a power of two of at least {LEAST_ALIGNMENT}", "LANG-06.1-04")


# `tessera.schedule.layout_cast`: a value in another layout (spec sections 3.3, 6.1, 6.3).


@operation("tessera.schedule.layout_cast", clauses=("LANG-06.1-05", "LANG-06.3-02", "LANG-03.3-02"))
class LayoutCast(ScheduleOperation):
    """The same elements in another layout: a copy if `materialize` is set, else the layout that the producer writes.

    Without a copy the producer writes that layout itself and every consumer takes it (AMB-LANG-213).
    """

    x: Operand[Tensor]
    to: Attribute[str]
    materialize: Attribute[bool] = False

    def infer(self) -> Tensor:
        return replace(self.x, layout=read_layout(self.to))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        return (build(LayoutCast, at.dy, to=self.x.layout.text, materialize=True),)


# The schedule operations of a function, by the values that they concern (section 6.1).


Fusion = tuple[Instruction, tuple[Value, ...]]
"""The instruction that requests a fusion, and the values whose producers it fuses."""


class Annotations:
    """The schedule of one function. Schedule operations return an operand; a value's *root* precedes them all."""

    def __init__(self, function: Function) -> None:
        self.tiles: dict[Value, Tile] = {}
        self.pipelines: dict[Value, Pipeline] = {}
        self.fusions: list[Fusion] = []
        self.is_host = any(isinstance(step.operation, Grad) for step in function.body.walk())
        """True if the function differentiates, and so forms no nests (AMB-LANG-215)."""
        self.prefetches: dict[Value, Instruction] = {}
        """The last prefetch on the way from the root to each value."""
        self._roots: dict[Value, Value] = {}
        for instruction in function.body.walk():
            if is_alias(instruction):
                self._note(instruction)

    def _note(self, instruction: Instruction) -> None:
        operation, (result,), operand = instruction.operation, instruction.results, instruction.operands[-1]
        root = self._roots[result] = self.root(operand)
        if operand in self.prefetches:
            self.prefetches[result] = self.prefetches[operand]
        if isinstance(operation, Tile):
            self.tiles[root] = operation
        elif isinstance(operation, Pipeline):
            self.pipelines[root] = operation
        elif isinstance(operation, Prefetch):
            self.prefetches[result] = instruction
        elif isinstance(operation, Fuse):
            self.fusions.append((instruction, tuple(self.root(value) for value in instruction.operands)))

    def root(self, value: Value) -> Value:
        """Return the value before all schedule operations."""
        return self._roots.get(value, value)


def is_alias(instruction: Instruction) -> bool:
    """True if an instruction only returns its last operand: every schedule operation but a layout cast."""
    operation = instruction.operation
    return isinstance(operation, ScheduleOperation) and not isinstance(operation, LayoutCast)


def host_functions(module: Module) -> frozenset[str]:
    """Return the functions that form no nests: those that differentiate and all that they call (AMB-LANG-215).

    Differentiation traverses the executed operations in reverse, so each of them must be executed separately.
    """
    pending = [name for name, function in module.functions.items() if Annotations(function).is_host]
    functions: set[str] = set()
    while pending:
        name = pending.pop()
        if name in functions or name not in module.functions:
            continue
        functions.add(name)
        for instruction in module.functions[name].body.walk():
            calls = instruction.operation.calls
            pending += [str(instruction.operation.attributes[calls])] if calls else []
    return frozenset(functions)
