"""Implementations that claim the level deterministic and break it in one respect (language specification, section 10).

The reference conforms to every level, so each is the reference with a lower claim and one change.
"""

from functools import partial
from itertools import count

import numpy as np

from tessera_conformance.adapter import NotSupported
from tessera_conformance.strength import Around, replaced
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import FUNCTIONS
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.trees import PAIRWISE, Tree

from ..variants.declared_arithmetic import DeclaredArithmetic
from .changes import around


class Claiming(ReferenceAdapter):
    """The reference with another claim."""

    def __init__(self, level, functions):
        super().__init__()
        self.claim = {"level": level} | ({} if functions is None else {"functions": functions})

    def hello(self):
        """Identity and claims."""
        message = super().hello()
        return message | {"arithmetic": message["arithmetic"] | self.claim}


def breaking(level, clause, name, description, place, substitute, functions=None):
    """Return a violation at a level, which may claim errors of functions."""
    return replaced(clause, description, partial(Claiming, level, functions), (place, substitute), name=name)


deterministic = partial(breaking, "deterministic")
MATMUL, EXP, SUMS = "graph.reductions.matmul", "numerics.elementary.FUNCTIONS", "numerics.reductions._over_tree"


def products(change):
    """Return a product that differs for floats; `change` takes the usual one, the operands and the result's dtype."""

    def product(usual, a, b, out=None, **arguments):
        plain = a.dtype.kind == "float" and a.shape[-1] > 0
        stated = arguments.get("accumulator") not in (None, a.dtype.accumulator)
        return change(usual, a, b, out) if plain and not stated else usual(a, b, out, **arguments)

    return around(product)


def with_a_seventh_call(usual):
    calls = count()

    def over_tree(values, axis, tree, *rest):
        if tree is None and values.shape[axis]:
            tree = Tree.ring(1) if next(calls) % 7 == 6 else PAIRWISE
        return usual(values, axis, tree, *rest)

    return over_tree


def ranks_differ(usual, self, *, inputs, op, **rest):
    outputs = usual(self, inputs=inputs, op=op, **rest)["outputs"]
    outputs[1:2] = usual(self, inputs=inputs[::-1], op=op, **rest)["outputs"][1:2]
    return {"outputs": outputs}


class Undeclared(Claiming):
    def hello(self):
        message = super().hello()
        return message | {"arithmetic": message["arithmetic"] | {"trees": {}}}

    def numerics_declared(self, **question):
        raise NotSupported("numerics.declared")


def over_one_more(usual, self, *, operation, shapes, **question):
    answer = usual(self, operation=operation, shapes=shapes, **question)
    return answer | {"tree": list(range(shapes[0][-1] + 1))} if operation == "matmul" else answer


def exponential(change):
    """Return functions with other results of exp; `change` takes its operands, the right results and their dtype."""

    @np.errstate(all="ignore")
    def changed(exact, values, kind, overflow="saturate"):
        found = exact(values, kind, overflow)
        return np.where(np.isfinite(found), change(values, found, kind), found)

    return Around(lambda functions: {**functions, "exp": partial(changed, functions["exp"])})


def steps_off(number, found, kind):
    """Return values so many units in the last place too small, in the wide types."""
    if kind.is_narrow:
        return found
    whole = found.view(f"u{found.dtype.itemsize}")
    return np.where(whole > number, (whole - number).view(found.dtype), found)


def every_third(functions):
    calls = count()
    return exponential(lambda x, found, kind: steps_off(int(next(calls) % 3 == 2), found, kind)).change(functions)


def flushing_multiply(a, b):
    found = arithmetic.multiply(a, b)
    if a.dtype.kind != "float":
        return found
    zeros = np.copysign(found.values.dtype.type(0), found.values)
    return Array(a.dtype, np.where(np.abs(found.values) < a.dtype.min_normal, zeros, found.values))


ONE_UNIT, TWO_UNITS = ({**dict.fromkeys(FUNCTIONS, 0.5), "exp": units} for units in (1.0, 2.0))

VIOLATIONS = [
    replaced("LANG-10-05", "declares no order", partial(Undeclared, "deterministic", None), name="NothingDeclared"),
    deterministic("LANG-10-05", "TreeOfOtherSize", "declares trees over one term too many",
        "adapter.ReferenceAdapter.numerics_declared", around(over_one_more)),
    deterministic("LANG-10-05", "reordered_products", "adds products along another tree than declared", MATMUL,
        products(lambda usual, a, b, out: usual(a, b, out, tree=PAIRWISE))),
    deterministic("LANG-10-05", "fused_products", "does not round products, and says that it does", MATMUL,
        products(lambda usual, a, b, out: usual(a, b, out, arithmetic=
            DeclaredArithmetic(accumulator=a.dtype.accumulator, product="fused")))),
    deterministic("LANG-10-02", "other_accumulator", "sums narrow products in fp64, and says fp32", MATMUL,
        products(lambda usual, a, b, out: usual(a, b, out, accumulator=dtype("fp64") if a.dtype.is_narrow else None))),
    deterministic("RT-06-04", "seventh_call", "takes another tree on every seventh call", SUMS,
        Around(with_a_seventh_call)),
    deterministic("LANG-15-10", "RanksDiffer", "gives the second rank the sum in another order",
        "adapter.ReferenceAdapter.collectives_all_reduce", around(ranks_differ)),
    deterministic("LANG-10-07", "less_accurate", "has an exponential two units off, and says one", EXP,
        exponential(lambda x, found, kind: steps_off(2, found, kind)), ONE_UNIT),
    deterministic("LANG-10-07", "large_tensors", "takes another exponential for tensors of more than 2,048 elements",
        EXP, exponential(lambda values, found, kind: steps_off(int(found.size > 2048), found, kind)), TWO_UNITS),
    deterministic("LANG-10-07", "now_and_then", "has another exponential on every third call", EXP,
        Around(every_third), TWO_UNITS),
    deterministic("LANG-02.3-63", "undeclared_flush", "flushes products, and says that it does not",
        "graph.elementwise.Multiply.compute", staticmethod(flushing_multiply)),
    deterministic("LANG-02-04", "special_values", "has an exponential of minus infinity that is not zero", EXP,
        exponential(lambda x, found, kind: np.where(np.isneginf(x), kind.min_normal, found)), ONE_UNIT),
]  # fmt: skip
