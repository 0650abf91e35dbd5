"""Implementations that claim the level deterministic and break it in one respect (language specification, section 10).

The reference conforms to every level, so each is the reference with a lower claim and one change.
"""

import sys
from functools import partial
from itertools import count

import numpy as np

from tessera_conformance.strength import Violation, violates
from tessera_conformance.strength.violation import substituted
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics import arithmetic, elementary, reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree

from ..variants.declared_arithmetic import DeclaredArithmetic

GRAPH_MATMUL = sys.modules["tessera_reference.graph.reductions"]
GRAPH_CAST = sys.modules["tessera_reference.graph.elementwise"]
MATMUL = GRAPH_MATMUL.matmul
MODEL, OVER_TREE = reductions._model, reductions._over_tree
FUNCTIONS = elementary.FUNCTIONS

LONG = 256
"""So many terms that the bound of any order no longer tells one rounding from another."""


class Claiming(ReferenceAdapter):
    """The reference with another claim."""

    def __init__(self, level, functions=None):
        super().__init__()
        self.claim = {"level": level} | ({} if functions is None else {"functions": dict(functions)})

    def hello(self):
        """Identity and claims."""
        message = super().hello()
        return message | {"arithmetic": message["arithmetic"] | self.claim}


class Deterministic(Claiming):
    """The reference at the level deterministic."""

    def __init__(self):
        super().__init__("deterministic")


def breaking(level, clause, name, description, substitutions, functions=None):
    """Return a violation at a level; substitutes are made anew each time, since some of them remember calls."""
    return Violation(
        name, clause, description, lambda: substituted(partial(Claiming, level, functions), substitutions())
    )


deterministic = partial(breaking, "deterministic")


# Orders and nodes


def products(change):
    """Return substitutions that compute products of floats differently."""

    def product(a, b, out=None, **arguments):
        usual = a.dtype.kind != "float" or a.shape[-1] == 0
        stated = arguments.get("accumulator") not in (None, a.dtype.accumulator)
        return MATMUL(a, b, out, **arguments) if usual or stated else change(a, b, out)

    return lambda: [(GRAPH_MATMUL, "matmul", product)]


def nodes(**changes):
    """Return substitutions whose nodes compute sums of floats differently."""

    def model(operation, x, given, *kinds):
        usual = MODEL(operation, x, given, *kinds)
        return usual if x.dtype.kind != "float" else DeclaredArithmetic(**{"accumulator": usual.accumulator} | changes)

    return lambda: [("numerics.reductions._model", model)]


def orders(choose):
    """Return substitutions with another order of sums, which may depend on the number of terms and on earlier calls."""

    def substitutions():
        calls = count()

        def over_tree(values, axis, tree, *rest):
            terms = values.shape[axis]
            return OVER_TREE(values, axis, tree or (choose(terms, next(calls)) if terms else None), *rest)

        return [("numerics.reductions._over_tree", over_tree)]

    return substitutions


def long_sums(rounding):
    """Return substitutions that add 256 terms or more from left to right, every addition rounded to one side."""

    def over_tree(values, axis, tree, model, node, neutral):
        if tree is None and node == model.add and values.shape[axis] >= LONG and model.accumulator.kind == "float":
            tree, model = FOLD, DeclaredArithmetic(model.accumulator, rounding=rounding)
            node = model.add
        return OVER_TREE(values, axis, tree, model, node, neutral)

    return lambda: [("numerics.reductions._over_tree", over_tree)]


def with_node(a, b, out, **changes):
    return MATMUL(a, b, out, arithmetic=DeclaredArithmetic(**{"accumulator": a.dtype.accumulator} | changes))


def narrow_in(accumulator, a, b, out):
    return MATMUL(a, b, out, accumulator=dtype(accumulator) if a.dtype.is_narrow else None)


def in_own_type(name, a, b, out):
    """Accumulate a product of one dtype in that dtype."""
    return MATMUL(a, b, out, accumulator=a.dtype if a.dtype.name == name else None)


ORDERS = [
    deterministic("LANG-10-05", "reordered_products", "adds products along another tree than declared",
        products(lambda a, b, out: MATMUL(a, b, out, tree=PAIRWISE))),
    deterministic("LANG-10-05", "fused_products", "does not round products, and says that it does",
        products(partial(with_node, product="fused"))),
    deterministic("LANG-10-02", "other_accumulator", "sums narrow products in fp64, and says fp32",
        products(partial(narrow_in, "fp64"))),
    deterministic("RT-06-04", "seventh_call", "takes another tree on every seventh call",
        orders(lambda terms, call: Tree.ring(1) if call % 7 == 6 else PAIRWISE)),
]  # fmt: skip


@violates("LANG-15-10", "gives the second rank the sum in another order")
class RanksDiffer(Deterministic):
    def collectives_all_reduce(self, *, inputs, op, **rest):
        outputs = super().collectives_all_reduce(inputs=inputs, op=op, **rest)["outputs"]
        outputs[1:2] = super().collectives_all_reduce(inputs=inputs[::-1], op=op, **rest)["outputs"][1:2]
        return {"outputs": outputs}


# Functions and operators


def function(change):
    """Return substitutions that change results of exp; `change` takes its operands and the right result."""

    def changed(values, kind, overflow="saturate"):
        found = FUNCTIONS["exp"](values, kind, overflow)
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(found), change(values, found, kind), found)

    return lambda: [("numerics.elementary.FUNCTIONS", {**FUNCTIONS, "exp": changed})]


def steps_off(number, found, kind):
    """Return values so many units in the last place too small, in the wide types."""
    if kind.is_narrow:
        return found
    whole = found.view(f"u{found.dtype.itemsize}")
    return np.where(whole > number, (whole - number).view(found.dtype), found)


def flushing_multiply():
    def multiply(a, b):
        found = arithmetic.multiply(a, b)
        if a.dtype.kind != "float":
            return found
        zeros = np.copysign(found.values.dtype.type(0), found.values)
        return Array(a.dtype, np.where(np.abs(found.values) < a.dtype.min_normal, zeros, found.values))

    return [("graph.elementwise.Multiply.compute", staticmethod(multiply))]


def cast_twice(x, kind, overflow="saturate"):
    if x.dtype.name == "fp64" and kind.is_narrow:
        x = cast(x, dtype("fp32"))
    return cast(x, kind, overflow)


ONE_UNIT = {**dict.fromkeys(FUNCTIONS, 0.5), "exp": 1.0}
TWO_UNITS = {**dict.fromkeys(FUNCTIONS, 0.5), "exp": 2.0}
THREE_UNITS = {**dict.fromkeys(FUNCTIONS, 0.5), "exp": 3.0}

APPROXIMATIONS = [
    deterministic("LANG-10-07", "less_accurate", "has an exponential two units off, and says one",
        function(lambda x, found, kind: steps_off(2, found, kind)), functions=ONE_UNIT),
    deterministic("LANG-10-07", "large_tensors", "takes another exponential for tensors of more than 2,048 elements",
        function(lambda values, found, kind: steps_off(int(found.size > 2048), found, kind)), functions=TWO_UNITS),
    deterministic("LANG-02-04", "special_values", "has an exponential of minus infinity that is not zero",
        function(lambda x, found, kind: np.where(np.isneginf(x), kind.min_normal, found)), functions=ONE_UNIT),
]  # fmt: skip
