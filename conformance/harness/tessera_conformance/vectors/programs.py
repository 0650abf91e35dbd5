"""The programs that vectors run, in the language of the specification, each with the oracle function that checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.dsl import program
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.model import Call, Check

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

ELEMENTARY = ["exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf"]
ELEMENTARY += ["sqrt", "rsqrt", "reciprocal"]
REDUCTIONS = ["sum", "prod", "mean", "max", "min", "argmax", "logsumexp"]

FUNCTION_CLAUSES = ("LANG-02-04", "LANG-10-11")
REDUCTION_CLAUSES = ("LANG-02-04", "LANG-10-05", "LANG-10-06")

ARITHMETIC = ["add", "subtract", "multiply", "divide"]
COMPARISONS = ["equal", "not_equal", "less", "greater", "less_or_equal", "greater_or_equal"]


def matmul(a: Tensor, b: Tensor, out: str | None = None) -> Question:
    """`op.matmul(A, B)`, with another result type on request."""
    result = type_text(out or a.dtype, (*a.shape[:-1], b.shape[-1]))
    arguments = {} if out is None else {"out": out}
    call = "op.matmul(A, B)" if out is None else f"op.matmul(A, B, out={out})"
    accumulation = (ACCUMULATION[a.dtype], "LANG-10-02") if a.dtype in ACCUMULATION else ()
    return question({"A": a, "B": b}, call, result, "matmul", arguments, ("LANG-05.2-02", *accumulation))


def matmul_operator(a: Tensor, b: Tensor) -> Question:
    """`A @ B`."""
    result = type_text(a.dtype, (*a.shape[:-1], b.shape[-1]))
    return question({"A": a, "B": b}, "A @ B", result, "matmul", {}, ("LANG-02.3-65",))


def softmax(x: Tensor, axis: int | None = None) -> Question:
    """`op.softmax(X)`, along the last axis unless another is asked for."""
    arguments = {} if axis is None else {"axis": axis}
    call = "op.softmax(X)" if axis is None else f"op.softmax(X, axis={axis})"
    return question({"X": x}, call, type_of(x), "softmax", arguments, ("LANG-05.2-03", "LANG-15-07"))


def binary(operator: str, a: Tensor, b: Tensor) -> Question:
    """A binary operator by its name in `OPERATORS`, on two tensors of one shape, or a tensor and a scalar."""
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
        f"let P: {scores} = op.softmax(S * {factor}, axis=-1);",
        f"let O: {result} = op.matmul(P, V);",
        "return O;",
    ]
    inputs = {"Q": q, "K": k, "V": v}
    check = Check("oracle.attention", tuple(inputs), {"factor": factor})
    accumulation = (ACCUMULATION[q.dtype], "LANG-10-02") if q.dtype in ACCUMULATION else ()
    clauses = ("LANG-05.2-02", "LANG-05.2-03", *accumulation)
    return Question(_call(inputs, result, body), check, clauses, ("tensor-ops",))


def function(name: str, x: Tensor) -> Question:
    """`op.exp(X)` and its kin, named as in `ELEMENTARY`."""
    return question({"X": x}, f"op.{name}(X)", type_of(x), name, {}, FUNCTION_CLAUSES, ("elementary-functions",))


def power(a: Tensor, b: Tensor) -> Question:
    """`op.pow(A, B)`."""
    inputs = {"A": a, "B": b}
    return question(inputs, "op.pow(A, B)", type_of(a), "pow", {}, FUNCTION_CLAUSES, ("elementary-functions",))


def activation(name: str, x: Tensor, approximate: str | None = None) -> Question:
    """`op.sigmoid(X)`, `op.silu(X)` or `op.gelu(X)`, whose tanh form is asked for by `approximate`."""
    arguments = {} if approximate is None else {"approximate": approximate}
    call = f"op.{name}(X)" if approximate is None else f'op.{name}(X, approximate="{approximate}")'
    return question({"X": x}, call, type_of(x), name, arguments, FUNCTION_CLAUSES, ("activations",))


def relu(x: Tensor) -> Question:
    """`op.relu(X)`."""
    return question({"X": x}, "op.relu(X)", type_of(x), "relu", {}, ("LANG-02-04",), ("tensor-ops",))


def reduction(name: str, x: Tensor, axis: int, keepdims: bool = False) -> Question:
    """`op.sum(X, axis=1)` and its kin."""
    shape = list(x.shape)
    shape[axis : axis + 1 or None] = [1] if keepdims else []
    arguments = {"axis": axis} | ({"keepdims": True} if keepdims else {})
    call = f"op.{name}(X, axis={axis}{', keepdims=true' if keepdims else ''})"
    result = type_text("int32" if name == "argmax" else x.dtype, tuple(shape))
    return question({"X": x}, call, result, name, arguments, REDUCTION_CLAUSES, ("reductions",))


def cast(x: Tensor, dtype: str, overflow: str | None = None) -> Question:
    """`op.cast(X, dtype=bf16)`."""
    arguments = {"dtype": dtype} | ({} if overflow is None else {"overflow": overflow})
    mode = "" if overflow is None else f', overflow="{overflow}"'
    call = f"op.cast(X, dtype={dtype}{mode})"
    return question({"X": x}, call, type_text(dtype, x.shape), "cast", arguments, ("LANG-03.1-05",), ("casts",))


def fourier(name: str, x: Tensor, norm: str | None = None) -> Question:
    """`op.fft(X)` or `op.ifft(X)`."""
    arguments = {} if norm is None else {"norm": norm}
    call = f"op.{name}(X)" if norm is None else f'op.{name}(X, norm="{norm}")'
    features = ("inverse-fft",) if name == "ifft" else ()
    return question({"X": x}, call, type_of(x), name, arguments, ("LANG-05.2-04",), features)


def question(
    inputs: Mapping[str, Tensor],
    expression: str,
    result: str,
    function: str,
    arguments: Mapping[str, Any],
    clauses: tuple[str, ...],
    features: tuple[str, ...] = (),
) -> Question:
    """What one expression gives, as the oracle's function of the inputs has it."""
    body = [f"let R: {result} = {expression};", "return R;"]
    check = Check(f"oracle.{function}", tuple(inputs), arguments)
    return Question(_call(inputs, result, body), check, clauses, (*features, *_features(inputs, arguments)))


def _features(inputs: Mapping[str, Tensor], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What goes beyond the core: `out=` (AMB-LANG-102) and dimensions of zero (AMB-LANG-113)."""
    takes_nothing = any(0 in value.shape for value in inputs.values())
    return (*(["matmul-out"] if "out" in arguments else []), *(["zero-sizes"] if takes_nothing else []))


def _call(inputs: Mapping[str, Tensor], result: str, body: list[str]) -> Call:
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = program(*body, parameters=parameters, result=result)
    return Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})


def type_of(value: Tensor) -> str:
    """A tensor's type as it is written."""
    return type_text(value.dtype, value.shape)


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    """The type of a tensor, or of a scalar."""
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>" if shape else dtype
