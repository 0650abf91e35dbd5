"""Selection among elements that is wrong at special values, or selects the other operand (language spec, 2 and 3.2)."""

import numpy as np

from tessera_conformance.strength import replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import elementwise
from tessera_reference.ir.operation import Refusal
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array

from .changes import around, breaks, changed, instead, nothing
from .numerics import flushed

CALLS, BROADCASTING = "LANG-02-04", "LANG-03.2-02"


def executes(clause, name, description, operation, execute):
    """Return a violation with another result of an operation."""
    place = f"graph.elementwise.{operation}.execute"
    return changed(clause, name, description, (place, execute), only=[operation.lower()])


def into_bounds(self, x, low, high, env):
    raised = np.where(x.values < low.values, low.values, x.values)
    return Array(x.dtype, np.where(raised > high.values, high.values, raised))


def by_product(usual, self, condition, a, b, env):
    if a.dtype.kind != "float":
        return usual(self, condition, a, b, env)
    chosen = condition.values.astype(a.values.dtype)
    return Array(a.dtype, chosen * a.values + (1 - chosen) * b.values)


@breaks("LANG-03.2-03", "chooses from shapes that do not fit", "graph.elementwise.elementwise")
def choice_of_shapes(usual, dtype, *operands):
    try:
        return usual(dtype, *operands)
    except Refusal:
        return max(operands, key=lambda operand: len(operand.shape)).with_dtype(dtype)


VIOLATIONS = [
    changed(BROADCASTING, "extremes_flush", "flushes subnormal extremes", ("graph.elementwise.Maximum.compute",
            staticmethod(lambda a, b: flushed(arithmetic.maximum(a, b)))), only=["maximum"]),
    executes(BROADCASTING, "clamp_upper_first", "lets the lower bound win", "Clamp",
        lambda self, x, low, high, env: arithmetic.maximum(arithmetic.minimum(x, high), low)),
    executes(BROADCASTING, "clamp_by_comparison", "takes a bound that is NaN for none", "Clamp", into_bounds),
    executes(BROADCASTING, "clamp_nan_to_bound", "clamps NaN to the lower bound", "Clamp",
        lambda self, x, low, high, env: Array(x.dtype,
            np.where(np.isnan(x.values), low.values, arithmetic.minimum(arithmetic.maximum(x, low), high).values))),
    executes(CALLS, "abs_of_negative_zero", "leaves -0 its sign", "Abs",
        lambda self, x, env: Array(x.dtype, np.where(x.values < 0, -x.values, x.values))),
    executes(CALLS, "abs_saturates", "saturates the magnitude of the least integer", "Abs",
        lambda self, x, env: arithmetic.absolute(x) if x.dtype.kind != "int" else Array(x.dtype,
            np.abs(np.maximum(x.values, -x.dtype.int_max)))),
    executes(BROADCASTING, "select_by_product", "chooses by products", "Select", around(by_product)),
    executes(BROADCASTING, "select_wholly", "chooses for all elements at once", "Select",
        around(lambda usual, self, condition, *others, **named: usual(self, Array(condition.dtype,
            np.full(condition.shape, condition.values.reshape(-1)[:1].any())), *others, **named))),
    instead("LANG-03.1-05", "choice_of_dtypes", "chooses from two dtypes", "graph.elementwise.require_one_dtype",
        nothing),
    replaced("LANG-11-01", "takes any number for a condition", make,
        *without_refusals(elementwise, lambda source: "the condition is" in source), name="any_condition"),
]  # fmt: skip
