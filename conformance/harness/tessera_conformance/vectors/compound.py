"""Programs of one compound operation: norms, attention, optimizer steps, draws; each with its oracle function."""

from __future__ import annotations

from collections.abc import Mapping

from tessera_conformance import dsl as text
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.model import Call, Check
from tessera_conformance.vectors.programs import question, type_of, type_text

ORDER_CLAUSES = ("LANG-02-04", "LANG-10-05", "LANG-10-06")

Setting = int | float | bool
"""What is asked for by an attribute."""


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, **settings: Setting) -> Question:
    """`op.layer_norm(X, G, B)`."""
    inputs = {"X": x, "G": gamma, "B": beta}
    call = f"op.layer_norm(X, G, B{written(settings)})"
    return question(inputs, call, type_of(x), "layer_norm", settings, ORDER_CLAUSES, ("normalization",))


def rms_norm(x: Tensor, gamma: Tensor, **settings: Setting) -> Question:
    """`op.rms_norm(X, G)`."""
    call = f"op.rms_norm(X, G{written(settings)})"
    return question({"X": x, "G": gamma}, call, type_of(x), "rms_norm", settings, ORDER_CLAUSES, ("normalization",))


def batch_norm(x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, **settings: Setting) -> Question:
    """`op.batch_norm(X, G, B, M, V)`, all its results."""
    inputs = {"X": x, "G": gamma, "B": beta, "M": mean, "V": variance}
    return several(inputs, "batch_norm", settings, ORDER_CLAUSES)


def sgd(parameter: Tensor, gradient: Tensor, velocity: Tensor, **settings: Setting) -> Question:
    """`op.sgd(P, G, U, rate=...)`, both its results."""
    return several({"P": parameter, "G": gradient, "U": velocity}, "sgd", settings, ("LANG-02-04",))


def adamw(parameter: Tensor, gradient: Tensor, m: Tensor, v: Tensor, step: Tensor, **settings: Setting) -> Question:
    """`op.adamw(P, G, M, V, t, rate=...)`, all its results."""
    inputs = {"P": parameter, "G": gradient, "M": m, "V": v, "t": step}
    return several(inputs, "adamw", settings, ("LANG-02-04",))


def drawn(distribution: str, shape: tuple[int, ...], dtype: str, **settings: Setting) -> Question:
    """`op.uniform(shape=[...], dtype=...)` or `op.normal(...)`."""
    call = f"op.{distribution}(shape=[{', '.join(map(str, shape))}], dtype={dtype}{written(settings)})"
    arguments = {"seed": 0, "shape": list(shape), "dtype": dtype, **settings}
    return question({}, call, type_text(dtype, shape), distribution, arguments, ("LANG-02-04",), RANDOM)


def dropout(x: Tensor, **settings: Setting) -> Question:
    """`op.dropout(X, rate=...)`."""
    call = f"op.dropout(X{written(settings)})"
    return question({"X": x}, call, type_of(x), "dropout", settings, ("LANG-02-04",), RANDOM)


def flash_attention(q: Tensor, k: Tensor, v: Tensor, **settings: Setting) -> Question:
    """`op.flash_attention(Q, K, V)`."""
    call = f"op.flash_attention(Q, K, V{written(settings)})"
    result = type_text(q.dtype, (*q.shape[:-1], v.shape[-1]))
    clauses = (*ORDER_CLAUSES, "LANG-10-03")
    return question({"Q": q, "K": k, "V": v}, call, result, "flash_attention", settings, clauses, ("fused-attention",))


RANDOM = ("random-ops", "philox")


def several(
    inputs: Mapping[str, Tensor], name: str, settings: Mapping[str, Setting], clauses: tuple[str, ...]
) -> Question:
    """A call with several results, returned by a func without annotation."""
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = text.returning(f"op.{name}({', '.join(inputs)}{written(settings)})", parameters)
    call = Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})
    return Question(call, Check(f"oracle.{name}", tuple(inputs), dict(settings)), clauses, ("stateful-ops",))


def written(settings: Mapping[str, Setting]) -> str:
    """Attributes as keyword arguments behind others."""
    return "".join(f", {name}={str(value).lower()}" for name, value in settings.items())
