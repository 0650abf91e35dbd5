"""The dtypes of the specifications: their values and their carriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

# The base of the arithmetic's errors, and the quotation of values in messages.


_LONGEST_SHOWN = 200
"""The most characters of a value that a message quotes."""


def shown(value: object) -> str:
    """Return a value as messages quote it: its representation, shortened where it is long."""
    try:
        quoted = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, lists a thousand deep
        return f"a value of type {type(value).__name__} too long to be shown"
    return quoted if len(quoted) <= _LONGEST_SHOWN else quoted[:_LONGEST_SHOWN] + "..."


class NumericsFailure(Exception):
    """Base of everything raised on purpose by `tessera_reference.numerics`."""


# The dtypes of the specifications: their values and their carriers.
#
# Runtime spec Appendix B (ids), language spec section 2.2 (names), reference arithmetic ("formats", "accumulators"). A
# narrow float is held in a wider numpy type, its *carrier*, in which every value of it is exact.


Kind: TypeAlias = Literal["float", "int", "bool", "complex"]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One dtype: a name, a kind and, for floats, the fields of the format. Each is one object, that of `DTYPES`.

    `bits` counts storage. The three format fields of a complex dtype describe one component; those of tf32 describe the
    rounding of matmul's operands, while its storage is fp32 (see `storage`). `abi_id` is None for tf32 alone.
    """

    name: str
    kind: Kind
    bits: int
    exponent_bits: int = 0
    fraction_bits: int = 0
    bias: int = 0
    has_infinity: bool = False
    abi_id: int | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def storage_bytes(self) -> int:
        """The bytes of one element; fp8 and bool take one (RT-19.B-01, RT-19.B-11)."""
        return self.bits // 8

    @property
    def storage(self) -> DType:
        """The dtype whose values an array of this one holds: fp32 for tf32, a math mode; else itself."""
        return DTYPES["fp32"] if self.name == "tf32" else self

    @property
    def carrier(self) -> np.dtype[Any]:
        """The numpy dtype in which values are held exactly."""
        return _CARRIERS[self.name]

    @property
    def accumulator(self) -> DType:
        """The dtype sums and products of this one are accumulated in (LANG-10-02, LANG-15-04 to -06, LANG-15-14)."""
        return DTYPES[_ACCUMULATORS[self.name]]

    @property
    def component(self) -> DType:
        """The dtype of the real and of the imaginary part. Raises `UnsupportedDType` for a real dtype."""
        if self.kind != "complex":
            raise UnsupportedDType("taking components", self)
        return DTYPES["fp32" if self.bits == 64 else "fp64"]

    @property
    def is_narrow(self) -> bool:
        """True if this is a float narrower than its carrier: fp8, fp16 or bf16."""
        return self.kind == "float" and self.bits < 32

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal number, and of every subnormal."""
        return 1 - self.bias

    @property
    def max_exponent(self) -> int:
        """The exponent of the largest finite number; fp8_e4m3 spends no exponent code on infinities."""
        codes = (1 << self.exponent_bits) - (2 if self.has_infinity else 1)
        return codes - self.bias

    @property
    def max_finite(self) -> float:
        """The largest finite value; in fp8_e4m3 the last significand of the last binade is NaN, hence 448."""
        steps_below_two = 1 if self.has_infinity else 2
        return (2.0 - steps_below_two * 2.0**-self.fraction_bits) * 2.0**self.max_exponent

    @property
    def min_normal(self) -> float:
        """The smallest positive normal value."""
        return 2.0**self.min_exponent

    @property
    def min_subnormal(self) -> float:
        """The smallest positive value."""
        return 2.0 ** (self.min_exponent - self.fraction_bits)

    @property
    def int_min(self) -> int:
        """The smallest value of an integer dtype."""
        return -(1 << (self.bits - 1))

    @property
    def int_max(self) -> int:
        """The largest value of an integer dtype."""
        return (1 << (self.bits - 1)) - 1


@dataclass(eq=False, repr=False)
class UnknownDType(NumericsFailure):
    """`name` is not a dtype of the specifications."""

    name: str

    def __str__(self) -> str:
        return f"unknown dtype {shown(self.name)}"


@dataclass(eq=False, repr=False)
class UnsupportedDType(NumericsFailure):
    """`operation` is not defined on `dtype`."""

    operation: str
    dtype: DType

    def __str__(self) -> str:
        return f"{self.operation} is not defined on {self.dtype}"


def dtype(name: str) -> DType:
    """Return the dtype called `name`. Raises `UnknownDType`."""
    try:
        return DTYPES[name]
    except (KeyError, TypeError):  # a name that is not a string may be unhashable
        raise UnknownDType(name) from None


DTYPES: dict[str, DType] = {
    format_.name: format_
    for format_ in (
        DType("fp8_e4m3", "float", 8, exponent_bits=4, fraction_bits=3, bias=7, has_infinity=False, abi_id=1),
        DType("fp8_e5m2", "float", 8, exponent_bits=5, fraction_bits=2, bias=15, has_infinity=True, abi_id=2),
        DType("fp16", "float", 16, exponent_bits=5, fraction_bits=10, bias=15, has_infinity=True, abi_id=3),
        DType("bf16", "float", 16, exponent_bits=8, fraction_bits=7, bias=127, has_infinity=True, abi_id=4),
        DType("fp32", "float", 32, exponent_bits=8, fraction_bits=23, bias=127, has_infinity=True, abi_id=5),
        DType("fp64", "float", 64, exponent_bits=11, fraction_bits=52, bias=1023, has_infinity=True, abi_id=6),
        DType("int8", "int", 8, abi_id=7),
        DType("int16", "int", 16, abi_id=8),
        DType("int32", "int", 32, abi_id=9),
        DType("int64", "int", 64, abi_id=10),
        DType("bool", "bool", 8, abi_id=11),
        DType("complex64", "complex", 64, exponent_bits=8, fraction_bits=23, bias=127, has_infinity=True, abi_id=12),
        DType(
            "complex128", "complex", 128, exponent_bits=11, fraction_bits=52, bias=1023, has_infinity=True, abi_id=13
        ),
        DType("tf32", "float", 32, exponent_bits=8, fraction_bits=10, bias=127, has_infinity=True, abi_id=None),
    )
}
"""Every dtype by name: in the order of the ABI ids, then tf32, which has none (AMB-RT-28)."""

_CARRIERS: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32"), np.dtype(np.float32)),
    "fp64": np.dtype(np.float64),
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "bool", "complex64", "complex128")},
}

_ACCUMULATORS: dict[str, str] = {
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32"), "fp32"),
    **dict.fromkeys(("int8", "int16", "int32"), "int32"),
    **{name: name for name in ("fp64", "int64", "bool", "complex64", "complex128")},
}
