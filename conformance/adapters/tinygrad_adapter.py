"""tinygrad, run by its interpreter in Python: `--impl=ops:conformance.adapters.tinygrad_adapter:OPERATIONS`.

The variable DEV chooses another of its devices.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("DEV", "PYTHON")

import ml_dtypes
import numpy as np
from conformance.adapters.expressions import codes
from tinygrad import Tensor, dtypes

from tessera_conformance.adapter import NotSupported

TYPES: Mapping[np.dtype[Any], Any] = {
    **{np.dtype(f"int{bits}"): getattr(dtypes, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{np.dtype(f"float{bits}"): getattr(dtypes, f"float{bits}") for bits in (16, 32, 64)},
    np.dtype(ml_dtypes.bfloat16): dtypes.bfloat16,
    np.dtype(bool): dtypes.bool,
    np.dtype(ml_dtypes.float8_e4m3fn): dtypes.fp8e4m3,
    np.dtype(ml_dtypes.float8_e5m2): dtypes.fp8e5m2,
}
NAMES = {kind: dtype for dtype, kind in TYPES.items()}

UNARY = "exp exp2 log log2 sin cos tan sinh cosh tanh erf sqrt rsqrt reciprocal sigmoid silu relu abs".split()


def _reduction(name: str) -> Callable[..., Any]:
    return lambda x, axis, keepdims: getattr(x, name)(axis=axis, keepdim=keepdims)


def _pad(x: Tensor, low: Any, high: Any, value: Any) -> Tensor:
    return x.pad(tuple(zip(low, high, strict=True)), value=value)


def _gather(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, axis: int, eps: float) -> Tensor:
    if axis % x.ndim != x.ndim - 1:
        raise NotSupported("layernorm of tinygrad over one axis that is not the last")
    return x.layernorm(axis=-1, eps=eps) * gamma + beta


def _attention(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, block: int) -> Tensor:
    if scale != float(q.shape[-1]) ** -0.5:
        raise NotSupported("scaled_dot_product_attention of tinygrad with another scale")
    return q.scaled_dot_product_attention(k, v, is_causal=causal)


CALLS: Mapping[str, Callable[..., Any]] = {
    **{name: (lambda x, name=name: getattr(x, name)()) for name in UNARY},
    **{name: _reduction(name) for name in ("sum", "prod", "mean", "max", "min", "argmax", "logsumexp")},
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a.div(b, rounding_mode=None if dtypes.is_float(a.dtype) else "trunc"),
    "negate": lambda x: -x,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "greater": lambda a, b: a > b,
    "less_or_equal": lambda a, b: a <= b,
    "greater_or_equal": lambda a, b: a >= b,
    "pow": lambda a, b: a.pow(b),
    "gelu": lambda x, approximate: x.gelu() if approximate == "tanh" else NotImplemented,
    "cast": lambda x, dtype, overflow: x.cast(TYPES[dtype]) if dtype in TYPES else NotImplemented,
    "matmul": lambda a, b, out: a.matmul(b, dtype=TYPES[out]),
    "softmax": lambda x, axis: x.softmax(axis=axis),
    "layer_norm": _layer_norm,
    "transpose": lambda x, perm: x.permute(tuple(perm)),
    "reshape": lambda x, shape: x.reshape(tuple(shape)),
    "broadcast": lambda x, shape: x.expand(tuple(shape)),
    "pad": _pad,
    "slice": lambda x, starts, stops, steps: x[tuple(map(slice, starts, stops, steps))],
    "gather": _gather,
    "concat": lambda *parts, axis: parts[0].cat(*parts[1:], dim=axis),
    "maximum": lambda a, b: a.maximum(b),
    "minimum": lambda a, b: a.minimum(b),
    "clamp": lambda x, low, high: x.clamp(low, high),
    "select": lambda condition, a, b: condition.where(a, b),
    "flash_attention": _attention,
}


def _handed(array: Any) -> Tensor:
    if array.dtype not in TYPES:
        raise NotSupported(f"{array.dtype} in tinygrad")
    tensor = Tensor(codes(array))
    return tensor if array.dtype.isbuiltin == 1 else tensor.bitcast(TYPES[array.dtype])


def _taken(tensor: Tensor) -> Any:
    dtype = NAMES[tensor.dtype]
    if dtype.isbuiltin == 1:
        return tensor.numpy()
    return tensor.bitcast(getattr(dtypes, f"uint{8 * dtype.itemsize}")).numpy().view(dtype)


def _operation(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arrays: Any, **attributes: Any) -> Any:
        result = call(*map(_handed, arrays), **attributes)
        if result is NotImplemented:
            raise NotSupported("this form of the operation in tinygrad")
        return _taken(result)

    return run


NAME, VERSION = "tinygrad", importlib.metadata.version("tinygrad")
OPERATIONS = {name: _operation(call) for name, call in CALLS.items()}
