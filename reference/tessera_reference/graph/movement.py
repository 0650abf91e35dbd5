"""Operations that move elements (spec sections 2.3, 5.2).

Reshape, broadcast, transpose, concat, pad, iota, gather, slice, update."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Operand,
    Operands,
    Operation,
    Refusal,
    derived,
    no_gradient,
    operation,
)
from ..ir.types import LAYOUTS, ROW_MAJOR, Dim, Numeric, Scalar, Tensor, Value, is_unknown, show_dim
from ..numerics import arithmetic, movement
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType, dtype
from ..numerics.movement import Selection, Stretch
from ..numerics.rounding import round_exact
from .term import (
    Term,
    differing,
    require_axis,
    require_extents,
    require_kind,
    require_numeric,
    require_one_dtype,
    terms,
)

# `tessera.graph.reshape` and `tessera.graph.broadcast`: the same elements in another shape, or repeated (section
# 3.2).
#
# A shape that does not fit is refused where the extents of the operand are known; else it is an error at run time.


@dataclass(frozen=True)
class Count:
    """The number of a shape's elements: a number, times the unknown dimensions."""

    number: int
    symbols: tuple[str, ...]

    @classmethod
    def of(cls, shape: tuple[Dim, ...]) -> Count:
        """Return the count of a shape."""
        extents = [dim for dim in shape if isinstance(dim, int)]
        return cls(prod(extents), tuple(dim for dim in shape if isinstance(dim, str)))

    def may_be(self, number: int) -> bool:
        """True if the unknown dimensions can make the count `number`."""
        if not self.symbols or self.number == 0:
            return self.number == number
        return number % self.number == 0

    def without(self, number: int) -> Dim | None:
        """Return the quotient by `number`; None where it leaves a remainder."""
        if not self.symbols or self.number == 0:
            return self.number // number if self.number % number == 0 else None
        return self.symbols[0] if self.number == number and len(self.symbols) == 1 else "?"


def of_shape(shape: tuple[Dim, ...], like: Numeric) -> Numeric:
    """Return a tensor type of the operand's dtype; a scalar where the shape has no dimensions (AMB-LANG-27)."""
    return Tensor(shape, like.dtype) if shape else Scalar(like.dtype)


class Movement(Operation):
    """The base of operations whose result consists of elements of their operands, or of positions."""

    nest = "map"


@operation("tessera.graph.reshape", spellings=("op.reshape",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Reshape(Movement):
    """The elements in row-major order in another shape, of which one extent may be -1: the remaining count."""

    x: Operand[Tensor | Scalar]
    shape: Attribute[tuple[int, ...]]

    def infer(self) -> Numeric:
        """Return the type with these extents and the operand's number of elements."""
        require_extents("shape", self.shape, -1)
        if self.shape.count(-1) >= 2:
            message = f"shape {list(self.shape)} leaves several extents open"
            raise Refusal("shapes", message, "-1 at most once", "LANG-03.2-01")
        count, requested = Count.of(self.x.shape), prod(extent for extent in self.shape if extent != -1)
        remainder = count.without(requested) if -1 in self.shape and requested else None
        fits = remainder is not None if -1 in self.shape else count.may_be(requested)
        if not fits:
            message = f"{self.x} does not become shape {list(self.shape)}"
            raise Refusal("shapes", message, "as many elements as before", "LANG-03.2-01")
        shape = tuple(remainder if extent == -1 and remainder is not None else extent for extent in self.shape)
        return of_shape(shape, self.x)

    def execute(self, x: Array, env: Environment) -> Array:
        return movement.reshaped(x, self.shape)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy in the operand's shape."""
        dy, _, x = terms(at, build)
        return (dy.shaped(x.shape).value,)


@operation("tessera.graph.broadcast", spellings=("op.broadcast",), clauses=("LANG-02-04", "LANG-03.2-02"))
class Broadcast(Movement):
    """The operand repeated to a shape by NumPy's rules: along axes of extent 1, and new ones in front."""

    x: Operand[Tensor | Scalar]
    shape: Attribute[tuple[int, ...]]

    def infer(self) -> Numeric:
        """Return the requested shape; each of its last dimensions is the operand's, or the operand's is 1."""
        require_extents("shape", self.shape)
        x, shape = self.x.shape, self.shape
        fits = len(shape) >= len(x) and all(
            not isinstance(have, int) or have in (1, want)
            for have, want in zip(reversed(x), reversed(shape), strict=False)
        )
        if not fits:
            message = f"{self.x} does not broadcast to shape {list(shape)}"
            raise Refusal("shapes", message, "each dimension equal, or 1", "LANG-03.2-03")
        return of_shape(shape, self.x)

    def execute(self, x: Array, env: Environment) -> Array:
        return movement.broadcast(x, self.shape)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the sum of dy over the broadcast axes."""
        dy, _, x = terms(at, build)
        return (dy.summed_to(x).value,)


# `tessera.graph.transpose`: the axes in another order.


@operation("tessera.graph.transpose", spellings=("op.transpose",), clauses=("LANG-02.3-32", "LANG-03.2-01"))
class Transpose(Movement):
    """Axis i of the result is axis perm[i] of the operand; reversed unless `perm` says otherwise."""

    x: Operand[Tensor]
    perm: Attribute[tuple[int, ...]] = derived(lambda self: tuple(reversed(range(self.x.rank))))

    def infer(self) -> Tensor:
        """Return the type with permuted axes; `perm` names every axis once."""
        axes = list(range(self.x.rank))
        if sorted(self.perm) != axes:
            message = f"perm {list(self.perm)} is no permutation of {axes}"
            raise Refusal("shapes", message, f"every axis of {self.x} once", "LANG-03.2-01")
        return Tensor(tuple(self.x.shape[axis] for axis in self.perm), self.x.dtype, self.x.layout)

    def execute(self, x: Array, env: Environment) -> Array:
        return arithmetic.transpose(x, self.perm)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy with its axes back in their places."""
        dy, *_ = terms(at, build)
        return (dy.transpose(perm=tuple(self.perm.index(axis) for axis in range(self.x.rank))).value,)


# `tessera.graph.concat`, `pad` and `iota`: tensors joined, framed and counted.


@operation("tessera.graph.concat", spellings=("op.concat",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Concat(Movement):
    """Tensors one after another along an axis; their other extents and their dtypes are equal."""

    parts: Operands[Tensor]
    axis: Attribute[int]

    def infer(self) -> Tensor:
        """Return the type whose extent along the axis is the sum of the extents."""
        if not self.parts:
            raise Refusal("types", "joins nothing", "op.concat(a, b, ..., axis=...)", "LANG-11-01")
        first, *others = self.parts
        require_axis(self.axis, first.rank)
        at = self.axis % first.rank
        for part in others:
            self._require_alike(first, part, at)
        extents = [part.shape[at] for part in self.parts]
        constants = [extent for extent in extents if isinstance(extent, int)]
        joined: Dim = sum(constants) if len(constants) == len(extents) else extents[0] if len(extents) == 1 else "?"
        return Tensor((*first.shape[:at], joined, *first.shape[at + 1 :]), first.dtype)

    def _require_alike(self, first: Tensor, part: Tensor, at: int) -> None:
        require_one_dtype(first, part, "one dtype, since nothing is cast implicitly")
        if part.rank != first.rank:
            raise Refusal("shapes", f"operands have ranks {first.rank} and {part.rank}", "one rank", "LANG-03.2-01")
        for axis, (x, y) in enumerate(zip(first.shape, part.shape, strict=True)):
            if axis != at and x != y:
                requirement = f"equal extents along every axis but {at}"
                raise Refusal("shapes", differing(x, y), requirement, "LANG-03.2-01")

    def execute(self, *parts: Array, env: Environment) -> Array:
        return movement.concatenated(parts, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return to each operand its part of dy."""
        dy, _, *parts = terms(at, build)
        axis, gradients, start = self.axis % len(dy.shape), [], 0
        for part in parts:
            extent = part.shape[axis]
            assert isinstance(extent, int)
            gradients.append(dy.slice(spec=(*[":"] * axis, f"{start}:{start + extent}")).value)
            start += extent
        return tuple(gradients)


@operation("tessera.graph.pad", spellings=("op.pad",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Pad(Movement):
    """A tensor framed with a value: `low` elements before, `high` after it, one number a dimension."""

    x: Operand[Tensor]
    low: Attribute[tuple[int, ...]]
    high: Attribute[tuple[int, ...]]
    value: Attribute[int | float | bool] = 0

    def infer(self) -> Tensor:
        """Return the type with every extent enlarged by its two numbers; the value is rounded once to the dtype."""
        x = self.x
        for name, widths in (("low", self.low), ("high", self.high)):
            require_extents(name, widths)
            if len(widths) != x.rank:
                message = f"{name} has {len(widths)} numbers for rank {x.rank}"
                raise Refusal("shapes", message, f"{x.rank} numbers", "LANG-03.2-01")
        if held_in(x.dtype, self.value) is None:
            raise Refusal("types", f"{self.value} is no {x.dtype}", f"a value of {x.dtype}", "LANG-03.1-05")
        framed = zip(x.shape, self.low, self.high, strict=True)
        return Tensor(tuple(_grown(dim, low + high) for dim, low, high in framed), x.dtype)

    def execute(self, x: Array, env: Environment) -> Array:
        value = held_in(x.dtype, self.value)
        assert value is not None
        return movement.padded(x, self.low, self.high, value)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy without its frame."""
        dy, _, x = terms(at, build)
        inside = [(low, extent) for low, extent in zip(self.low, x.shape, strict=True) if isinstance(extent, int)]
        return (dy.slice(spec=tuple(f"{low}:{low + extent}" for low, extent in inside)).value,)


def held_in(dtype: DType, value: int | float | bool) -> int | float | bool | None:
    """Return a number rounded once to a dtype, -0 as -0; None where it has no such value (AMB-LANG-124)."""
    if dtype.kind == "bool":
        return bool(value) if value in (0, 1) else None
    if isinstance(value, bool) or not math.isfinite(value):
        return None
    if dtype.kind == "int":
        return int(value) if value == int(value) and dtype.int_min <= value <= dtype.int_max else None
    number = round_exact(Fraction(value), dtype.component if dtype.kind == "complex" else dtype, "nonfinite")
    return math.copysign(number, value) if math.isfinite(number) else None


def _grown(dim: Dim, width: int) -> Dim:
    return dim + width if isinstance(dim, int) else "?" if width else dim


@operation("tessera.graph.iota", spellings=("op.iota",), clauses=("LANG-02-04", "LANG-05.3-01", "LANG-05.3-02"))
class Iota(Movement):
    """A tensor in which every element is its position along an axis."""

    shape: Attribute[tuple[int, ...]]
    axis: Attribute[int] = 0
    dtype: Attribute[DType] = DTYPES["int32"]

    adjoint = no_gradient

    def infer(self) -> Tensor:
        """Return the requested shape and dtype. An integer dtype holds every position; a float dtype rounds them."""
        require_extents("shape", self.shape)
        require_axis(self.axis, len(self.shape))
        require_kind(self.dtype, "int", "float")
        last = self.shape[self.axis] - 1
        if self.dtype.kind != "float" and last > self.dtype.int_max:
            raise Refusal("types", f"{last} is no {self.dtype}", "a dtype that holds every position", "AMB-LANG-124")
        return Tensor(self.shape, self.dtype)

    def execute(self, env: Environment) -> Array:
        return movement.positions(self.shape, self.axis % len(self.shape), self.dtype)


# `tessera.graph.gather` and its adjoint `scatter_add`: the slices along an axis at computed indices.


INDEX_DTYPES = ("int32", "int64")


def slices_shape(x: Tensor, indices: Numeric, axis: int) -> tuple[Dim, ...]:
    """Return the shape of the slices of `x` at `indices`, whose dimensions replace the axis. Raises `Refusal`."""
    require_axis(axis, x.rank)
    if indices.dtype.name not in INDEX_DTYPES:
        message = f"the indices are {indices.dtype}"
        requirement = " or ".join(INDEX_DTYPES)
        raise Refusal("types", message, requirement, "LANG-11-01", "cast them with op.cast(..., dtype=int32)")
    at = axis % x.rank
    return (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])


@operation("tessera.graph.gather", spellings=("op.gather",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Gather(Movement):
    """The slices of `x` along an axis at `indices`; an index outside is an error at run time (AMB-LANG-96)."""

    x: Operand[Tensor]
    indices: Operand[Tensor | Scalar]
    axis: Attribute[int]

    def infer(self) -> Numeric:
        """Return the type with the dimensions of the indices in place of the axis."""
        return of_shape(slices_shape(self.x, self.indices, self.axis), self.x)

    def execute(self, x: Array, indices: Array, env: Environment) -> Array:
        return movement.gathered(x, indices, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy added to the places of its slices, in the order of the indices."""
        dy, _, x, indices = terms(at, build)
        nothing = x.beside(0).broadcast(shape=x.shape)
        return (nothing.scatter_add(indices, dy, axis=self.axis).value, None)


@operation("tessera.graph.scatter_add", spellings=("op.scatter_add",), clauses=("LANG-02-04", "LANG-10-06"))
class ScatterAdd(Operation):
    """`x` with `updates` added to its slices along an axis at `indices`.

    The updates of one slice are added to the element of x in ascending order of their positions among the indices,
    row-major, in the accumulator type; one final rounding.
    """

    x: Operand[Tensor]
    indices: Operand[Tensor | Scalar]
    updates: Operand[Tensor | Scalar]
    axis: Attribute[int]

    orders = ("fold",)

    def infer(self) -> Tensor:
        """Return x's type; the updates have its dtype and the shape that gathering would give."""
        x, updates = self.x, self.updates
        require_numeric(x.dtype)
        require_one_dtype(x, updates, "updates.dtype == x.dtype")
        shape = slices_shape(x, self.indices, self.axis)
        if updates.shape != shape:
            message = f"the updates are {updates}, not of shape {', '.join(map(show_dim, shape))}"
            requirement = "the shape of x with the axis replaced by the dimensions of the indices"
            raise Refusal("shapes", message, requirement, "LANG-03.2-01")
        return x

    def execute(self, x: Array, indices: Array, updates: Array, env: Environment) -> Array:
        return movement.scattered(x, indices, updates, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return all of dy to x, and its slices to the updates."""
        dy, _, _, indices, _ = terms(at, build)
        return (dy.value, None, dy.gather(indices, axis=self.axis).value)


# `tessera.graph.slice` and `tessera.graph.update`: indexing and slice assignment (AMB-LANG-52, -95, -96).
#
# Both select by one text a dimension: `3` is an index, which drops the dimension; `a:b:s` a slice, which keeps it. Each
# part is left out, an integer, or `$k`, the k-th operand of `bounds`. Dimensions left out at the end are taken whole.
# `op.slice` is the same with integers only.


_PART = re.compile(r"(?:-?[0-9]{1,18}|\$[0-9]{1,9})?")


@dataclass(frozen=True)
class Bound:
    """One part of a specification: nothing, an integer, or the position of an operand."""

    value: int | None = None
    operand: int | None = None

    @classmethod
    def read(cls, text: str) -> Bound:
        """Return the part that a text denotes. Raises `Refusal` for other text."""
        if _PART.fullmatch(text) is None:
            raise Refusal("types", f"{text!r} is no part of a slice", "an integer, $k or nothing", "LANG-02.3-20")
        return cls(operand=int(text[1:])) if text.startswith("$") else cls(int(text) if text else None)

    @property
    def is_left_out(self) -> bool:
        """True if the part is left out."""
        return self.value is None and self.operand is None

    def among(self, bounds: tuple[int, ...]) -> int | None:
        """Return the integer that the part denotes, given the operands."""
        return self.value if self.operand is None else bounds[self.operand]


@dataclass(frozen=True)
class Entry:
    """The specification of one dimension: an index alone, or a start, a stop and a step."""

    parts: tuple[Bound, ...]

    @classmethod
    def read(cls, text: str) -> Entry:
        """Return the entry that a text denotes. Raises `Refusal` for other text than an index or a slice."""
        if not isinstance(text, str):
            raise Refusal("types", f"{text!r} is no text", "an index or a slice", "LANG-02.3-20")
        parts = tuple(Bound.read(part) for part in text.split(":"))
        if len(parts) > 3 or (len(parts) == 1 and parts[0].is_left_out):
            raise Refusal("types", f"{text!r} is no index and no slice", "an index, a:b or a:b:s", "LANG-02.3-20")
        return cls(parts)

    @property
    def is_index(self) -> bool:
        """True if the entry drops the dimension."""
        return len(self.parts) == 1

    @property
    def is_constant(self) -> bool:
        """True if the entry refers to no operand."""
        return all(part.operand is None for part in self.parts)

    def given(self, bounds: tuple[int, ...]) -> int | Stretch:
        """Return the selected index or stretch, given the operands."""
        parts = [part.among(bounds) for part in self.parts]
        start, stop, step = (*parts, None, None)[:3]
        if self.is_index:
            assert start is not None
            return start
        return Stretch(start, stop, 1 if step is None else step)

    def problem(self, extent: int | None) -> str:
        """Return the fault in its constants, or "" if there is none."""
        if self.is_index:
            index = self.parts[0].value
            return "" if index is None else movement.index_problem(index, extent)
        start, stop, step = (*(part.value for part in self.parts), None, None)[:3]
        return Stretch(start, stop, 1 if step is None else step).problem(extent)

    def extent(self, dim: Dim) -> Dim:
        """Return the extent that a slice leaves of `dim`; unknown where it depends on an operand."""
        if not self.is_constant:
            return "?"
        stretch = self.given(())
        assert isinstance(stretch, Stretch)
        if stretch.is_whole:
            return dim
        positions = stretch.over(dim if isinstance(dim, int) else None)
        return "?" if positions is None else len(positions)


_read = lru_cache(maxsize=4096)(Entry.read)
"""A cached reader, since running programs read the same texts again and again."""


def read_entries(spec: tuple[str, ...], x: Tensor, bounds: tuple[object, ...]) -> tuple[Entry, ...]:
    """Return the entries of a specification, checked against the tensor it selects from. Raises `Refusal`."""
    if len(spec) > x.rank:
        message = f"{len(spec)} indices for rank {x.rank}"
        raise Refusal("shapes", message, f"at most {x.rank}, one a dimension", "LANG-02.3-20")
    entries = tuple(Entry.read(text) for text in spec)
    used = [part.operand for entry in entries for part in entry.parts if part.operand is not None]
    if set(used) != set(range(len(bounds))):
        message = f"{len(bounds)} bounds are given, and the specification uses {sorted(set(used))}"
        raise Refusal("types", message, "every bound used, and no other", "LANG-02.3-20")
    for bound in bounds:
        if bound != Scalar(dtype("int32")):
            message = f"an index or bound is {bound}, not int32"
            raise Refusal("types", message, "int32 scalars", "AMB-LANG-96", "cast it with op.cast(..., dtype=int32)")
    for dimension, (entry, dim) in enumerate(zip(entries, x.shape, strict=False)):
        problem = entry.problem(dim if isinstance(dim, int) else None)
        if problem:
            message = f"dimension {dimension}: {problem}"
            requirement = _allowed(entry, dim)
            remedy = "positions count from the start" if "-" in problem else ""
            raise Refusal("shapes", message, requirement, "AMB-LANG-96", remedy)
    return entries


def _allowed(entry: Entry, dim: Dim) -> str:
    extent = show_dim(dim) if not is_unknown(dim) else "extent"
    return f"0 <= index < {extent}" if entry.is_index else f"0 <= start, stop <= {extent}, and a step other than 0"


def selected(x: Tensor, entries: tuple[Entry, ...]) -> Numeric:
    """Return the type of a selection; a tensor of rank below 2 has only the default order."""
    extents = [entry.extent(dim) for entry, dim in zip(entries, x.shape, strict=False) if not entry.is_index]
    shape = (*extents, *x.shape[len(entries) :])
    return Tensor(shape, x.dtype, x.layout if len(shape) > 1 else ROW_MAJOR) if shape else Scalar(x.dtype)


def selection(spec: tuple[str, ...], bounds: tuple[Array, ...]) -> Selection:
    """Return the selection of a specification, given the operands."""
    numbers = tuple([int(bound.values) for bound in bounds])
    return tuple([_read(text).given(numbers) for text in spec])


def put_back(dy: Term, x: Term, bounds: tuple[Term, ...], spec: tuple[str, ...]) -> Term:
    """Return the adjoint of selecting from x: dy at the selected elements, 0 elsewhere."""
    return x.beside(0).broadcast(shape=x.shape).update(dy, *bounds, spec=spec)


@operation("tessera.graph.slice", clauses=("LANG-02.3-20", "LANG-02.3-31", "LANG-14.2-07"))
class Slice(Movement):
    """Part of a tensor, `X[i, a:b]`: an index drops its dimension, a slice keeps it (AMB-LANG-96)."""

    x: Operand[Tensor]
    bounds: Operands[Scalar]
    spec: Attribute[tuple[str, ...]]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """Return the type of the kept dimensions, a scalar if all are indexed; unknown if an operand decides."""
        return selected(self.x, read_entries(self.spec, self.x, self.bounds))

    def execute(self, x: Array, *bounds: Array, env: Environment) -> Array:
        """Return the selected elements; check bounds that were not known before."""
        return movement.sliced(x, selection(self.spec, bounds))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy at the selected elements, 0 elsewhere."""
        dy, _, x, *bounds = terms(at, build)
        return (put_back(dy, x, tuple(bounds), self.spec).value, *(None for _ in bounds))


@operation("tessera.graph.strided_slice", spellings=("op.slice",), clauses=("LANG-02-04", "LANG-14.2-07"))
class StridedSlice(Movement):
    """`op.slice(x, starts=[...], stops=[...], steps=[...])`: x[start:stop:step] in each dimension, in integers."""

    x: Operand[Tensor]
    starts: Attribute[tuple[int, ...]]
    stops: Attribute[tuple[int, ...]]
    steps: Attribute[tuple[int, ...]] = derived(lambda self: (1,) * len(self.starts))

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """Return the type of the sliced dimensions; dimensions left out at the end are taken whole."""
        if not len(self.starts) == len(self.stops) == len(self.steps):
            message = f"there are {len(self.starts)} starts, {len(self.stops)} stops and {len(self.steps)} steps"
            raise Refusal("shapes", message, "as many starts as stops and steps", "LANG-02.3-20")
        return selected(self.x, read_entries(self.spec, self.x, ()))

    @property
    def spec(self) -> tuple[str, ...]:
        """The equivalent specification."""
        parts = zip(self.starts, self.stops, self.steps, strict=True)
        return tuple(f"{start}:{stop}:{step}" for start, stop, step in parts)

    def execute(self, x: Array, env: Environment) -> Array:
        return movement.sliced(x, selection(self.spec, ()))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy at the selected elements, 0 elsewhere."""
        dy, _, x = terms(at, build)
        return (put_back(dy, x, (), self.spec).value,)


@operation("tessera.graph.update", clauses=("LANG-02.3-19", "LANG-02.3-20"))
class Update(Movement):
    """A tensor with part of it replaced, `X[i, a:b] = V`; the operand itself does not change (AMB-LANG-95).

    The value has the shape of the part, or is a scalar that fills it.
    """

    x: Operand[Tensor]
    value: Operand[Tensor | Scalar]
    bounds: Operands[Scalar]
    spec: Attribute[tuple[str, ...]]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Tensor:
        """Return x's type. An extent that is unknown on either side is compared at run time."""
        part = selected(self.x, read_entries(self.spec, self.x, self.bounds))
        if self.value.dtype != self.x.dtype:
            message = f"the value is {self.value.dtype}, the tensor {self.x.dtype}"
            raise Refusal("types", message, "value.dtype == x.dtype", "LANG-03.1-05", "cast the value with op.cast")
        if not isinstance(self.value, Scalar) and not _may_be_equal(self.value.shape, part.shape):
            message = f"the value is {self.value}, the slice {part}"
            raise Refusal("shapes", message, "a value of the slice's shape, or a scalar", "LANG-03.2-03")
        return self.x

    def execute(self, x: Array, value: Array, *bounds: Array, env: Environment) -> Array:
        return movement.updated(x, value, selection(self.spec, bounds))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return dy outside the part to x, and dy of the part to the value, summed for a scalar."""
        dy, _, _, value, *bounds = terms(at, build)
        to_x = dy.update(dy.beside(0), *bounds, spec=self.spec)
        part = dy.slice(*bounds, spec=self.spec)
        return (to_x.value, part.summed_to(value).value if not value.shape else part.value, *(None for _ in bounds))


def _may_be_equal(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
    return len(a) == len(b) and all(x == y or is_unknown(x) or is_unknown(y) for x, y in zip(a, b, strict=True))
