"""Operations by name, with attributes as JSON has them: what a harness asks for one operation at a time (AMB-RT-73)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from . import activations, elementary, fourier, quantization, random, reductions
from .array import Array
from .errors import InvalidArgument
from .formats import DType, dtype
from .matmul import matmul
from .rounding import cast
from .softmax import softmax
from .trees import FOLD, Tree

__all__ = ["OPERATIONS", "Entry", "evaluate"]

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

    Raises `InvalidArgument` for an unknown operation or attribute, a missing attribute, or another number of operands;
    and what the operation itself raises.
    """
    entry = OPERATIONS.get(operation)
    if entry is None:
        raise InvalidArgument("evaluate", "operation", operation, "one of " + ", ".join(OPERATIONS))
    if not entry.operands <= len(operands) <= entry.operands + entry.optional_operand:
        allowed = f"{entry.operands} or {entry.operands + 1}" if entry.optional_operand else f"{entry.operands}"
        raise InvalidArgument(operation, "number of operands", len(operands), allowed)
    for name in attributes:
        if name not in entry.attributes:
            raise InvalidArgument(operation, "attribute", name, "one of " + ", ".join(entry.attributes or ("none",)))
    given = {name: _read(name, value) for name, value in attributes.items()}
    for name in _required(entry):
        if name not in given:
            raise InvalidArgument(operation, name, None, "a value, since it has no default")
    result = entry.function(*operands, **given)
    return result if isinstance(result, tuple) else (result,)


def _read(name: str, value: Any) -> Any:
    """Read an attribute from its JSON form: dtypes by name, trees by name or nesting."""
    if name in ("dtype", "out", "accum", "wire"):
        return dtype(value)
    return Tree.from_json(value) if name == "tree" else value


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
"""Every operation by its name in the canon."""
