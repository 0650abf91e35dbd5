"""The oracle: what the canon of arithmetic demands, computed with exact rational numbers.

It shares nothing with the reference implementation and uses no floating-point arithmetic of the machine: an operand
is the Fraction it stands for, an operation is exact, and rounding is a division of integers. Functions that have no
rational value are enclosed by MPFR until the enclosure rounds one way. It is slow and meant to be read beside the
canon.

Every function named in `FUNCTIONS` takes `Tensor` objects, then keyword arguments, and returns a `Tensor`, or a tuple
of them where there are several results; golden vectors name the one that confirmed them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.oracle.activations import gelu, relu, sigmoid, silu
from tessera_conformance.oracle.attention import flash_attention
from tessera_conformance.oracle.casts import cast
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.oracle.compositions import add_to_product, attention, multiply_add, scale
from tessera_conformance.oracle.elementary import (
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    pow_,
    reciprocal,
    rsqrt,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from tessera_conformance.oracle.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_or_equal,
    less,
    less_or_equal,
    multiply,
    negate,
    not_equal,
    subtract,
)
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.fourier import fft, ifft
from tessera_conformance.oracle.movement import (
    abs_,
    broadcast,
    clamp,
    concat,
    const_tensor,
    gather,
    iota,
    layout_cast,
    maximum,
    minimum,
    pad,
    reshape,
    scatter_add,
    select,
    slice_,
    transpose,
)
from tessera_conformance.oracle.normalization import batch_norm, layer_norm, rms_norm
from tessera_conformance.oracle.optimizers import adamw, sgd
from tessera_conformance.oracle.parameter_buffers import parameter_buffer, parameter_layout
from tessera_conformance.oracle.products import matmul
from tessera_conformance.oracle.quantization import dequantize, error_feedback, quantize, top_k
from tessera_conformance.oracle.randomness import dropout, normal, philox, uniform
from tessera_conformance.oracle.reductions import argmax, max_, mean, min_, prod, sum_
from tessera_conformance.oracle.softmax import logsumexp, softmax

_ELEMENTARY = (
    exp,
    exp2,
    expm1,
    log,
    log2,
    log1p,
    sin,
    cos,
    tan,
    tanh,
    sinh,
    cosh,
    erf,
    sqrt,
    rsqrt,
    reciprocal,
    pow_,
)
_ELEMENTWISE = (
    add,
    cast,
    divide,
    equal,
    gelu,
    greater,
    greater_or_equal,
    less,
    less_or_equal,
    multiply,
    multiply_add,
    negate,
    not_equal,
    relu,
    scale,
    sigmoid,
    silu,
    subtract,
)
_MOVEMENT = (
    abs_,
    broadcast,
    clamp,
    concat,
    const_tensor,
    gather,
    iota,
    layout_cast,
    maximum,
    minimum,
    pad,
    reshape,
    scatter_add,
    select,
    slice_,
    transpose,
)
_REDUCTIONS = (
    add_to_product,
    all_reduce,
    argmax,
    attention,
    batch_norm,
    fft,
    flash_attention,
    ifft,
    layer_norm,
    logsumexp,
    matmul,
    max_,
    mean,
    min_,
    prod,
    rms_norm,
    softmax,
    sum_,
)
_OTHERS = (adamw, dequantize, dropout, error_feedback, normal, philox, quantize, sgd, top_k, uniform)
_BUFFERS = (parameter_buffer, parameter_layout)

_PUBLISHED: tuple[Callable[..., Any], ...] = (
    *_ELEMENTARY,
    *_ELEMENTWISE,
    *_MOVEMENT,
    *_REDUCTIONS,
    *_OTHERS,
    *_BUFFERS,
)

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    f"oracle.{function.__name__.rstrip('_')}": function for function in _PUBLISHED
}
"""The functions that a golden vector may name as its independent check; `sum_` and its kin without the underscore."""

__all__ = [
    "FUNCTIONS",
    "BadArgument",
    "abs_",
    "adamw",
    "add",
    "add_to_product",
    "all_reduce",
    "argmax",
    "attention",
    "batch_norm",
    "broadcast",
    "cast",
    "clamp",
    "concat",
    "const_tensor",
    "cos",
    "cosh",
    "dequantize",
    "divide",
    "dropout",
    "equal",
    "erf",
    "error_feedback",
    "exp",
    "exp2",
    "expm1",
    "fft",
    "flash_attention",
    "gather",
    "gelu",
    "greater",
    "greater_or_equal",
    "ifft",
    "iota",
    "layer_norm",
    "layout_cast",
    "less",
    "less_or_equal",
    "log",
    "log1p",
    "log2",
    "logsumexp",
    "matmul",
    "max_",
    "maximum",
    "mean",
    "min_",
    "minimum",
    "multiply",
    "multiply_add",
    "negate",
    "normal",
    "not_equal",
    "pad",
    "parameter_buffer",
    "parameter_layout",
    "philox",
    "pow_",
    "prod",
    "quantize",
    "reciprocal",
    "relu",
    "reshape",
    "rms_norm",
    "rsqrt",
    "scale",
    "scatter_add",
    "select",
    "sgd",
    "sigmoid",
    "silu",
    "sin",
    "sinh",
    "slice_",
    "softmax",
    "sqrt",
    "subtract",
    "sum_",
    "tan",
    "tanh",
    "top_k",
    "transpose",
    "uniform",
]
