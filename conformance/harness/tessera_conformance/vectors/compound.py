"""Programs of one compound operation: norms, attention, optimizer steps, draws; each with its oracle function."""

from __future__ import annotations

from collections.abc import Mapping

from tessera_conformance.dsl import returning, type_of, type_text
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.model import Call, Check
from tessera_conformance.vectors.programs import ACCUMULATING, applied, call_text, question

Setting = int | float | bool
"""What is asked for by an attribute."""


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
    """A call with several results, returned by a func without annotation."""
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = returning(call_text(name, inputs, settings), parameters)
    call = Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})
    return Question(call, Check(f"oracle.{name}", tuple(inputs), dict(settings)), clauses, ("stateful-ops",))
