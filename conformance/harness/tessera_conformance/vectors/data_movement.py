"""The programs of operations that move, choose or join elements (AMB-LANG-106, AMB-LANG-165), each one call.

The type of the result is that of the oracle's answer: what an operation gives is said once, there.
"""

from __future__ import annotations

from typing import Any

from tessera_conformance import oracle
from tessera_conformance.dsl import type_text
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.programs import ACCUMULATING, applied

_ANY = ("LANG-02-04",)
_PLACES = ("LANG-02-04", "LANG-03.2-01")
_BROADCASTING = ("LANG-02-04", "LANG-03.2-02")

CLAUSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("select", "maximum", "minimum", "clamp", "broadcast"), _BROADCASTING),
    **dict.fromkeys(("transpose", "reshape", "slice", "gather", "concat", "pad"), _PLACES),
    "scatter_add": ACCUMULATING,
    "layout_cast": ("LANG-02-04", "LANG-03.3-01"),
    "iota": ("LANG-02-04", "LANG-05.3-01", "LANG-05.3-02"),
    "const_tensor": ("LANG-05.2-01", "LANG-05.3-01", "LANG-05.3-02"),
}
"""What the vectors of an operation judge, where it is more than `_ANY`."""

FEATURES = {"const_tensor": (), "layout_cast": ("layout-casts",)}
"""What is asked for: the documents name const_tensor (AMB-LANG-101), AMB-LANG-157 the cast; others are tensor-ops."""

STRETCHING = ("select", "maximum", "minimum", "clamp")
"""Those whose operands broadcast as those of operators do: other than scalars by feature broadcasting-ops."""


def moved(name: str, *operands: Tensor, **attributes: Any) -> Question:
    """`op.pad(A) @{low=[1, 0], high=[0, 2], value=0.5}` and its kin; a text among the attributes stands as it is."""
    function = oracle.FUNCTIONS[f"oracle.{name}"]
    answer = function(*operands, **attributes)
    inputs = dict(zip("ABCDEFGH", operands, strict=False))
    result = type_text(answer.dtype, answer.shape)
    if name == "layout_cast":
        result = f"{result.removesuffix('>')}; layout={attributes['to']}>"
    clauses = CLAUSES.get(name, _ANY)
    return applied(name, inputs, result, clauses, _features(name, operands), **attributes)


def _features(name: str, operands: tuple[Tensor, ...]) -> tuple[str, ...]:
    shapes = {operand.shape for operand in operands} - {()}
    stretches = name in STRETCHING and len(shapes) > 1
    return (*FEATURES.get(name, ("tensor-ops",)), *(["broadcasting-ops"] * stretches))
