"""Launches whose softmax, log-sum-exp or clamp is not the stable formulation, though the toggle is on (spec 11)."""

from dataclasses import replace

import numpy as np

from tessera_conformance.strength import replaced
from tessera_reference.abi.policy import Descriptor
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork

from .changes import BuildsOnce

EXECUTED, MADE = LaunchWork._executed, calls._executable

OVERFLOW = {"fp16": 11.0, "bf16": 88.0, "fp32": 88.0, "fp64": 709.0}
"""From where on an exponential is infinite, of fp16 in its own format."""


def with_text(*arguments):
    """Return the executable of a launch with the Graph IR of its module."""
    executable, section = MADE(*arguments), arguments[1].module.fatbin.section("graph-ir")
    object.__setattr__(executable, "graph_ir", section.data.decode() if section else "")
    return executable


def unstable(clause, name, description, operation, when):
    """Return a violation whose launches with an operation give NaN, or with clamp none, as unstable formulas do."""

    def executed(self, executable, rank, arguments):
        results = EXECUTED(self, executable, rank, arguments)
        if f"tessera.graph.{operation}" not in vars(executable)["graph_ir"] or not when(self):
            return results
        change = without_nan if operation == "clamp" else overflowing(arguments, operation)
        return {name: change(array) for name, array in results.items()}

    substitutes = {"runtime.launches.LaunchWork._executed": executed, "runtime.calls._executable": with_text}
    return replaced(clause, description, BuildsOnce, *substitutes.items(), name=name)


def without_nan(array):
    return Array(array.dtype, np.where(np.isnan(array.values), -1.0, array.values).astype(array.values.dtype))


def overflowing(arguments, operation):
    """Return a function that gives NaN everywhere if the exponential of an operand is infinite."""
    floats = [argument for argument in arguments.values() if argument.dtype.kind == "float" and argument.rank]
    scores = 32.0 if operation == "flash_attention" else 1.0
    large = any((float_.values * scores > OVERFLOW.get(float_.dtype.name, 88.0)).any() for float_ in floats)
    return lambda array: Array(array.dtype, np.full_like(array.values, np.nan)) if large else array


def allows_fast_math(work):
    return work.policy.allowFastMath


LAUNCHED = [
    unstable("RT-11-05", "fast_softmax", "does not subtract the maximum where fast math is allowed", "softmax",
             allows_fast_math),
    unstable("RT-11-05", "attention", "does not subtract the maximum in an attention", "flash_attention",
             allows_fast_math),
    unstable("RT-11-06", "loose_logsumexp", "is stable only under a stable policy or a descriptor", "logsumexp",
             lambda work: work.descriptor == Descriptor() and not work.policy.stableReductions),
    unstable("RT-11-07", "fast_clamp", "loses NaN where fast math is allowed", "clamp", allows_fast_math),
    unstable("RT-11-07", "clamp_under_a_seed", "loses NaN where a descriptor sets something else", "clamp",
             lambda work: work.descriptor != Descriptor() and replace(work.descriptor, seed=0) == Descriptor()),
]  # fmt: skip
