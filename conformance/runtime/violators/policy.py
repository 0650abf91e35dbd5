"""Contexts that lose, share or ignore their numerics policy, and launches that ignore a flag (runtime spec 4.7, 6)."""

from dataclasses import replace

import numpy as np

from tessera_conformance.strength import Around, violates
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics import arithmetic, elementary
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import round_to

from ...ir.violators.changes import CompilesOnce, changed
from ...ir.violators.misrounding import without_subnormals
from .changes import accepting, afterwards, answering, each, executing

SET_POLICY = "tessSetNumericsPolicy"


def exchanged_fields(adapter, call, given):
    policy = call(**given)["policy"]
    others = {"deterministic": policy["rngStateless"], "rngStateless": policy["deterministic"]}
    return {"policy": policy | others}


class Loose(ReferenceAdapter):
    """An implementation that is not deterministic unless the policy or the launch demands it.

    Its fast sums and products begin at another element each time. It conforms; the classes below do not.
    """

    launches = 0

    def numerics_evaluate(self, *, operation, attributes, **launch):
        """Use an order of its own where that is allowed."""
        if operation in ("sum", "matmul") and not self.is_bound(launch.get("context"), launch.get("flags", 0)):
            self.launches += 1
            attributes = {"tree": {"ring": self.launches}} | dict(attributes)
        return super().numerics_evaluate(operation=operation, attributes=attributes, **launch)

    def is_bound(self, context, flags):
        """True if the launch must be deterministic."""
        return bool(flags & 1) or self.demands_determinism(context)

    def demands_determinism(self, context):
        """True if the policy of a context, or the default without one, demands it."""
        try:
            return context is None or bool(self.policy(context, "tessGetNumericsPolicy").deterministic)
        except Failure:
            return True


@violates("RT-06-09", "ignores the flag of a deterministic launch")
class FlagIgnored(Loose):
    def is_bound(self, context, flags):
        return self.demands_determinism(context)


@violates("RT-04.7-10", "lets no policy govern what is launched")
class NothingGoverned(Loose):
    def is_bound(self, context, flags):
        return context is None


def fast(name, description, function, compute):
    """Return a violation with a fast-math function, whatever the policy."""

    def answer(values, kind, overflow="saturate"):
        with np.errstate(all="ignore"):
            return round_to(np.asarray(compute(values, kind)), kind, overflow)

    functions = {**elementary.FUNCTIONS, function: answer}
    return changed("RT-04.7-05", name, description, ("numerics.elementary.FUNCTIONS", functions))


def inverse_root(values, kind):
    """Return the bit-trick estimate and two Newton steps: relative error about 5e-6."""
    start = (np.int32(0x5F3759DF) - (values.astype(np.float32).view(np.int32) >> 1)).view(np.float32)
    for _ in range(2):
        start = start * (np.float32(1.5) - np.float32(0.5) * values.astype(np.float32) * start * start)
    return start


def rough_inverse(values, kind):
    exact = elementary.reciprocal(values, kind)
    return (exact.view(np.uint32) & np.uint32(0xFFFFFF00)).view(np.float32) if exact.dtype == np.float32 else exact


def rough_tanh(values, kind):
    """Return tanh from the exponential, which cancels near zero."""
    twice = np.exp(np.asarray(values, np.float32) * np.float32(2))
    return np.where(np.isinf(twice), np.float32(1), (twice - np.float32(1)) / (twice + np.float32(1)))


@violates("RT-04.7-05", "flushes subnormal numbers to zero without fast math")
class Flushing(CompilesOnce):
    def numerics_evaluate(self, **launch):
        answer = super().numerics_evaluate(**launch)
        return answer | {"outputs": [flushed(x) if x.dtype == "fp32" else x for x in answer["outputs"]]}


def flushed(output):
    return replace(output, data=without_subnormals(np.frombuffer(output.data, np.float32), DTYPES["fp32"]).tobytes())


def in_tf32(values):
    """Numbers of fp32 cut to the ten fraction bits of tf32."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def large_in_tf32(x):
    large = x.dtype.name == "fp32" and min(x.shape, default=0) > 32
    return Array(x.dtype, in_tf32(x.values)) if large else x


@violates("RT-04.7-05", "evaluates large products of fp32 in tf32 without fast math")
class LargeInTf32(CompilesOnce):
    def numerics_evaluate(self, *, operation, inputs, **launch):
        if operation == "matmul" and inputs[0].dtype == "fp32" and min(*inputs[0].shape, inputs[1].shape[-1]) > 32:
            inputs = [replace(x, data=in_tf32(np.frombuffer(x.data, np.float32)).tobytes()) for x in inputs]
        return super().numerics_evaluate(operation=operation, inputs=inputs, **launch)


@violates("RT-04.7-05", "keeps the sums of large products of fp16 and bf16 in 16 bits without fast math")
class SumsIn16Bits(CompilesOnce):
    def numerics_evaluate(self, *, operation, inputs, **launch):
        answer = super().numerics_evaluate
        if operation != "matmul" or inputs[0].dtype not in ("fp16", "bf16") or min(inputs[0].shape) <= 32:
            return answer(operation=operation, inputs=inputs, **launch)
        a, b = inputs
        middle = a.shape[1] // 2
        left = (replace(a, shape=(a.shape[0], middle), data=columns(a, 0, middle)), rows(b, 0, middle))
        right = (replace(a, shape=(a.shape[0], a.shape[1] - middle), data=columns(a, middle)), rows(b, middle))
        parts = [answer(operation=operation, inputs=pair, **launch)["outputs"][0] for pair in (left, right)]
        return answer(operation="add", inputs=parts, **{**launch, "attributes": {}})


def columns(x, first, stop=None):
    return np.frombuffer(x.data, np.uint16).reshape(x.shape)[:, first:stop].tobytes()


def rows(x, first, stop=None):
    words = np.frombuffer(x.data, np.uint16).reshape(x.shape)[first:stop]
    return replace(x, shape=words.shape, data=words.tobytes())


def by_reciprocals(a, b):
    with np.errstate(all="ignore"):
        exact = arithmetic.divide(a, b)
        return Array(a.dtype, a.values * (np.float32(1) / b.values)) if a.dtype.name == "fp32" else exact


VIOLATORS = [
    answering("RT-04.7-08", "lost_at_init", "loses the policies of other contexts", "tessInit",
        afterwards(each("context", lambda call, handle, context: setattr(context, "policy", None)))),
    answering("RT-04.7-08", "FirstPolicyKept", "keeps the first policy", SET_POLICY,
        lambda adapter, call, given: call(**given) if adapter.runtime.context(given["context"]).policy is None else {}),
    answering("RT-04.7-08", "exchanged_fields", "exchanges two switches", "tessGetNumericsPolicy", exchanged_fields),
    accepting("RT-04.7-10", "TwoAccepted", "takes 2 as well", SET_POLICY, lambda given: True,
        lambda given: {"policy": {name: 1 if value == 2 else value for name, value in given["policy"].items()}}),
    changed("RT-04.7-05", "fast_divide", "divides by reciprocals",
        ("graph.elementwise.Divide.compute", staticmethod(by_reciprocals))),
    fast("fast_log", "takes log from a rounded log2", "log",
        lambda values, kind: np.log2(np.asarray(values, np.float32)) * np.float32(0.6931472)),
    fast("fast_tanh", "takes tanh from the exponential", "tanh", rough_tanh),
    executing("RT-04.7-05", "launched_in_tf32", "launches large products of fp32 in tf32 without fast math", Around(
        lambda usual: lambda self, executable, rank, arguments: usual(
            self, executable, rank, {name: large_in_tf32(x) for name, x in arguments.items()}))),
    fast("fast_rsqrt", "stops rsqrt after two steps", "rsqrt", inverse_root),
    fast("fast_sqrt", "takes sqrt from a fast inverse root", "sqrt",
        lambda values, kind: values * inverse_root(values, kind)),
    fast("fast_exp", "takes exp from a rounded power of two", "exp",
        lambda values, kind: elementary.exp2(np.asarray(values * values.dtype.type(1.4426950408889634)), kind)),
    fast("fast_reciprocal", "keeps sixteen bits of reciprocals", "reciprocal", rough_inverse),
]  # fmt: skip
