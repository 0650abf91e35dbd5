"""Operations by name, with attributes in JSON, as the harness evaluates them one at a time (AMB-RT-73)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of `operands` arrays, or of one more that may be left out, and of the attributes named."""

    function: Callable[..., Array | Results]
    operands: int
    attributes: tuple[str, ...] = ()
    optional_operand: bool = False


def evaluate(operation: str, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Results:
    """Evaluate an operation of `OPERATIONS`; the results in order.

    Raises `InvalidArgument` for an unknown operation or attribute, a missing attribute, a value that is not of the
    attribute's kind, or another number of operands; and what the operation itself raises.
    """
    one_of(*OPERATIONS)("evaluate", "operation", operation)
    entry = OPERATIONS[operation]
    if not entry.operands <= len(operands) <= entry.operands + entry.optional_operand:
        allowed = f"{entry.operands} or {entry.operands + 1}" if entry.optional_operand else f"{entry.operands}"
        raise InvalidArgument(operation, "number of operands", len(operands), allowed)
    settings = read_attributes(operation, attributes)
    for name in _required(entry):
        if name not in settings:
            raise InvalidArgument(operation, name, None, "a value, since it has no default")
    result = entry.function(*operands, **settings)
    return result if isinstance(result, tuple) else (result,)


def read_attributes(operation: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Read attributes of an operation of `OPERATIONS` from JSON. Raises `InvalidArgument` for one that is not its."""
    names = OPERATIONS[operation].attributes
    for name in attributes:
        if name not in names:
            raise InvalidArgument(operation, "attribute", name, "one of " + ", ".join(names or ("none",)))
    return {name: READERS[name](operation, name, value) for name, value in attributes.items()}


def _required(entry: Entry) -> list[str]:
    parameters = inspect.signature(entry.function).parameters
    return [name for name in entry.attributes if parameters[name].default is inspect.Parameter.empty]


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


def _quantize(x: Array, wire: DType, block: int) -> Results:
    quantized = quantization.quantize(x, wire, block)
    return quantized.codes, quantized.scales


def _error_feedback(gradient: Array, residual: Array, wire: DType, block: int) -> Results:
    feedback = quantization.error_feedback(gradient, residual, wire, block)
    return feedback.sent, feedback.residual


def _top_k(x: Array, k: int) -> Results:
    kept = quantization.top_k(x, k)
    return kept.values, kept.indices


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
"""Readers of attributes, whichever operation they are of."""

_ALONG = ("axis", "keepdims")
_RANDOM = ("shape", "dtype", "seed", "stream", "offset")

OPERATIONS: Mapping[str, Entry] = {
    **{
        name: Entry(partial(elementary.apply, name), 2 if name == "pow" else 1, ("overflow",))
        for name in elementary.FUNCTIONS
    },
    "sigmoid": Entry(activations.sigmoid, 1, ("overflow",)),
    "silu": Entry(activations.silu, 1, ("overflow",)),
    "gelu": Entry(activations.gelu, 1, ("approximate", "overflow")),
    "relu": Entry(activations.relu, 1),
    "cast": Entry(cast, 1, ("dtype", "overflow")),
    "sum": Entry(reductions.sum, 1, (*_ALONG, "tree", "order")),
    "mean": Entry(reductions.mean, 1, (*_ALONG, "tree", "order")),
    "prod": Entry(reductions.prod, 1, (*_ALONG, "tree")),
    "logsumexp": Entry(reductions.logsumexp, 1, (*_ALONG, "tree")),
    "max": Entry(reductions.max, 1, _ALONG),
    "min": Entry(reductions.min, 1, _ALONG),
    "argmax": Entry(reductions.argmax, 1, _ALONG),
    "softmax": Entry(softmax, 1, ("axis", "tree")),
    "matmul": Entry(_matmul, 2, ("out", "accum", "tree"), optional_operand=True),
    "fft": Entry(fourier.fft, 1, ("norm",)),
    "ifft": Entry(fourier.ifft, 1, ("norm",)),
    "uniform": Entry(_uniform, 0, _RANDOM),
    "normal": Entry(_normal, 0, _RANDOM),
    "dropout": Entry(_dropout, 1, ("rate", "seed", "stream", "offset")),
    "quantize": Entry(_quantize, 1, ("wire", "block")),
    "dequantize": Entry(quantization.dequantize, 2, ("block",)),
    "error_feedback": Entry(_error_feedback, 2, ("wire", "block")),
    "top_k": Entry(_top_k, 1, ("k",)),
}
"""Every operation by its name in the reference arithmetic."""
