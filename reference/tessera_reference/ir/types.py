"""The types of values in Graph IR: tensors and scalars (spec sections 2.2, 3, 5.1).

A dimension is an extent, a name (AMB-LANG-08) or unknown. Two unknown dimensions are equal only when they are the same
one, so that of a value carries, behind its `?`, a mark of where it came from; the mark is never printed. Fragments,
memrefs and meshes belong to later rooms.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..numerics.formats import DType

Dim = int | str
"""An extent; a name; or `?` and a mark."""


def is_unknown(dim: Dim) -> bool:
    """Whether a dimension is a `?`."""
    return isinstance(dim, str) and dim.startswith("?")


def show_dim(dim: Dim) -> str:
    """A dimension as the source spells it."""
    return "?" if is_unknown(dim) else str(dim)


@dataclass(frozen=True)
class Layout:
    """The order of a tensor's elements in memory, an attribute of its own (LANG-03.3-01)."""

    name: str
    parameters: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.name}({inside})" if inside else self.name


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
        """The same tensor of another dtype."""
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
        """A scalar of another dtype."""
        return Scalar(dtype)

    def __str__(self) -> str:
        return self.dtype.name


Type = Tensor | Scalar
