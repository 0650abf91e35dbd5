"""Contexts that lose, share or ignore their numerics policy, and launches that ignore a flag (runtime spec 4.7, 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.compilation.executables import Executable
from tessera_reference.numerics import arithmetic, elementary
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType
from tessera_reference.numerics.rounding import Overflow, round_to
from tessera_reference.runtime.launches import LaunchWork

from ...ir.violators.changes import CompilesOnce, changed
from ...ir.violators.misrounding import without_subnormals
from .changes import BuildsOnce, Call, Given, accepting, answering

Values = Any
SET_POLICY = "tessSetNumericsPolicy"


# The stored policy


def first_kept(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    return call(**given) if adapter.runtime.context(given["context"]).policy is None else {}


def lost(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    for _, context in adapter.runtime.handles.live("context"):
        context.policy = None
    return call(**given)


def exchanged_fields(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    policy = call(**given)["policy"]
    others = {"deterministic": policy["rngStateless"], "rngStateless": policy["deterministic"]}
    return {"policy": policy | others}


KEPT = [
    answering("RT-04.7-08", "lost_at_init", "loses the policies of other contexts", "tessInit", lost),
    answering("RT-04.7-08", "FirstPolicyKept", "keeps the first policy", SET_POLICY, first_kept),
    answering("RT-04.7-08", "exchanged_fields", "exchanges two switches", "tessGetNumericsPolicy", exchanged_fields),
]


# Setting the policy


def set_in_part(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**given)
    except Refusal:
        old = vars(adapter.runtime.context(given["context"]).governing())
        legal = {name: value for name, value in (given["policy"] or {}).items() if value in (0, 1)}
        call(**(given | {"policy": old | legal}))
        raise


SET = [
    accepting("RT-04.7-10", "TwoAccepted", "takes 2 as well", SET_POLICY, lambda given: True,
        lambda given: {"policy": {name: 1 if value == 2 else value for name, value in given["policy"].items()}}),
]  # fmt: skip


# The effect of the policy


class Loose(ReferenceAdapter):
    """An implementation that is not deterministic unless the policy or the launch demands it.

    Its fast sums and products begin at another element each time. It conforms; the classes below do not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches = 0

    def numerics_evaluate(self, *, operation: str, attributes: Mapping[str, Any], **launch: Any) -> dict[str, Any]:
        """Use an order of its own where that is allowed."""
        if operation in ("sum", "matmul") and not self.is_bound(launch.get("context"), launch.get("flags", 0)):
            self.launches += 1
            attributes = {"tree": {"ring": self.launches}} | dict(attributes)
        return super().numerics_evaluate(operation=operation, attributes=attributes, **launch)

    def is_bound(self, context: int | None, flags: int) -> bool:
        """True if the launch must be deterministic."""
        return bool(flags & 1) or self.demands_determinism(context)

    def demands_determinism(self, context: int | None) -> bool:
        """True if the policy of a context, or the default without one, demands it."""
        try:
            return context is None or bool(self.policy(context, "tessGetNumericsPolicy").deterministic)
        except Failure:
            return True


@violates("RT-06-09", "ignores the flag of a deterministic launch")
class FlagIgnored(Loose):
    def is_bound(self, context: int | None, flags: int) -> bool:
        return self.demands_determinism(context)


@violates("RT-04.7-10", "lets no policy govern what is launched")
class NothingGoverned(Loose):
    def is_bound(self, context: int | None, flags: int) -> bool:
        return context is None


# Arithmetic without fast math


def fast(name: str, description: str, function: str, compute: Callable[[Values, DType], Values]) -> Violation:
    """Return a violation with a fast-math function, whatever the policy."""

    def answer(values: Values, kind: DType, overflow: Overflow = "saturate") -> Values:
        with np.errstate(all="ignore"):
            return round_to(np.asarray(compute(values, kind)), kind, overflow)

    return changed(
        "RT-04.7-05", name, description, ("numerics.elementary.FUNCTIONS", {**elementary.FUNCTIONS, function: answer})
    )


def inverse_root(values: Values, kind: DType) -> Values:
    """Return the bit-trick estimate and two Newton steps: relative error about 5e-6."""
    start = (np.int32(0x5F3759DF) - (values.astype(np.float32).view(np.int32) >> 1)).view(np.float32)
    for _ in range(2):
        start = start * (np.float32(1.5) - np.float32(0.5) * values.astype(np.float32) * start * start)
    return start


def rough_exp(values: Values, kind: DType) -> Values:
    return elementary.exp2(np.asarray(values * values.dtype.type(1.4426950408889634)), kind)


def rough_inverse(values: Values, kind: DType) -> Values:
    exact = elementary.reciprocal(values, kind)
    return (exact.view(np.uint32) & np.uint32(0xFFFFFF00)).view(np.float32) if exact.dtype == np.float32 else exact


def rough_log(values: Values, kind: DType) -> Values:
    with np.errstate(all="ignore"):
        return np.log2(np.asarray(values, np.float32)) * np.float32(0.6931472)


def rough_tanh(values: Values, kind: DType) -> Values:
    """Return tanh from the exponential, which cancels near zero."""
    twice = np.exp(np.asarray(values, np.float32) * np.float32(2))
    return np.where(np.isinf(twice), np.float32(1), (twice - np.float32(1)) / (twice + np.float32(1)))


@violates("RT-04.7-05", "flushes subnormal numbers to zero without fast math")
class Flushing(CompilesOnce):
    def numerics_evaluate(self, *, operation: str, **launch: Any) -> dict[str, Any]:
        answer = super().numerics_evaluate(operation=operation, **launch)
        return answer | {"outputs": [_flushed(output) for output in answer["outputs"]]}


def _flushed(output: Any) -> Any:
    if output.dtype != "fp32":
        return output
    values = np.frombuffer(output.data, np.float32)
    return replace(output, data=without_subnormals(values, _FP32).tobytes())


_FP32 = DTYPES["fp32"]


def in_tf32(values: Values) -> Values:
    """Numbers of fp32 cut to the ten fraction bits of tf32."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def large_in_tf32(self: LaunchWork, executable: Executable, rank: int, arguments: Mapping[str, Array]) -> Any:
    cut = {
        name: Array(x.dtype, in_tf32(x.values)) if x.dtype.name == "fp32" and min(x.shape, default=0) > 32 else x
        for name, x in arguments.items()
    }
    return EXECUTED(self, executable, rank, cut)


EXECUTED = LaunchWork._executed


@violates("RT-04.7-05", "evaluates large products of fp32 in tf32 without fast math")
class LargeInTf32(CompilesOnce):
    def numerics_evaluate(self, *, operation: str, inputs: Sequence[Any], **launch: Any) -> dict[str, Any]:
        if operation == "matmul" and inputs[0].dtype == "fp32" and min(*inputs[0].shape, inputs[1].shape[-1]) > 32:
            inputs = [replace(x, data=in_tf32(np.frombuffer(x.data, np.float32)).tobytes()) for x in inputs]
        return super().numerics_evaluate(operation=operation, inputs=inputs, **launch)


@violates("RT-04.7-05", "keeps the sums of large products of fp16 and bf16 in 16 bits without fast math")
class SumsIn16Bits(CompilesOnce):
    def numerics_evaluate(self, *, operation: str, inputs: Sequence[Any], **launch: Any) -> dict[str, Any]:
        answer = super().numerics_evaluate
        if operation != "matmul" or inputs[0].dtype not in ("fp16", "bf16") or min(inputs[0].shape) <= 32:
            return answer(operation=operation, inputs=inputs, **launch)
        a, b = inputs
        middle = a.shape[1] // 2
        left = (replace(a, shape=(a.shape[0], middle), data=columns(a, 0, middle)), rows(b, 0, middle))
        right = (replace(a, shape=(a.shape[0], a.shape[1] - middle), data=columns(a, middle)), rows(b, middle))
        parts = [answer(operation=operation, inputs=pair, **launch)["outputs"][0] for pair in (left, right)]
        return answer(operation="add", inputs=parts, **{**launch, "attributes": {}})


def columns(x: Any, first: int, stop: int | None = None) -> bytes:
    return np.frombuffer(x.data, np.uint16).reshape(x.shape)[:, first:stop].tobytes()


def rows(x: Any, first: int, stop: int | None = None) -> Any:
    words = np.frombuffer(x.data, np.uint16).reshape(x.shape)[first:stop]
    return replace(x, shape=words.shape, data=words.tobytes())


def by_reciprocals(a: Array, b: Array) -> Array:
    if a.dtype.name != "fp32":
        return DIVIDE(a, b)
    with np.errstate(all="ignore"):
        return Array(a.dtype, a.values * (np.float32(1) / b.values))


DIVIDE = arithmetic.divide

FAST = [
    changed("RT-04.7-05", "fast_divide", "divides by reciprocals",
        ("graph.elementwise.Divide.compute", staticmethod(by_reciprocals))),
    fast("fast_log", "takes log from a rounded log2", "log", rough_log),
    fast("fast_tanh", "takes tanh from the exponential", "tanh", rough_tanh),
    replaced("RT-04.7-05", "launches large products of fp32 in tf32 without fast math", BuildsOnce,
        ("runtime.launches.LaunchWork._executed", large_in_tf32), name="launched_in_tf32"),
    fast("fast_rsqrt", "stops rsqrt after two steps", "rsqrt", inverse_root),
    fast("fast_sqrt", "takes sqrt from a fast inverse root", "sqrt",
        lambda values, kind: values * inverse_root(values, kind)),
    fast("fast_exp", "takes exp from a rounded power of two", "exp", rough_exp),
    fast("fast_reciprocal", "keeps sixteen bits of reciprocals", "reciprocal", rough_inverse),
]  # fmt: skip
