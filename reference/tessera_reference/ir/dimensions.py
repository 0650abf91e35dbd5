"""Dimensions that are not known: which types fit which, what a caller knows of a result (AMB-LANG-08, AMB-LANG-122).

In a type that is wanted, a plain `?` takes any dimension, and a name or a marked `?` stands for one dimension wherever
it occurs.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import replace

from .types import Dim, Future, Scalar, Tensor, Type, is_unknown

Dims = MutableMapping[str, Dim]
"""What names and marks stand for."""


def own_dims(types: Iterable[Type]) -> dict[str, Dim]:
    """The open dimensions of a function's parameters, each standing for itself: so it is inside the function."""
    held = [type_.value if isinstance(type_, Future) else type_ for type_ in types]
    tensors = [type_ for type_ in held if isinstance(type_, Tensor)]
    return {dim: dim for tensor in tensors for dim in tensor.shape if isinstance(dim, str)}


def fits(wanted: Type, given: Type, dims: Dims) -> bool:
    """Whether a value of type `given` may stand where `wanted` is; notes in `dims` what names stand for."""
    if not isinstance(wanted, Tensor) or not isinstance(given, Tensor):
        if isinstance(wanted, Future) and isinstance(given, Future):
            return fits(wanted.value, given.value, dims)
        return wanted == given
    if (wanted.dtype, wanted.layout, wanted.rank) != (given.dtype, given.layout, given.rank):
        return False
    return all(
        want == have if isinstance(want, int) else want == "?" or dims.setdefault(want, have) == have
        for want, have in zip(wanted.shape, given.shape, strict=True)
    )


def agrees(inferred: Type, actual: Type) -> bool:
    """Whether a result has the type that was inferred; where that does not know a dimension, nor does the result."""
    if inferred == actual:
        return True
    if not isinstance(inferred, Tensor) or not isinstance(actual, Tensor):
        return isinstance(inferred, Future) and isinstance(actual, Future) and agrees(inferred.value, actual.value)
    return replace(inferred, shape=actual.shape) == actual and (
        len(inferred.shape) == len(actual.shape)
        and all(a == b or (a == "?" and is_unknown(b)) for a, b in zip(inferred.shape, actual.shape, strict=True))
    )


def shown(type_: Type) -> Type:
    """A type as text shows it: without marks."""
    if not isinstance(type_, Tensor) or not any(map(is_unknown, type_.shape)):
        return _future(shown(type_.value)) if isinstance(type_, Future) else type_
    return replace(type_, shape=tuple("?" if is_unknown(dim) else dim for dim in type_.shape))


def marked(type_: Type, name: str) -> Type:
    """The type of the value `name`: each dimension that is not known becomes one of its own."""
    if not isinstance(type_, Tensor) or "?" not in type_.shape:
        return _future(marked(type_.value, name)) if isinstance(type_, Future) else type_
    return replace(type_, shape=tuple(f"?{name}.{axis}" if dim == "?" else dim for axis, dim in enumerate(type_.shape)))


def joined(a: Type, b: Type) -> Type | None:
    """The type of what is one of two values; where their dimensions differ, unknown. Nothing where more does."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        if isinstance(a, Future) and isinstance(b, Future):
            both = joined(a.value, b.value)
            return both and _future(both)
        return a if a == b else None
    if (a.dtype, a.layout, a.rank) != (b.dtype, b.layout, b.rank):
        return None
    return replace(a, shape=tuple(x if x == y else "?" for x, y in zip(a.shape, b.shape, strict=True)))


def with_marks(stated: Type, known: Type) -> Type:
    """A type as the text states it, which shows no marks, with those that are known of it."""
    if isinstance(stated, Future) and isinstance(known, Future):
        return _future(with_marks(stated.value, known.value))
    if not isinstance(stated, Tensor) or not isinstance(known, Tensor) or stated.rank != known.rank:
        return stated
    pairs = zip(stated.shape, known.shape, strict=True)
    return replace(stated, shape=tuple(k if is_unknown(s) and is_unknown(k) else s for s, k in pairs))


def loosened(known: Type, stated: Type) -> Type:
    """A type that is known, but for the dimensions that the text states not to be."""
    if isinstance(stated, Future) and isinstance(known, Future):
        return _future(loosened(known.value, stated.value))
    if not isinstance(stated, Tensor) or not isinstance(known, Tensor) or stated.rank != known.rank:
        return known
    pairs = zip(stated.shape, known.shape, strict=True)
    return replace(known, shape=tuple("?" if is_unknown(s) and not is_unknown(k) else k for s, k in pairs))


def substituted(type_: Type, dims: Dims) -> Type:
    """A result type in the words of the caller: what only the callee knows is unknown there."""
    if not isinstance(type_, Tensor):
        return _future(substituted(type_.value, dims)) if isinstance(type_, Future) else type_
    return replace(type_, shape=tuple(dims.get(dim, "?") if isinstance(dim, str) else dim for dim in type_.shape))


def joined_all(lists: Sequence[tuple[Type, ...]]) -> tuple[Type, ...] | None:
    """The types of what is one of several lists of values; nothing where they differ too much."""
    both: tuple[Type, ...] = lists[0] if lists else ()
    for types in lists[1:]:
        pairs = [joined(a, b) for a, b in zip(both, types, strict=False)]
        if len(both) != len(types) or None in pairs:
            return None
        both = tuple(type_ for type_ in pairs if type_ is not None)
    return both


def loosened_all(known: tuple[Type, ...], stated: tuple[Type, ...] | None) -> tuple[Type, ...]:
    """Types that are known, loosened as the text states, where it states any."""
    return tuple(map(loosened, known, stated)) if stated is not None and len(stated) == len(known) else known


def _future(value: Type) -> Future:
    """A future of what was made of its value's type, which is of the same kind."""
    assert isinstance(value, Tensor | Scalar)
    return Future(value)
