"""Accumulation against the numerics profile (spec sections 10, 11; LANG-11-13, AMB-LANG-69)."""

from __future__ import annotations

from ..ir.operation import Operation, require
from ..ir.types import dtype_of
from ..numerics.formats import DType

__all__ = ["refuse_narrow_accumulation"]


def refuse_narrow_accumulation(operation: Operation, profile: str | None) -> None:
    """Refuse an accumulator narrower than the canon's unless the profile is fast; no profile means strict.

    Raises `Refusal`.
    """
    accumulator = operation.attributes.get("accum")
    if profile == "fast" or not isinstance(accumulator, DType):
        return
    operand = dtype_of(operation.operand_types[0][1])
    if operand is None:
        return
    canonical = operand.accumulator
    require(
        not _is_narrower(accumulator, canonical),
        "numerics",
        f"accumulates in {accumulator}, which is narrower than {canonical}",
        f"accum={canonical}, or numerics_profile fast",
        "LANG-11-13",
        "leave accum out",
    )


def _is_narrower(dtype: DType, canonical: DType) -> bool:
    """Whether `dtype` is of the kind of `canonical` and lacks some of its values."""
    if dtype.kind != canonical.kind:
        return False
    if dtype.kind == "int":
        return dtype.bits < canonical.bits
    stored = dtype.storage
    return stored.fraction_bits < canonical.fraction_bits or stored.exponent_bits < canonical.exponent_bits
