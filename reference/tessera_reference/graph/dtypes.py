"""What operations require of the dtypes of their operands."""

from ..ir.operation import Refusal, require
from ..ir.types import Numeric
from ..numerics.formats import DType


def require_kind(dtype: DType, *kinds: str) -> None:
    """A dtype of one of these kinds. Raises `Refusal`."""
    if dtype.kind not in kinds:
        wanted = f"a dtype of kind {' or '.join(kinds)}"
        raise Refusal("types", f"is not defined on {dtype}", wanted, "LANG-11-01", "")


def require_numeric(dtype: DType) -> None:
    """Any dtype but bool. Raises `Refusal`."""
    require(dtype.kind != "bool", "types", "is not defined on bool", "a numeric dtype", "LANG-11-01")


def require_float(x: Numeric) -> None:
    """A float dtype. Raises `Refusal`."""
    remedy = "cast the operand with op.cast"
    require(x.dtype.kind == "float", "types", f"is not defined on {x.dtype}", "a float dtype", "LANG-11-01", remedy)


def require_accumulator(dtype: DType, accum: DType) -> None:
    """An accumulator of the kind that `dtype` has by the canon. Raises `Refusal`."""
    kind = dtype.accumulator.kind
    if accum.kind != kind:
        message, wanted = f"{dtype} does not accumulate in {accum}", f"an accumulator of kind {kind}"
        raise Refusal("types", message, wanted, "LANG-10-01", "")
