"""Operations by name, with attributes in JSON, as the harness evaluates them one at a time (AMB-RT-73)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any, TypeAlias, get_args

from . import activations, elementary, fourier, quantization, random, reductions
from .array import Array
from .attributes import Reader, dtype_name, extents, one_of, real, switch, tree, whole
from .errors import InvalidArgument
from .formats import DType
from .matmul import matmul
from .reductions import softmax
from .rounding import Overflow, cast
from .trees import FOLD, Tree

Results: TypeAlias = tuple[Array, ...]


def evaluate(operation: str, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Results:
    """Evaluate an operation of `OPERATIONS`, and return its results in order.

    Raises `InvalidArgument` for an unknown operation or attribute, a missing attribute, a value that is not of the
    attribute's kind, or another number of operands; and the errors of the operation itself.
    """
    one_of(*OPERATIONS)("evaluate", "operation", operation)
    least, most = operand_counts(operation)
    if not least <= len(operands) <= most:
        allowed = f"{least}" if least == most else f"{least} or {most}"
        raise InvalidArgument(operation, "number of operands", len(operands), allowed)
    settings = read_attributes(operation, attributes)
    for name, parameter in attributes_of(operation).items():
        if parameter.default is Parameter.empty and name not in settings:
            raise InvalidArgument(operation, name, None, "a value, since it has no default")
    result = OPERATIONS[operation](*operands, **settings)
    return result if isinstance(result, tuple) else (result,)


def read_attributes(operation: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Read attributes of an operation of `OPERATIONS` from JSON. Raises `InvalidArgument` for another attribute."""
    names = attributes_of(operation)
    for name in attributes:
        if name not in names:
            raise InvalidArgument(operation, "attribute", name, "one of " + ", ".join(names or ("none",)))
    return {name: READERS[name](operation, name, value) for name, value in attributes.items()}


@cache
def _parameters(operation: str) -> Mapping[str, Parameter]:
    return signature(OPERATIONS[operation]).parameters


def attributes_of(operation: str) -> Mapping[str, Parameter]:
    """Return the parameters that JSON can state."""
    return {name: parameter for name, parameter in _parameters(operation).items() if name in READERS}


def operand_counts(operation: str) -> tuple[int, int]:
    """Return the least and the greatest number of operands: the parameters that are arrays, some with a default."""
    if operation in elementary.FUNCTIONS:
        return (2, 2) if operation == "pow" else (1, 1)
    arrays = [
        parameter for parameter in _parameters(operation).values() if parameter.annotation in ("Array", "Array | None")
    ]
    return sum(array.default is Parameter.empty for array in arrays), len(arrays)


def _matmul(
    a: Array,
    b: Array,
    addend: Array | None = None,
    *,
    out: DType | None = None,
    accum: DType | None = None,
    tree: Tree = FOLD,
) -> Array:
    return matmul(a, b, out, addend=addend, accumulator=accum, tree=tree)


def _uniform(shape: Sequence[int], dtype: DType, seed: int = 0, stream: int = 0, offset: int = 0) -> Array:
    return random.uniform(seed, stream, shape, dtype, offset)


def _normal(shape: Sequence[int], dtype: DType, seed: int = 0, stream: int = 0, offset: int = 0) -> Array:
    return random.normal(seed, stream, shape, dtype, offset)


def _dropout(x: Array, rate: float, seed: int = 0, stream: int = 0, offset: int = 0) -> Array:
    return random.dropout(x, rate, seed, stream, offset)


_UNSIGNED = whole(0, (1 << 64) - 1)

READERS: Mapping[str, Reader] = {
    "axis": whole(-(1 << 63), (1 << 63) - 1),
    "keepdims": switch,
    "tree": tree,
    "order": one_of(*get_args(reductions.Order)),
    "norm": one_of(*get_args(fourier.Norm)),
    "approximate": one_of(*get_args(activations.Approximate)),
    "overflow": one_of(*get_args(Overflow)),
    **dict.fromkeys(("dtype", "out", "accum", "wire"), dtype_name),
    **dict.fromkeys(("seed", "stream", "offset", "k"), _UNSIGNED),
    "block": whole(1, (1 << 64) - 1),
    "rate": real,
    "shape": extents,
}
"""Readers of attributes of all operations."""

OPERATIONS: Mapping[str, Callable[..., Array | Results]] = {
    **{name: partial(elementary.apply, name) for name in elementary.FUNCTIONS},
    "sigmoid": activations.sigmoid,
    "silu": activations.silu,
    "gelu": activations.gelu,
    "relu": activations.relu,
    "cast": cast,
    "sum": reductions.sum,
    "mean": reductions.mean,
    "prod": reductions.prod,
    "logsumexp": reductions.logsumexp,
    "max": reductions.max,
    "min": reductions.min,
    "argmax": reductions.argmax,
    "softmax": softmax,
    "matmul": _matmul,
    "fft": fourier.fft,
    "ifft": fourier.ifft,
    "uniform": _uniform,
    "normal": _normal,
    "dropout": _dropout,
    "quantize": quantization.quantize,
    "dequantize": quantization.dequantize,
    "error_feedback": quantization.error_feedback,
    "top_k": quantization.top_k,
}
"""Every operation by its name in the reference arithmetic: a function of arrays, and of attributes of these names."""
