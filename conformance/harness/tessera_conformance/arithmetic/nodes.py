"""The arithmetic of one node of a reduction tree, as a declared value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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
    """A malformed node arithmetic; `field` is the wrong field, "" for the whole."""

    def __init__(self, field: str, expected: str) -> None:
        self.field, self.expected = field, expected
        super().__init__(f"arithmetic{'.' if field else ''}{field}: expected {expected}")


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
                raise ModelError(field, f"one of {', '.join(allowed)}")
        bits = self.alignment_bits
        if bits is not None and (type(bits) is not int or not 0 <= bits <= MOST_ALIGNMENT_BITS):
            raise ModelError("alignment_bits", f"null or an integer from 0 to {MOST_ALIGNMENT_BITS}")

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
        if not isinstance(value, Mapping):
            raise ModelError("", "an object with product, accumulator, rounding, alignment_bits, subnormals and start")
        fields = {"product", "accumulator", "rounding", "alignment_bits", "subnormals", "start"}
        unknown = sorted(str(key) for key in value.keys() - fields)
        if unknown:
            raise ModelError(unknown[0], f"no such field; the fields are {', '.join(sorted(fields))}")
        if "accumulator" not in value:
            raise ModelError("accumulator", f"one of {', '.join(CHOICES['accumulator'])}")
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, with every field but a start from +0."""
        fields = asdict(self)
        shown = ("product", "accumulator", "rounding", "alignment_bits", "subnormals")
        return {key: fields[key] for key in shown} | ({} if self.start == "zero" else {"start": self.start})

    def but(self, **changes: Any) -> NodeArithmetic:
        """Return the arithmetic with some fields changed."""
        return replace(self, **changes)


def canonical(dtype: str) -> NodeArithmetic:
    """Return the reference arithmetic for operands of a dtype (reference arithmetic, "accumulators").

    Raises `ModelError`: the dtype has no accumulator.
    """
    if dtype not in ACCUMULATORS:
        raise ModelError("accumulator", f"operands of one of {', '.join(ACCUMULATORS)}, not {dtype}")
    return NodeArithmetic(accumulator=ACCUMULATORS[dtype])
