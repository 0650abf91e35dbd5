"""`tessera.graph.concat`, `pad` and `iota`: tensors joined, framed and counted."""

import math
from fractions import Fraction

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operands, Operation, operation, require
from ..ir.types import Dim, Tensor, show_dim
from ..numerics import movement
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType
from ..numerics.rounding import round_exact
from .adjoints import terms
from .axes import require_axis, require_extents
from .dtypes import require_kind


@operation("tessera.graph.concat", spellings=("op.concat",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Concat(Operation):
    """Tensors one after another along an axis; all else of their shapes is equal, and so are their dtypes."""

    parts: Operands[Tensor]
    axis: Attribute[int]

    def infer(self) -> Tensor:
        """The sum of the extents along the axis."""
        require(len(self.parts) > 0, "types", "joins nothing", "op.concat(a, b, ..., axis=...)", "LANG-11-01")
        for name, part in self.operand_types:
            require(isinstance(part, Tensor), "types", f"{name} is {part}, not a tensor", "a tensor", "LANG-11-01")
        first, *others = self.parts
        require_axis(self.axis, first.rank)
        at = self.axis % first.rank
        for part in others:
            self._require_alike(first, part, at)
        extents = [part.shape[at] for part in self.parts]
        known = [extent for extent in extents if isinstance(extent, int)]
        joined: Dim = sum(known) if len(known) == len(extents) else extents[0] if len(extents) == 1 else "?"
        return Tensor((*first.shape[:at], joined, *first.shape[at + 1 :]), first.dtype)

    def _require_alike(self, first: Tensor, part: Tensor, at: int) -> None:
        require(
            part.dtype == first.dtype,
            "types",
            f"operands have dtypes {first.dtype} and {part.dtype}",
            "one dtype, since nothing is cast implicitly",
            "LANG-03.1-05",
            "cast one operand with op.cast",
        )
        require(
            part.rank == first.rank,
            "shapes",
            f"operands have ranks {first.rank} and {part.rank}",
            "one rank",
            "LANG-03.2-01",
        )
        for axis, (x, y) in enumerate(zip(first.shape, part.shape, strict=True)):
            known = isinstance(x, int) and isinstance(y, int)
            require(
                axis == at or x == y,
                "shapes",
                f"dimensions {'differ' if known else 'are not known to be equal'}: {show_dim(x)} and {show_dim(y)}",
                f"equal extents along every axis but {at}",
                "LANG-03.2-01",
            )

    def execute(self, *parts: Array, env: Environment) -> Array:
        """One after another."""
        return movement.concatenated(parts, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """To each operand its part of dy."""
        dy, _, *parts = terms(at, build)
        axis, found, start = self.axis % len(dy.shape), [], 0
        for part in parts:
            extent = part.shape[axis]
            assert isinstance(extent, int)
            found.append(dy.slice(spec=(*[":"] * axis, f"{start}:{start + extent}")).value)
            start += extent
        return tuple(found)


@operation("tessera.graph.pad", spellings=("op.pad",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Pad(Operation):
    """A tensor framed with a value: `low` elements before, `high` after it, one number a dimension."""

    x: Operand[Tensor]
    low: Attribute[tuple[int, ...]]
    high: Attribute[tuple[int, ...]]
    value: Attribute[int | float | bool] = 0

    def infer(self) -> Tensor:
        """Every extent grows by its two numbers; the value is one of the operand's dtype, rounded once."""
        x = self.x
        for name, widths in (("low", self.low), ("high", self.high)):
            require_extents(name, widths)
            require(
                len(widths) == x.rank,
                "shapes",
                f"{name} has {len(widths)} numbers for rank {x.rank}",
                f"{x.rank} numbers",
                "LANG-03.2-01",
            )
        require(
            held_in(x.dtype, self.value) is not None,
            "types",
            f"{self.value} is no {x.dtype}",
            f"a value of {x.dtype}",
            "LANG-03.1-05",
        )
        return Tensor(
            tuple(_grown(dim, low + high) for dim, low, high in zip(x.shape, self.low, self.high, strict=True)), x.dtype
        )

    def execute(self, x: Array, env: Environment) -> Array:
        """The frame filled."""
        value = held_in(x.dtype, self.value)
        assert value is not None
        return movement.padded(x, self.low, self.high, value)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy without its frame."""
        dy, _, x = terms(at, build)
        inside = [(low, extent) for low, extent in zip(self.low, x.shape, strict=True) if isinstance(extent, int)]
        return (dy.slice(spec=tuple(f"{low}:{low + extent}" for low, extent in inside)).value,)


def held_in(dtype: DType, value: int | float | bool) -> int | float | bool | None:
    """A number rounded once to a dtype, -0 as -0; nothing where that has no such value (AMB-LANG-124)."""
    if dtype.kind == "bool":
        return bool(value) if value in (0, 1) else None
    if isinstance(value, bool) or not math.isfinite(value):
        return None
    if dtype.kind == "int":
        return int(value) if value == int(value) and dtype.int_min <= value <= dtype.int_max else None
    held = round_exact(Fraction(value), dtype.component if dtype.kind == "complex" else dtype, "nonfinite")
    return math.copysign(held, value) if math.isfinite(held) else None


def _grown(dim: Dim, width: int) -> Dim:
    return dim + width if isinstance(dim, int) else "?" if width else dim


@operation("tessera.graph.iota", spellings=("op.iota",), clauses=("LANG-02-04", "LANG-05.3-01", "LANG-05.3-02"))
class Iota(Operation):
    """A tensor in which every element is its position along an axis."""

    shape: Attribute[tuple[int, ...]]
    axis: Attribute[int] = 0
    dtype: Attribute[DType] = DTYPES["int32"]

    def infer(self) -> Tensor:
        """The shape and dtype asked for. An integer dtype holds every position; a float dtype rounds them."""
        require_extents("shape", self.shape)
        require_axis(self.axis, len(self.shape))
        require_kind(self.dtype, "int", "float")
        last = self.shape[self.axis] - 1
        require(
            self.dtype.kind == "float" or last <= self.dtype.int_max,
            "types",
            f"{last} is no {self.dtype}",
            "a dtype that holds every position",
            "AMB-LANG-124",
        )
        return Tensor(self.shape, self.dtype)

    def execute(self, env: Environment) -> Array:
        """0, 1, 2 and on."""
        return movement.positions(self.shape, self.axis % len(self.shape), self.dtype)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """It depends on nothing."""
        return ()
