"""Verification of the attributes that any operation may carry, at every level of IR (section 5.3).

`shape`, `dtype` and `layout` state what the result is anyway and must agree with it; `mesh_axes` lists axes of meshes
of the module (AMB-LANG-60); `precision` and `numerics_profile` are annotations of numerics (AMB-LANG-51, AMB-LANG-83).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..numerics.formats import DTYPES, DType
from .operation import AttributeValue, Refusal, require
from .spelling import did_you_mean
from .types import Mesh, Tensor, Type, dtype_of

COMMON_ATTRIBUTES: Mapping[str, Any] = {
    "shape": tuple[int, ...],
    "dtype": DType,
    "layout": str,
    "mesh_axes": tuple[str, ...],
    "precision": str,
    "numerics_profile": str,
}
"""Each with its kind."""

PROFILES = ("fast", "deterministic", "strict")
"""Numerics profiles, the loosest first (spec section 10)."""


def check_common(values: Mapping[str, Any], results: Sequence[Type], meshes: Mapping[str, Mesh]) -> None:
    """Refuse what contradicts the result type, axes that no mesh of the module has, and what is no annotation."""
    _check_numerics(values)
    known = [axis for mesh in meshes.values() for axis in mesh.axes]
    for axis in values.get("mesh_axes", ()):
        require(
            axis in known,
            "distributed",
            f"no mesh has the axis {axis!r}",
            f"one of {', '.join(known)}" if known else "a mesh in the module",
            "LANG-05.3-04",
            did_you_mean(axis, known),
        )
    if values.keys() & {"shape", "dtype", "layout"}:
        _check_result(values, results[0] if results else None)


def _check_numerics(values: Mapping[str, Any]) -> None:
    profile, precision = values.get("numerics_profile"), values.get("precision")
    if profile is not None and profile not in PROFILES:
        remedy = did_you_mean(str(profile), PROFILES)
        requirement = f"one of {', '.join(PROFILES)}"
        raise Refusal("numerics", f"{profile!r} is no numerics profile", requirement, "LANG-10-04", remedy)
    if precision is not None and (precision not in DTYPES or DTYPES[precision].kind not in ("float", "complex")):
        remedy = did_you_mean(str(precision), DTYPES)
        raise Refusal("numerics", f"{precision!r} is no precision", "a float dtype", "LANG-02-09", remedy)


def _check_result(values: Mapping[str, AttributeValue], result: Type | None) -> None:
    shape, held, layout = values.get("shape"), values.get("dtype"), values.get("layout")
    actual = result.shape if isinstance(result, Tensor) else ()
    require(
        shape is None or (isinstance(shape, tuple) and _is_shape(shape, actual)),
        "shapes",
        f"shape={list(shape) if isinstance(shape, tuple) else shape} is stated, the result is {result}",
        "the shape that the result has",
        "LANG-05.3-01",
    )
    require(
        held is None or held == dtype_of(result),
        "types",
        f"dtype={held} is stated, the result is {result}",
        "the dtype that the result has",
        "LANG-05.3-02",
    )
    require(
        layout is None or (isinstance(result, Tensor) and result.layout.text == layout),
        "layouts",
        f"layout={layout} is stated, the result is {result}",
        "the layout that the result has",
        "LANG-05.3-03",
        "cast it: op.layout_cast(..., to=...)",
    )


def _is_shape(stated: Sequence[Any], actual: Sequence[int | str]) -> bool:
    """Whether a shape is stated rightly; a dimension that is not a number may be any."""
    return len(stated) == len(actual) and all(
        have == want or isinstance(have, str) for want, have in zip(stated, actual, strict=True)
    )
