"""The types of values, values themselves, and unknown dimensions (spec sections 2.2, 3, 5.1, 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ..numerics.formats import DType

# The types of values: tensors and scalars, and those of hardware and meshes (sections 2.2, 3, 5.1, 7.1).
#
# A dimension is an extent, a name (AMB-LANG-08) or unknown. Two unknown dimensions are equal only when they are the
# same one: after its `?`, the dimension of a value carries a mark of its origin, which is never printed.


Dim = int | str
"""An extent; a name; or `?` and a mark."""


def is_unknown(dim: Dim) -> bool:
    """True if a dimension is a `?`."""
    return isinstance(dim, str) and dim.startswith("?")


def show_dim(dim: Dim) -> str:
    """Return a dimension as the source spells it."""
    return "?" if is_unknown(dim) else str(dim)


@dataclass(frozen=True)
class Layout:
    """The order of a tensor's elements in memory, an attribute of its own (LANG-03.3-01)."""

    name: str
    parameters: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The layout as the source spells it."""
        inside = ",".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.name}({inside})" if inside else self.name

    def __str__(self) -> str:
        return self.text


ROW_MAJOR = Layout("row_major")
"""The default (AMB-LANG-67)."""

LAYOUTS: dict[str, frozenset[str]] = {
    "row_major": frozenset(),
    "col_major": frozenset(),
    "blocked": frozenset({"bm", "bn"}),
}
"""Every layout and the parameters it takes (LANG-02.3-40, -81, -82)."""


@dataclass(frozen=True)
class Tensor:
    """`TensorType(shape, dtype, layout?)` (LANG-05.1-01)."""

    shape: tuple[Dim, ...]
    dtype: DType
    layout: Layout = field(default=ROW_MAJOR)

    @property
    def rank(self) -> int:
        """The number of dimensions; always known (LANG-03.1-02)."""
        return len(self.shape)

    def with_dtype(self, dtype: DType) -> Tensor:
        """Return the same tensor type with another dtype."""
        return replace(self, dtype=dtype)

    def __str__(self) -> str:
        layout = "" if self.layout == ROW_MAJOR else f"; layout={self.layout}"
        return f"tensor<{'x'.join([*map(show_dim, self.shape), self.dtype.name])}{layout}>"


@dataclass(frozen=True)
class Scalar:
    """One value; tensors of rank 0 are not written (AMB-LANG-27)."""

    dtype: DType

    @property
    def shape(self) -> tuple[Dim, ...]:
        """No dimensions."""
        return ()

    def with_dtype(self, dtype: DType) -> Scalar:
        """Return a scalar type of another dtype."""
        return Scalar(dtype)

    def __str__(self) -> str:
        return self.dtype.name


@dataclass(frozen=True)
class Memref:
    """A tile in memory; the address space is shared or global (LANG-02.3-48, AMB-LANG-35, AMB-LANG-61)."""

    shape: tuple[Dim, ...]
    dtype: DType
    space: str = "global"

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape, in which every extent is a number at Tile IR and below."""
        return tuple(int(dim) for dim in self.shape)

    def __str__(self) -> str:
        return f"memref<{'x'.join([*map(show_dim, self.shape), self.dtype.name])}>[addrspace={self.space}]"


@dataclass(frozen=True)
class Fragment:
    """The operand of a matrix instruction, spread over the lanes of a warp (LANG-02.2-15, AMB-LANG-25)."""

    m: int
    n: int
    k: int
    dtype: DType
    layout: Layout | None = None

    def __str__(self) -> str:
        layout = f",layout={self.layout}" if self.layout else ""
        return f"fragment<{self.m},{self.n},{self.k},{self.dtype.name}{layout}>"


@dataclass(frozen=True)
class Pointer:
    """The address of an element in one address space, by its number (section 8.1; AMB-LANG-35)."""

    space: int

    def __str__(self) -> str:
        return f"!llvm.ptr<{self.space}>"


@dataclass(frozen=True)
class Vector:
    """Elements that one lane holds together, such as its share of a fragment (section 8.2)."""

    extent: int
    dtype: DType

    def __str__(self) -> str:
        return f"vector<{self.extent}x{self.dtype.name}>"


@dataclass(frozen=True)
class Mesh:
    """`MeshType(axes, shape)`: a grid of devices with an extent for each named axis (LANG-05.1-02, LANG-09-01)."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of ranks."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"mesh<axes=[{', '.join(self.axes)}], shape=[{', '.join(map(str, self.shape))}]>"


@dataclass(frozen=True)
class Future:
    """The result of a collective: a value that is not available yet (collectives spec 2.1; AMB-COLL-15)."""

    value: Tensor | Scalar

    def __str__(self) -> str:
        return f"!tessera.future<{self.value}>"


@dataclass(frozen=True)
class Shard:
    """The ranks of a mesh on which a collective acts, as groups that each communicate among themselves (AMB-COLL-51).

    It has either axes, whose groups are the ranks that differ along no other axis, or the groups themselves.
    """

    axes: tuple[str, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        if self.axes:
            return f"!tessera.shard<axes=[{', '.join(self.axes)}]>"
        return f"!tessera.shard<groups=[{', '.join(str(list(group)) for group in self.groups)}]>"


@dataclass(frozen=True)
class FunctionType:
    """`fn(parameters) -> result` (LANG-02.3-51)."""

    parameters: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"fn({', '.join(map(str, self.parameters))}) -> {self.result}"


Numeric = Tensor | Scalar
"""The types of numbers that a program computes with."""

Type = Tensor | Scalar | Memref | Fragment | Pointer | Vector | Mesh | Future | Shard | FunctionType


def dtype_of(type_: Type | None) -> DType | None:
    """Return the dtype of a tensor or scalar type; None for any other."""
    return type_.dtype if isinstance(type_, Tensor | Scalar) else None


# Values of SSA form: each defined once, with a name and a type (LANG-05-01).


@dataclass(frozen=True, eq=False)
class Value:
    """An argument of a block or a result of an instruction. Two values are the same only when they are one object."""

    name: str
    type: Type


# Unknown dimensions: which types fit which, and what a caller knows of a result (AMB-LANG-08, AMB-LANG-122).
#
# In an expected type, a plain `?` takes any dimension, and a name or a marked `?` denotes one dimension wherever it
# occurs.


Dims = MutableMapping[str, Dim]
"""Extents by their names and marks."""


def own_dims(types: Iterable[Type]) -> dict[str, Dim]:
    """Return the open dimensions of a function's parameters, each mapped to itself, as inside the function."""
    plain = [type_.value if isinstance(type_, Future) else type_ for type_ in types]
    tensors = [type_ for type_ in plain if isinstance(type_, Tensor)]
    return {dim: dim for tensor in tensors for dim in tensor.shape if isinstance(dim, str)}


def fits(expected: Type, actual: Type, dims: Dims) -> bool:
    """Return True if a value of type `actual` may replace one of `expected`; record the extents of names in `dims`."""
    if not isinstance(expected, Tensor) or not isinstance(actual, Tensor):
        if isinstance(expected, Future) and isinstance(actual, Future):
            return fits(expected.value, actual.value, dims)
        return expected == actual
    if (expected.dtype, expected.layout, expected.rank) != (actual.dtype, actual.layout, actual.rank):
        return False
    return all(
        want == have if isinstance(want, int) else want == "?" or dims.setdefault(want, have) == have
        for want, have in zip(expected.shape, actual.shape, strict=True)
    )


def agrees(inferred: Type, actual: Type) -> bool:
    """True if a result has the inferred type; where that type does not know a dimension, neither does the result."""
    if inferred == actual:
        return True
    if not isinstance(inferred, Tensor) or not isinstance(actual, Tensor):
        return isinstance(inferred, Future) and isinstance(actual, Future) and agrees(inferred.value, actual.value)
    return replace(inferred, shape=actual.shape) == actual and (
        len(inferred.shape) == len(actual.shape)
        and all(a == b or (a == "?" and is_unknown(b)) for a, b in zip(inferred.shape, actual.shape, strict=True))
    )


def shown(type_: Type) -> Type:
    """Return a type as text shows it, without marks."""
    if not isinstance(type_, Tensor) or not any(map(is_unknown, type_.shape)):
        return _future(shown(type_.value)) if isinstance(type_, Future) else type_
    return replace(type_, shape=tuple("?" if is_unknown(dim) else dim for dim in type_.shape))


def marked(type_: Type, name: str) -> Type:
    """Return the type of the value `name`, in which each unknown dimension becomes one of its own."""
    if not isinstance(type_, Tensor) or "?" not in type_.shape:
        return _future(marked(type_.value, name)) if isinstance(type_, Future) else type_
    return replace(type_, shape=tuple(f"?{name}.{axis}" if dim == "?" else dim for axis, dim in enumerate(type_.shape)))


def joined(a: Type, b: Type) -> Type | None:
    """Return the type of either of two values, unknown in dimensions that differ; None if the types differ in more."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        if isinstance(a, Future) and isinstance(b, Future):
            both = joined(a.value, b.value)
            return both and _future(both)
        return a if a == b else None
    if (a.dtype, a.layout, a.rank) != (b.dtype, b.layout, b.rank):
        return None
    return replace(a, shape=tuple(x if x == y else "?" for x, y in zip(a.shape, b.shape, strict=True)))


def with_marks(stated: Type, marked: Type) -> Type:
    """Return a type of the text, which shows no marks, with the known marks of its dimensions."""
    if isinstance(stated, Future) and isinstance(marked, Future):
        return _future(with_marks(stated.value, marked.value))
    if not isinstance(stated, Tensor) or not isinstance(marked, Tensor) or stated.rank != marked.rank:
        return stated
    pairs = zip(stated.shape, marked.shape, strict=True)
    return replace(stated, shape=tuple(k if is_unknown(s) and is_unknown(k) else s for s, k in pairs))


def loosened(precise: Type, stated: Type) -> Type:
    """Return a known type, with the dimensions that the text states as unknown."""
    if isinstance(stated, Future) and isinstance(precise, Future):
        return _future(loosened(precise.value, stated.value))
    if not isinstance(stated, Tensor) or not isinstance(precise, Tensor) or stated.rank != precise.rank:
        return precise
    pairs = zip(stated.shape, precise.shape, strict=True)
    return replace(precise, shape=tuple("?" if is_unknown(s) and not is_unknown(k) else k for s, k in pairs))


def substituted(type_: Type, dims: Dims) -> Type:
    """Return a result type in the words of the caller: dimensions that only the callee knows are unknown."""
    if not isinstance(type_, Tensor):
        return _future(substituted(type_.value, dims)) if isinstance(type_, Future) else type_
    return replace(type_, shape=tuple(dims.get(dim, "?") if isinstance(dim, str) else dim for dim in type_.shape))


def joined_all(lists: Sequence[tuple[Type, ...]]) -> tuple[Type, ...] | None:
    """Return the types of one of several lists of values; None where they differ too much."""
    both: tuple[Type, ...] = lists[0] if lists else ()
    for types in lists[1:]:
        pairs = [joined(a, b) for a, b in zip(both, types, strict=False)]
        if len(both) != len(types) or None in pairs:
            return None
        both = tuple(type_ for type_ in pairs if type_ is not None)
    return both


def loosened_all(precise: tuple[Type, ...], stated: tuple[Type, ...] | None) -> tuple[Type, ...]:
    """Return known types, loosened to the types that the text states, if it states any."""
    return tuple(map(loosened, precise, stated)) if stated is not None and len(stated) == len(precise) else precise


def _future(value: Type) -> Future:
    """Return a future of a changed value type, which is of the same kind."""
    assert isinstance(value, Tensor | Scalar)
    return Future(value)
