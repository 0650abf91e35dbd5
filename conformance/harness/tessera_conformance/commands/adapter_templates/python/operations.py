"""A kernel library behind the Tessera conformance suite: fill in the operations that yours has.

    tessera-conformance smoke --impl=ops:my_adapter:TABLE   asks for one addition
    tessera-conformance run --impl=ops:my_adapter:TABLE     asks every golden vector, operation by operation

A callable takes the operands as numpy arrays by position, of ml_dtypes for bf16 and fp8, and its attributes by name,
defaults filled in. It gives an array, or a tuple of them. Leave out an attribute that yours does not have: with
another value than its default the case is unsupported. So is an operation that is not in the table, and a call that
raises NotImplementedError. docs/names.md of the project says how operations are called in other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

NAME, VERSION = "my-library", "0.1"
PARALLEL = True  # several processes may answer at once; take it away where they share a device
# DTYPES = ["fp32", "fp64"]     the dtypes that it takes (default: all but tf32)
# LACKS = ["zero-sizes"]        features of its operations that it does not have
# DECLARED = "declared.toml"    its orders, written by `tessera-conformance probe --write`: level deterministic

TABLE: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    # "divide": lambda a, b: ...,
    # "equal": lambda a, b: ...,
    # "not_equal": lambda a, b: ...,
    "less": lambda a, b: a < b,
    # "greater": lambda a, b: ...,
    # "less_or_equal": lambda a, b: ...,
    # "greater_or_equal": lambda a, b: ...,
    "negate": lambda x: -x,
    # "exp": lambda x: ...,
    # "exp2": lambda x: ...,
    # "expm1": lambda x: ...,
    # "log": lambda x: ...,
    # "log2": lambda x: ...,
    # "log1p": lambda x: ...,
    # "sin": lambda x: ...,
    # "cos": lambda x: ...,
    # "tan": lambda x: ...,
    # "sinh": lambda x: ...,
    # "cosh": lambda x: ...,
    # "tanh": lambda x: ...,
    # "erf": lambda x: ...,
    # "sqrt": lambda x: ...,
    # "rsqrt": lambda x: ...,
    # "reciprocal": lambda x: ...,
    # "pow": lambda a, b: ...,
    # "sigmoid": lambda x: ...,
    # "silu": lambda x: ...,
    # "gelu": lambda x, *, approximate: ...,
    # "relu": lambda x: ...,
    "cast": lambda x, *, dtype: x.astype(dtype),
    "matmul": lambda a, b, *, out: (a @ b).astype(out),
    "sum": lambda x, *, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype),
    # "prod": lambda x, *, axis, keepdims: ...,
    # "mean": lambda x, *, axis, keepdims: ...,
    # "max": lambda x, *, axis, keepdims: ...,
    # "min": lambda x, *, axis, keepdims: ...,
    # "argmax": lambda x, *, axis, keepdims: ...,
    # "logsumexp": lambda x, *, axis, keepdims: ...,
    # "softmax": lambda x, *, axis: ...,
    # "layer_norm": lambda x, gamma, beta, *, axis, eps: ...,
    # "rms_norm": lambda x, gamma, *, axis, eps: ...,
    # "batch_norm": lambda x, gamma, beta, running_mean, running_variance, *, axis, momentum, eps, training: ...,
    "transpose": lambda x, *, perm: np.transpose(x, perm),
    # "reshape": lambda x, *, shape: ...,
    # "broadcast": lambda x, *, shape: ...,
    # "pad": lambda x, *, low, high, value: ...,
    # "slice": lambda x, *, starts, stops, steps: ...,
    # "gather": lambda x, indices, *, axis: ...,
    # "concat": lambda *parts, axis: ...,
    # "scatter_add": lambda x, indices, updates, *, axis: ...,
    # "layout_cast": lambda x, *, to: ...,
    # "iota": lambda *, shape, axis, dtype: ...,
    # "const_tensor": lambda *, shape, dtype, value: ...,
    # "maximum": lambda a, b: ...,
    # "minimum": lambda a, b: ...,
    # "clamp": lambda x, low, high: ...,
    # "select": lambda condition, a, b: ...,
    # "abs": lambda x: ...,
    # "fft": lambda x, *, norm: ...,
    # "ifft": lambda x, *, norm: ...,
    # "flash_attention": lambda q, k, v, *, scale, causal, block: ...,
    # "sgd": lambda parameter, gradient, velocity, *, rate, momentum: ...,
    # "adamw": lambda parameter, gradient, m, v, step, *, rate, beta1, beta2, eps, decay: ...,
    # "uniform": lambda *, shape, seed, stream, offset, dtype: ...,
    # "normal": lambda *, shape, seed, stream, offset, dtype: ...,
    # "dropout": lambda x, *, rate, seed, stream, offset: ...,
}
