"""The questions of golden vectors that run a program, each with the oracle function that checks it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tessera_conformance import oracle
from tessera_conformance.dsl import program, returning, type_of, type_text
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.oracle.exact import complex_dtype
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.files import Call, Check

# The programs that vectors run, in the language of the specification, each with the oracle function that checks it.


ACCUMULATION = {"fp16": "LANG-15-04", "bf16": "LANG-15-05", "fp8_e4m3": "LANG-15-06", "fp8_e5m2": "LANG-15-14"}
"""The clause that fixes the accumulator of each narrow type."""

OPERATORS = {
    "add": ("+", "LANG-02.3-61"),
    "subtract": ("-", "LANG-02.3-62"),
    "multiply": ("*", "LANG-02.3-63"),
    "divide": ("/", "LANG-02.3-64"),
    "equal": ("==", "LANG-02.3-66"),
    "not_equal": ("!=", "LANG-02.3-67"),
    "less": ("<", "LANG-02.3-68"),
    "greater": (">", "LANG-02.3-69"),
    "less_or_equal": ("<=", "LANG-02.3-70"),
    "greater_or_equal": (">=", "LANG-02.3-71"),
}
"""The symbol and the clause of each binary operator, by the name of its oracle function."""

ELEMENTARY = list(UNARY)

ACCUMULATING = ("LANG-10-01", "LANG-02-04")
"""Clauses of an operator that accumulates: its stated precision, and its defined result."""

EXTREMES = ("max", "min", "argmax")
"""Reductions that round nothing."""

QUOTED = ("approximate", "norm", "overflow")
"""The attributes that are texts; others that look like one are names."""

ARITHMETIC = ["add", "subtract", "multiply", "divide"]
COMPARISONS = ["equal", "not_equal", "less", "greater", "less_or_equal", "greater_or_equal"]


def matmul(a: Tensor, b: Tensor, out: str | None = None) -> Question:
    """`op.matmul(A, B)`, with another result type on request."""
    result = type_text(out or a.dtype, (*a.shape[:-1], b.shape[-1]))
    return applied("matmul", {"A": a, "B": b}, result, (*_accumulation(a), "LANG-15-15", "LANG-05.2-02"), out=out)


def matmul_operator(a: Tensor, b: Tensor) -> Question:
    """`A @ B`."""
    result = type_text(a.dtype, (*a.shape[:-1], b.shape[-1]))
    return question({"A": a, "B": b}, "A @ B", result, "matmul", {}, (*_accumulation(a), "LANG-15-15", "LANG-02.3-65"))


def softmax(x: Tensor, axis: int | None = None) -> Question:
    """`op.softmax(X)`, along the last axis by default."""
    return applied("softmax", {"X": x}, type_of(x), ("LANG-15-07", "LANG-05.2-03"), axis=axis)


def binary(operator: str, a: Tensor, b: Tensor) -> Question:
    """Return a binary operator by its name in `OPERATORS`, on two tensors of one shape, or a tensor and a scalar."""
    symbol, clause = OPERATORS[operator]
    shape = a.shape or b.shape
    result = type_text("bool" if operator in COMPARISONS else a.dtype, shape)
    return question({"A": a, "B": b}, f"A {symbol} B", result, operator, {}, (clause,))


def negate(a: Tensor) -> Question:
    """`-A`."""
    return question({"A": a}, "-A", type_of(a), "negate", {}, ("LANG-14.2-02",))


def scale(a: Tensor, factor: str) -> Question:
    """`A * factor` with a literal."""
    return question({"A": a}, f"A * {factor}", type_of(a), "scale", {"factor": factor}, ("LANG-02.3-63",))


def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Question:
    """`A * B + C`."""
    clauses = ("LANG-02.3-61", "LANG-02.3-63")
    return question({"A": a, "B": b, "C": c}, "A * B + C", type_of(a), "multiply_add", {}, clauses)


def add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Question:
    """`C + (A @ B)`."""
    clauses = ("LANG-02.3-61", "LANG-02.3-65")
    return question({"A": a, "B": b, "C": c}, "C + (A @ B)", type_of(c), "add_to_product", {}, clauses)


def attention(q: Tensor, k: Tensor, v: Tensor, factor: str) -> Question:
    """softmax(Q K' * factor) V, a statement for each step."""
    scores, result = type_text(q.dtype, (q.shape[0], k.shape[0])), type_text(q.dtype, (q.shape[0], v.shape[1]))
    keys = type_text(k.dtype, k.shape[::-1])
    body = [
        f"let T: {keys} = op.transpose(K);",
        f"let S: {scores} = op.matmul(Q, T);",
        f"let P: {scores} = op.softmax(S * {factor}) @{{axis=1}};",
        f"let O: {result} = op.matmul(P, V);",
        "return O;",
    ]
    inputs = {"Q": q, "K": k, "V": v}
    check = Check("oracle.attention", tuple(inputs), {"factor": factor})
    clauses = (*_accumulation(q), "LANG-15-15", "LANG-15-07", "LANG-05.2-02", "LANG-05.2-03")
    return Question(_call(inputs, result, body), check, clauses, ("tensor-ops",))


def function(name: str, x: Tensor) -> Question:
    """`op.exp(X)` and the others, named as in `ELEMENTARY`."""
    return applied(name, {"X": x}, type_of(x), ("LANG-02-04",), ("elementary-functions",))


def power(a: Tensor, b: Tensor) -> Question:
    """`op.pow(A, B)`."""
    return applied("pow", {"A": a, "B": b}, type_of(a), ("LANG-02-04",), ("elementary-functions",))


def activation(name: str, x: Tensor, approximate: str | None = None) -> Question:
    """`op.sigmoid(X)`, `op.silu(X)` or `op.gelu(X)`, with `approximate` in its tanh form."""
    return applied(name, {"X": x}, type_of(x), ("LANG-02-04",), ("activations",), approximate=approximate)


def relu(x: Tensor) -> Question:
    """`op.relu(X)`."""
    return applied("relu", {"X": x}, type_of(x), ("LANG-02-04",), ("tensor-ops",))


def reduction(name: str, x: Tensor, axis: int, keepdims: bool = False) -> Question:
    """`op.sum(X) @{axis=1}` and the others."""
    shape = list(x.shape)
    shape[axis : axis + 1 or None] = [1] if keepdims else []
    result = type_text("int32" if name == "argmax" else x.dtype, tuple(shape))
    clauses = ("LANG-02-04",) if name in EXTREMES else ACCUMULATING
    return applied(name, {"X": x}, result, clauses, ("reductions",), axis=axis, keepdims=keepdims or None)


def cast(x: Tensor, dtype: str, overflow: str | None = None) -> Question:
    """`op.cast(X) @{dtype=bf16}`."""
    result = type_text(dtype, x.shape)
    return applied("cast", {"X": x}, result, ("LANG-02-04", "LANG-03.1-05"), ("casts",), dtype=dtype, overflow=overflow)


def fourier(name: str, x: Tensor, norm: str | None = None) -> Question:
    """`op.fft(X)` or `op.ifft(X)`, of a float or a complex tensor."""
    result = type_text(complex_dtype(x.dtype), x.shape)
    return applied(name, {"X": x}, result, ("LANG-05.2-04",), ("inverse-fft",) * (name == "ifft"), norm=norm)


def applied(
    name: str,
    inputs: Mapping[str, Tensor],
    result: str,
    clauses: tuple[str, ...],
    features: tuple[str, ...] = (),
    /,
    **attributes: Any,
) -> Question:
    """`op.NAME(A, B) @{axis=1}`, the oracle's function of that name; an attribute that is None is left out."""
    stated = {key: value for key, value in attributes.items() if value is not None}
    return question(inputs, call_text(name, inputs, stated), result, name, stated, clauses, features)


def call_text(name: str, inputs: Iterable[str], attributes: Mapping[str, Any]) -> str:
    """`op.pad(A) @{low=[1, 0], value=0.5}`: attributes are in a block, which the printed grammar has."""
    quoted = {key: f'"{value}"' if key in QUOTED else _written(value) for key, value in attributes.items()}
    block = f" @{{{', '.join(f'{key}={text}' for key, text in quoted.items())}}}" if quoted else ""
    return f"op.{name}({', '.join(inputs)}){block}"


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text) if isinstance(value, float) else text


def _accumulation(operand: Tensor) -> tuple[str, ...]:
    """Return the clauses of the accumulator, if it is wider than the operands."""
    return (ACCUMULATION[operand.dtype], "LANG-10-02") if operand.dtype in ACCUMULATION else ()


def question(
    inputs: Mapping[str, Tensor],
    expression: str,
    result: str,
    function: str,
    arguments: Mapping[str, Any],
    clauses: tuple[str, ...],
    features: tuple[str, ...] = (),
) -> Question:
    """Return the question of one expression, which the oracle's function of the inputs answers."""
    body = [f"let R: {result} = {expression};", "return R;"]
    check = Check(f"oracle.{function}", tuple(inputs), arguments)
    return Question(_call(inputs, result, body), check, clauses, (*features, *_features(inputs, arguments)))


def _features(inputs: Mapping[str, Tensor], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return features beyond the core: `out=` (AMB-LANG-102) and dimensions of zero (AMB-LANG-113)."""
    takes_nothing = any(0 in value.shape for value in inputs.values())
    return (*(["matmul-out"] if "out" in arguments else []), *(["zero-sizes"] if takes_nothing else []))


def _call(inputs: Mapping[str, Tensor], result: str, body: list[str]) -> Call:
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = program(*body, parameters=parameters, result=result)
    return Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})


# Programs of one compound operation: norms, attention, optimizer steps, draws; each with its oracle function.


Setting = int | float | bool
"""The value of an attribute in a question."""


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, **settings: Setting) -> Question:
    """`op.layer_norm(X, G, B)`."""
    inputs = {"X": x, "G": gamma, "B": beta}
    return applied("layer_norm", inputs, type_of(x), ACCUMULATING, ("normalization",), **settings)


def rms_norm(x: Tensor, gamma: Tensor, **settings: Setting) -> Question:
    """`op.rms_norm(X, G)`."""
    return applied("rms_norm", {"X": x, "G": gamma}, type_of(x), ACCUMULATING, ("normalization",), **settings)


def batch_norm(x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, **settings: Setting) -> Question:
    """`op.batch_norm(X, G, B, M, V)`, all its results."""
    inputs = {"X": x, "G": gamma, "B": beta, "M": mean, "V": variance}
    return several(inputs, "batch_norm", settings, ACCUMULATING)


def sgd(parameter: Tensor, gradient: Tensor, velocity: Tensor, **settings: Setting) -> Question:
    """`op.sgd(P, G, U) @{rate=...}`, both its results."""
    return several({"P": parameter, "G": gradient, "U": velocity}, "sgd", settings, ("LANG-02-04",))


def adamw(parameter: Tensor, gradient: Tensor, m: Tensor, v: Tensor, step: Tensor, **settings: Setting) -> Question:
    """`op.adamw(P, G, M, V, t) @{rate=...}`, all its results."""
    inputs = {"P": parameter, "G": gradient, "M": m, "V": v, "t": step}
    return several(inputs, "adamw", settings, ("LANG-02-04",))


def drawn(distribution: str, shape: tuple[int, ...], dtype: str, **settings: Setting) -> Question:
    """`op.uniform() @{shape=[...], dtype=...}` or `op.normal() @{...}`."""
    attributes = {"shape": list(shape), "dtype": dtype, **settings}
    call = call_text(distribution, (), attributes)
    return question({}, call, type_text(dtype, shape), distribution, {"seed": 0} | attributes, ("LANG-02-04",), RANDOM)


def dropout(x: Tensor, **settings: Setting) -> Question:
    """`op.dropout(X) @{rate=...}`."""
    return applied("dropout", {"X": x}, type_of(x), ("LANG-02-04",), RANDOM, **settings)


def flash_attention(q: Tensor, k: Tensor, v: Tensor, **settings: Setting) -> Question:
    """`op.flash_attention(Q, K, V)`."""
    inputs, result = {"Q": q, "K": k, "V": v}, type_text(q.dtype, (*q.shape[:-1], v.shape[-1]))
    clauses = (*ACCUMULATING, "LANG-10-03")
    return applied("flash_attention", inputs, result, clauses, ("fused-attention",), **settings)


RANDOM = ("random-ops", "philox")


def several(
    inputs: Mapping[str, Tensor], name: str, settings: Mapping[str, Setting], clauses: tuple[str, ...]
) -> Question:
    """Return a call with several results, returned by a func without annotation."""
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = returning(call_text(name, inputs, settings), parameters)
    call = Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})
    return Question(call, Check(f"oracle.{name}", tuple(inputs), dict(settings)), clauses, ("stateful-ops",))


# The programs of operations that move, select or join elements (AMB-LANG-106, AMB-LANG-165), each one call.
#
# The type of the result is that of the oracle's answer: the oracle alone defines an operation's result.


_ANY = ("LANG-02-04",)
_PLACES = ("LANG-02-04", "LANG-03.2-01")
_BROADCASTING = ("LANG-02-04", "LANG-03.2-02")

CLAUSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("select", "maximum", "minimum", "clamp", "broadcast"), _BROADCASTING),
    **dict.fromkeys(("transpose", "reshape", "slice", "gather", "concat", "pad"), _PLACES),
    "scatter_add": ACCUMULATING,
    "layout_cast": ("LANG-02-04", "LANG-03.3-01"),
    "iota": ("LANG-02-04", "LANG-05.3-01", "LANG-05.3-02"),
    "const_tensor": ("LANG-05.2-01", "LANG-05.3-01", "LANG-05.3-02"),
}
"""Clauses of an operation's vectors, if they are more than `_ANY`."""

FEATURES = {"const_tensor": (), "layout_cast": ("layout-casts",)}
"""Features: the documents name const_tensor (AMB-LANG-101), AMB-LANG-157 the cast; others are tensor-ops."""

STRETCHING = ("select", "maximum", "minimum", "clamp")
"""Operations whose operands broadcast as those of operators do: other than scalars by feature broadcasting-ops."""


def moved(name: str, *operands: Tensor, **attributes: Any) -> Question:
    """`op.pad(A) @{low=[1, 0], high=[0, 2], value=0.5}`; a text among the attributes is written unchanged."""
    function = oracle.FUNCTIONS[f"oracle.{name}"]
    answer = function(*operands, **attributes)
    inputs = dict(zip("ABCDEFGH", operands, strict=False))
    result = type_text(answer.dtype, answer.shape)
    if name == "layout_cast":
        result = f"{result.removesuffix('>')}; layout={attributes['to']}>"
    clauses = CLAUSES.get(name, _ANY)
    return applied(name, inputs, result, clauses, _movement_features(name, operands), **attributes)


def _movement_features(name: str, operands: tuple[Tensor, ...]) -> tuple[str, ...]:
    shapes = {operand.shape for operand in operands} - {()}
    stretches = name in STRETCHING and len(shapes) > 1
    return (*FEATURES.get(name, ("tensor-ops",)), *(["broadcasting-ops"] * stretches))
