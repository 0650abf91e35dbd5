"""`tessera.graph.slice` and `tessera.graph.update`: indexing and slice assignment (AMB-LANG-52, -95, -96).

Both say what they select by one text a dimension: `3` is an index, which drops the dimension; `a:b:s` a slice, which
keeps it. Each part is left out, an integer, or `$k`, the k-th operand of `bounds`. Dimensions left out at the end are
taken whole. `op.slice` is the same with integers only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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
from ..ir.types import LAYOUTS, ROW_MAJOR, Dim, Numeric, Scalar, Tensor, is_unknown, show_dim
from ..numerics import movement
from ..numerics.array import Array
from ..numerics.formats import dtype
from ..numerics.movement import Selection, Stretch
from .adjoints import terms
from .term import Term

_PART = re.compile(r"(?:-?[0-9]{1,18}|\$[0-9]{1,9})?")


@dataclass(frozen=True)
class Bound:
    """One part of a specification: nothing, an integer, or the position of the operand that holds it."""

    value: int | None = None
    operand: int | None = None

    @classmethod
    def read(cls, text: str) -> Bound:
        """Raises `Refusal` for text that is none."""
        require(
            _PART.fullmatch(text) is not None,
            "types",
            f"{text!r} is no part of a slice",
            "an integer, $k or nothing",
            "LANG-02.3-20",
        )
        return cls(operand=int(text[1:])) if text.startswith("$") else cls(int(text) if text else None)

    @property
    def is_left_out(self) -> bool:
        """Whether nothing is said."""
        return self.value is None and self.operand is None

    def among(self, bounds: tuple[int, ...]) -> int | None:
        """The integer that it is, given the operands."""
        return self.value if self.operand is None else bounds[self.operand]


@dataclass(frozen=True)
class Entry:
    """The specification of one dimension: an index alone, or a start, a stop and a step."""

    parts: tuple[Bound, ...]

    @classmethod
    def read(cls, text: str) -> Entry:
        """Raises `Refusal` for what is no index and no slice."""
        require(isinstance(text, str), "types", f"{text!r} is no text", "an index or a slice", "LANG-02.3-20")
        parts = tuple(Bound.read(part) for part in text.split(":"))
        require(
            len(parts) <= 3 and not (len(parts) == 1 and parts[0].is_left_out),
            "types",
            f"{text!r} is no index and no slice",
            "an index, a:b or a:b:s",
            "LANG-02.3-20",
        )
        return cls(parts)

    @property
    def is_index(self) -> bool:
        """Whether it drops the dimension."""
        return len(self.parts) == 1

    @property
    def is_constant(self) -> bool:
        """Whether no operand takes part."""
        return all(part.operand is None for part in self.parts)

    def given(self, bounds: tuple[int, ...]) -> int | Stretch:
        """What it selects, given the operands."""
        parts = [part.among(bounds) for part in self.parts]
        start, stop, step = (*parts, None, None)[:3]
        if self.is_index:
            assert start is not None
            return start
        return Stretch(start, stop, 1 if step is None else step)

    def problem(self, extent: int | None) -> str:
        """What is wrong with its constants; empty when nothing is."""
        if self.is_index:
            index = self.parts[0].value
            return "" if index is None else movement.index_problem(index, extent)
        start, stop, step = (*(part.value for part in self.parts), None, None)[:3]
        return Stretch(start, stop, 1 if step is None else step).problem(extent)

    def extent(self, dim: Dim) -> Dim:
        """The extent that a slice leaves of `dim`; unknown where it depends on an operand."""
        if not self.is_constant:
            return "?"
        stretch = self.given(())
        assert isinstance(stretch, Stretch)
        if stretch.is_whole:
            return dim
        positions = stretch.over(dim if isinstance(dim, int) else None)
        return "?" if positions is None else len(positions)


_read = lru_cache(maxsize=4096)(Entry.read)
"""Reading, made cheap for what is executed again and again."""


def read_entries(spec: tuple[str, ...], x: Tensor, bounds: tuple[object, ...]) -> tuple[Entry, ...]:
    """A specification, checked against what it selects from. Raises `Refusal`."""
    require(
        len(spec) <= x.rank,
        "shapes",
        f"{len(spec)} indices for rank {x.rank}",
        f"at most {x.rank}, one a dimension",
        "LANG-02.3-20",
    )
    entries = tuple(Entry.read(text) for text in spec)
    used = [part.operand for entry in entries for part in entry.parts if part.operand is not None]
    require(
        set(used) == set(range(len(bounds))),
        "types",
        f"{len(bounds)} bounds are given, and the specification uses {sorted(set(used))}",
        "every bound used, and no other",
        "LANG-02.3-20",
    )
    for each in bounds:
        require(
            each == Scalar(dtype("int32")),
            "types",
            f"an index or bound is {each}, not int32",
            "int32 scalars",
            "AMB-LANG-96",
            "cast it with op.cast(..., dtype=int32)",
        )
    for dimension, (entry, dim) in enumerate(zip(entries, x.shape, strict=False)):
        problem = entry.problem(dim if isinstance(dim, int) else None)
        require(
            not problem,
            "shapes",
            f"dimension {dimension}: {problem}",
            _allowed(entry, dim),
            "AMB-LANG-96",
            "positions count from the start" if "-" in problem else "",
        )
    return entries


def _allowed(entry: Entry, dim: Dim) -> str:
    extent = show_dim(dim) if not is_unknown(dim) else "extent"
    return f"0 <= index < {extent}" if entry.is_index else f"0 <= start, stop <= {extent}, and a step other than 0"


def selected(x: Tensor, entries: tuple[Entry, ...]) -> Numeric:
    """The type of what is selected; a tensor of rank below 2 has only one order, the default."""
    kept = [entry.extent(dim) for entry, dim in zip(entries, x.shape, strict=False) if not entry.is_index]
    shape = (*kept, *x.shape[len(entries) :])
    return Tensor(shape, x.dtype, x.layout if len(shape) > 1 else ROW_MAJOR) if shape else Scalar(x.dtype)


def selection(spec: tuple[str, ...], bounds: tuple[Array, ...]) -> Selection:
    """What a specification selects, given the operands."""
    numbers = tuple([int(bound.values) for bound in bounds])
    return tuple([_read(text).given(numbers) for text in spec])


def put_back(dy: Term, x: Term, bounds: tuple[Term, ...], spec: tuple[str, ...]) -> Term:
    """The adjoint of selecting from x: dy where it was taken from, 0 elsewhere."""
    return x.beside(0).broadcast(shape=x.shape).update(dy, *bounds, spec=spec)


@operation("tessera.graph.slice", clauses=("LANG-02.3-20", "LANG-02.3-31", "LANG-14.2-07"))
class Slice(Operation):
    """Part of a tensor, `X[i, a:b]`: an index drops its dimension, a slice keeps it (AMB-LANG-96)."""

    x: Operand[Tensor]
    bounds: Operands[Scalar]
    spec: Attribute[tuple[str, ...]]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """The kept dimensions; a scalar where every one is indexed. What depends on an operand is unknown."""
        return selected(self.x, read_entries(self.spec, self.x, self.bounds))

    def execute(self, x: Array, *bounds: Array, env: Environment) -> Array:
        """The elements selected; bounds are checked here where they were not known before."""
        return movement.sliced(x, selection(self.spec, bounds))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy where it was taken from, 0 elsewhere."""
        dy, _, x, *bounds = terms(at, build)
        return (put_back(dy, x, tuple(bounds), self.spec).value, *(None for _ in bounds))


@operation("tessera.graph.strided_slice", spellings=("op.slice",), clauses=("LANG-02-04", "LANG-14.2-07"))
class StridedSlice(Operation):
    """`op.slice(x, starts=[...], stops=[...], steps=[...])`: x[start:stop:step] in each dimension, in integers."""

    x: Operand[Tensor]
    starts: Attribute[tuple[int, ...]]
    stops: Attribute[tuple[int, ...]]
    steps: Attribute[tuple[int, ...]] = derived(lambda self: (1,) * len(self.starts))

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Numeric:
        """What the slices leave of each dimension; dimensions left out at the end are taken whole."""
        require(
            len(self.starts) == len(self.stops) == len(self.steps),
            "shapes",
            f"there are {len(self.starts)} starts, {len(self.stops)} stops and {len(self.steps)} steps",
            "as many starts as stops and steps",
            "LANG-02.3-20",
        )
        return selected(self.x, read_entries(self._spec, self.x, ()))

    @property
    def _spec(self) -> tuple[str, ...]:
        """The same as a specification."""
        parts = zip(self.starts, self.stops, self.steps, strict=True)
        return tuple(f"{start}:{stop}:{step}" for start, stop, step in parts)

    def execute(self, x: Array, env: Environment) -> Array:
        """The elements selected."""
        return movement.sliced(x, selection(self._spec, ()))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy where it was taken from, 0 elsewhere."""
        dy, _, x = terms(at, build)
        return (put_back(dy, x, (), self._spec).value,)


@operation("tessera.graph.update", clauses=("LANG-02.3-19", "LANG-02.3-20"))
class Update(Operation):
    """A tensor with part of it replaced, `X[i, a:b] = V`; the operand itself stays (AMB-LANG-95).

    The value has the shape of the part, or is a scalar that fills it.
    """

    x: Operand[Tensor]
    value: Operand[Tensor | Scalar]
    bounds: Operands[Scalar]
    spec: Attribute[tuple[str, ...]]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Tensor:
        """x's type. An extent that is unknown on either side is compared at run time."""
        part = selected(self.x, read_entries(self.spec, self.x, self.bounds))
        require(
            self.value.dtype == self.x.dtype,
            "types",
            f"the value is {self.value.dtype}, the tensor {self.x.dtype}",
            "value.dtype == x.dtype",
            "LANG-03.1-05",
            "cast the value with op.cast",
        )
        require(
            isinstance(self.value, Scalar) or _may_be_equal(self.value.shape, part.shape),
            "shapes",
            f"the value is {self.value}, the slice {part}",
            "a value of the slice's shape, or a scalar",
            "LANG-03.2-03",
        )
        return self.x

    def execute(self, x: Array, value: Array, *bounds: Array, env: Environment) -> Array:
        """A copy with the part replaced."""
        return movement.updated(x, value, selection(self.spec, bounds))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """To x what was not replaced, to the value what was: to a scalar the sum of it."""
        dy, _, _, value, *bounds = terms(at, build)
        to_x = dy.update(dy.beside(0), *bounds, spec=self.spec)
        part = dy.slice(*bounds, spec=self.spec)
        return (to_x.value, part.summed_to(value).value if not value.shape else part.value, *(None for _ in bounds))


def _may_be_equal(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
    return len(a) == len(b) and all(x == y or is_unknown(x) or is_unknown(y) for x, y in zip(a, b, strict=True))
