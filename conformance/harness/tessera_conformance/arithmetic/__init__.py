"""The arithmetic of one node of a reduction tree, as a declared value; beside it the replay of a declared order.

A vendor at the deterministic level declares the order of its sums and the arithmetic of each node; `replay` computes
the result of that declaration, bit for bit. It shares nothing with the reference implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from tessera_conformance.oracle.exact import ACCUMULATORS, FORMATS, FloatFormat, Format, Rounding

Product: TypeAlias = Literal["rounded", "fused"]
Subnormals: TypeAlias = Literal["kept", "flushed"]
Start: TypeAlias = Literal["zero", "none"]

CHOICES: Mapping[str, tuple[str, ...]] = {
    "product": get_args(Product),
    "accumulator": tuple(name for name in FORMATS if name != "bool"),
    "rounding": get_args(Rounding),
    "subnormals": get_args(Subnormals),
    "start": get_args(Start),
}
MOST_ALIGNMENT_BITS = 4096


class ModelError(ValueError):
    """A malformed node arithmetic; the message names the wrong field."""


@dataclass(frozen=True)
class NodeArithmetic:
    """The arithmetic of a tree's nodes.

    `product` is the rounding of products before they are added; `alignment_bits` the number of bits below the largest
    exponent that a fused node of three or more terms keeps of each, None for all; `subnormals` is kept or flushed, for
    inputs and results. A product without a C operand starts from +0 (`start` is `zero`) or from its first term
    (`none`): then a sum of negative zeros is negative.

    Raises `ModelError`: a field has an invalid value.
    """

    accumulator: str
    product: Product = "rounded"
    rounding: Rounding = "nearest_even"
    alignment_bits: int | None = None
    subnormals: Subnormals = "kept"
    start: Start = "zero"

    def __post_init__(self) -> None:
        for field, allowed in CHOICES.items():
            if getattr(self, field) not in allowed:
                raise ModelError(f"arithmetic.{field}: expected one of {', '.join(allowed)}")
        bits = self.alignment_bits
        if bits is not None and (type(bits) is not int or not 0 <= bits <= MOST_ALIGNMENT_BITS):
            raise ModelError(f"arithmetic.alignment_bits: expected null or an integer from 0 to {MOST_ALIGNMENT_BITS}")

    @property
    def format(self) -> Format:
        """The format of every node's result."""
        return FORMATS[self.accumulator]

    @property
    def is_float(self) -> bool:
        """True if nodes round at all; integers wrap."""
        return isinstance(self.format, FloatFormat)

    @classmethod
    def from_json(cls, value: Any) -> NodeArithmetic:
        """Return the model of a JSON object; a missing field is as in the reference, but the accumulator is required.

        Raises `ModelError`: not an object, an unknown field, or an invalid value of a field.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(value, Mapping):
            shown = "product, accumulator, rounding, alignment_bits, subnormals and start"
            raise ModelError(f"arithmetic: expected an object with {shown}")
        unknown = sorted(str(key) for key in value if key not in names)
        if unknown:
            known = ", ".join(sorted(names))
            raise ModelError(f"arithmetic.{unknown[0]}: expected no such field; the fields are {known}")
        if "accumulator" not in value:
            raise ModelError(f"arithmetic.accumulator: expected one of {', '.join(CHOICES['accumulator'])}")
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, with every field but a start from +0."""
        shown = {name: value for name, value in asdict(self).items() if (name, value) != ("start", "zero")}
        return {"product": shown.pop("product"), **shown}

    def but(self, **changes: Any) -> NodeArithmetic:
        """Return the arithmetic with some fields changed."""
        return replace(self, **changes)


def canonical(dtype: str) -> NodeArithmetic:
    """Return the reference arithmetic for operands of a dtype (reference arithmetic, "accumulators").

    Raises `ModelError`: the dtype has no accumulator.
    """
    if dtype not in ACCUMULATORS:
        raise ModelError(f"arithmetic.accumulator: expected operands of one of {', '.join(ACCUMULATORS)}, not {dtype}")
    return NodeArithmetic(accumulator=ACCUMULATORS[dtype])
