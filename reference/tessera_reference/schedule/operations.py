"""`tessera.schedule.tile`, `fuse`, `pipeline` and `prefetch`: the schedule of a value (spec section 6.1).

Each returns its last operand unchanged; instructions that read the result read the value under that schedule. Rules
that depend on more than the operands, such as whether a value is a contraction, are checked by `verifier`.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from ..ir.module import Value
from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Operand,
    Operands,
    Operation,
    derived,
    operation,
    require,
)
from ..ir.types import LAYOUTS, Scalar, Tensor, Type
from ..numerics.array import Array
from .tiling import SIZES, matrix_of, require_cover

SCOPES = ("shared", "global")
"""The memories that a prefetch names (LANG-06.2-02)."""

LEAST_ALIGNMENT = 16
"""In bytes (AMB-LANG-36)."""


@dataclass(frozen=True)
class ScheduleOperation(Operation):
    """Base of schedule operations: operands of any layout, and the last operand as the result."""

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Type:
        """The type of the last operand, of a sound schedule."""
        self.check()
        return self.operand_types[-1][1]

    def check(self) -> None:
        """Refuse attributes that are no schedule of these operands. Raises `Refusal`."""

    def execute(self, *operands: Array, env: Environment) -> Array:
        """The last operand."""
        return operands[-1]

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """The gradient as it is, to the last operand."""
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
        """Sizes of at least 1 that cover what is known of the value's shape."""
        for name, size in zip(SIZES, (self.m, self.n, self.k), strict=True):
            require(
                size is None or size >= 1,
                "schedule",
                f"{name} is {size}",
                f"{name} >= 1",
                "LANG-06.3-01",
            )
        require(
            self.k is None or self.x.rank >= 2,
            "schedule",
            f"k tiles a contraction, and {self.x} is none",
            "k on the result of a matmul only",
            "LANG-06.1-01",
            "leave out k",
        )
        self._check_padding()
        for position, (size, extent) in enumerate(zip((self.m, self.n), matrix_of(self.x), strict=True)):
            require_cover(position, size, extent, self.pad)

    def _check_padding(self) -> None:
        numbers = (self.pad,) if isinstance(self.pad, int) else self.pad or ()
        most = 2 if self.k is None else 3
        require(
            all(number >= 0 for number in numbers),
            "schedule",
            f"pad is {self.pad}",
            "numbers of at least 0",
            "LANG-06.3-01",
        )
        require(
            not isinstance(self.pad, tuple) or 2 <= len(numbers) <= most,
            "schedule",
            f"pad has {len(numbers)} numbers",
            f"one number, or one for each of {', '.join(SIZES[:most])}",
            "LANG-06.3-01",
        )


@operation("tessera.schedule.fuse", clauses=("LANG-06.1-02", "LANG-06.2-01"))
class Fuse(ScheduleOperation):
    """The operations that produce the operands run in one nest; the last operand is the result (AMB-LANG-81)."""

    parts: Operands[Tensor | Scalar]

    def check(self) -> None:
        """At least two values."""
        require(
            len(self.parts) >= 2,
            "schedule",
            f"fuses {len(self.parts)} value{'s' * (len(self.parts) != 1)}",
            "at least two values",
            "LANG-06.1-02",
        )
        for name, type_ in self.operand_types:
            require(
                isinstance(type_, Tensor | Scalar),
                "types",
                f"{name} is {type_}, not a tensor or scalar",
                "a tensor or scalar",
                "LANG-11-01",
            )


@operation("tessera.schedule.pipeline", clauses=("LANG-06.1-03", "LANG-06.2-04", "LANG-06.2-05", "LANG-04-11"))
class Pipeline(ScheduleOperation):
    """Loads run `depth` - 1 tiles ahead of the computation, through as many buffers as `depth` says (AMB-LANG-33).

    `stages` names stages; an edge (a, b) orders a before b (AMB-LANG-212).
    """

    x: Operand[Tensor]
    double_buffer: Attribute[bool] = False
    depth: Attribute[int] = derived(lambda self: 2 if self.double_buffer else 1)
    stages: Attribute[tuple[str, ...]] = ()
    edges: Attribute[tuple[tuple[str, str], ...]] = ()

    def check(self) -> None:
        """A depth of at least 1, two buffers for double buffering, stages in some order."""
        require(self.depth >= 1, "schedule", f"depth is {self.depth}", "depth >= 1", "LANG-06.2-05")
        require(
            not self.double_buffer or self.depth >= 2,
            "schedule",
            f"double_buffer with depth {self.depth}",
            "depth >= 2 with double_buffer=true",
            "LANG-06.2-05",
            "depth=2",
        )
        require(
            len(set(self.stages)) == len(self.stages),
            "schedule",
            f"a stage is named twice among {', '.join(self.stages)}",
            "stages of different names",
            "LANG-06.2-04",
        )
        for stage in (stage for edge in self.edges for stage in edge):
            require(
                not self.stages or stage in self.stages,
                "schedule",
                f"an edge names {stage!r}, which is no stage",
                f"one of {', '.join(self.stages)}",
                "LANG-06.2-04",
            )
        self._check_order()

    def _check_order(self) -> None:
        before: dict[str, list[str]] = {}
        for first, then in self.edges:
            before.setdefault(then, []).append(first)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " -> ".join(error.args[1])
            require(
                False,
                "schedule",
                f"the stages form a cycle: {circle}",
                "stages without a cycle",
                "LANG-06.2-04",
                "take an edge of the cycle away",
            )


@operation("tessera.schedule.prefetch", clauses=("LANG-06.1-04", "LANG-06.2-02", "LANG-06.2-03"))
class Prefetch(ScheduleOperation):
    """Nests that read the result read the operand from that memory, into which they copy it tile by tile.

    `global` leaves it where it is, aligned.
    """

    x: Operand[Tensor]
    scope: Attribute[str] = "shared"
    align: Attribute[int] = LEAST_ALIGNMENT

    def check(self) -> None:
        """A known scope, a power of two of at least 16 (AMB-LANG-36)."""
        require(
            self.scope in SCOPES,
            "schedule",
            f"there is no scope {self.scope!r}",
            " or ".join(SCOPES),
            "LANG-06.2-02",
        )
        require(
            self.align >= LEAST_ALIGNMENT and self.align & (self.align - 1) == 0,
            "schedule",
            f"align is {self.align}",
            f"a power of two of at least {LEAST_ALIGNMENT}",
            "LANG-06.1-04",
        )
