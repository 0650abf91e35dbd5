"""Products and means over ranks in another order or arithmetic, or of dtypes that lack them (AMB-COLL-31)."""

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import REDUCTIONS, Reduction, reduced
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import FOLD

from ...ir.violators.changes import changed
from .changes import at

PROD = REDUCTIONS["prod"].reduce


def of_sum(x, tree):
    return reductions.sum(x, 0, tree=tree)


def divided(total, count):
    """A tensor divided by a number."""
    with np.errstate(all="ignore"):
        return Array(total.dtype, np.asarray(total.values / total.values.dtype.type(count)))


def by_reciprocal(x, tree):
    total = of_sum(cast(x, x.dtype.accumulator), tree)
    share = total.values.dtype.type(1) / total.values.dtype.type(x.shape[0])
    with np.errstate(all="ignore"):
        return cast(Array(total.dtype, np.asarray(total.values * share)), x.dtype)


def of_real_parts(x, tree):
    found = REDUCTIONS["mean"].reduce(x, tree)
    return Array(x.dtype, (found.values.real + 1j * of_sum(x, tree).values.imag).astype(x.dtype.carrier))


def narrow(x, tree):
    found = Array(x.dtype, x.values[0])
    for values in x.values[1:]:
        found = PROD(Array(x.dtype, np.stack([found.values, values])), None)
    return found


def flushes(x, tree):
    found = PROD(x, tree)
    small = np.abs(found.values) < float(x.dtype.min_normal)
    return Array(found.dtype, np.where(small, np.copysign(np.zeros_like(found.values), found.values), found.values))


def without_signs_of_zeros(x, tree):
    found = PROD(x, tree)
    return Array(found.dtype, np.asarray(found.values + 0.0 * (found.values == 0)))


def saturates(x, tree):
    high = (1 << (x.dtype.bits - 1)) - 1
    exact = np.prod(x.values.astype(object), axis=0)
    return Array(x.dtype, np.clip(exact, -high - 1, high).astype(x.dtype.carrier))


def by_component(x, tree):
    real, imaginary = (PROD(Array(x.dtype.component, part), tree) for part in (x.values.real, x.values.imag))
    return Array(x.dtype, (real.values + 1j * imaginary.values).astype(x.dtype.carrier))


def combining(op, kinds, reduce):
    """Return the substitution of an operator for some kinds of dtypes."""

    def change(usual):
        def chosen(x, tree):
            return reduce(x, tree) if x.dtype.kind in kinds else usual[op].reduce(x, tree)

        return {**usual, op: Reduction((*usual[op].kinds, *kinds), chosen)}

    return "numerics.collectives.REDUCTIONS", Around(change)


ANY = ("float", "int", "complex")
WRONG = [
    ("mean_rounds_sum", "The sum is rounded to the data's dtype before it is divided.", combining("mean", ["float"],
        lambda x, tree: cast(divided(cast(of_sum(x, tree), x.dtype.accumulator), x.shape[0]), x.dtype))),
    ("mean_by_reciprocal", "The sum times the rounded reciprocal of the number of ranks.",
        combining("mean", ["float"], by_reciprocal)),
    ("mean_divides_first", "Contributions are divided before they are added.", combining("mean", ["float"],
        lambda x, tree: cast(of_sum(divided(cast(x, x.dtype.accumulator), x.shape[0]), tree), x.dtype))),
    ("mean_of_real_parts", "The real part alone is divided by the number of ranks.",
        combining("mean", ["complex"], of_real_parts)),
    ("prod_folds", "Whatever the tree is, a product goes from rank to rank.",
        combining("prod", ANY, lambda x, tree: PROD(x, FOLD))),
    ("prod_backwards", "A product begins with the last rank.", combining("prod", ANY,
        lambda x, tree: PROD(Array(x.dtype, np.ascontiguousarray(x.values[::-1])), tree))),
    ("prod_narrow", "Every factor is rounded to the data's dtype.", combining("prod", ["float"], narrow)),
    ("prod_flushes", "Subnormal products are zeros.", combining("prod", ["float"], flushes)),
    ("prod_loses_signs", "A product of -0 is +0.", combining("prod", ["float"], without_signs_of_zeros)),
    ("prod_saturates", "Products of integers stop at the ends of their range.", combining("prod", ["int"], saturates)),
    ("prod_by_component", "Real parts are multiplied with real parts.", combining("prod", ["complex"], by_component)),
]  # fmt: skip


VIOLATIONS = [
    *(
        changed(clause, f"{name}_{where}", description, substitution)
        for clause, where in (("RT-13-01", "over_ranks"), ("COLL-02.1-05", "in_programs"))
        for name, description, substitution in WRONG
    ),
    at("collectives.programs.combined")("LANG-09-05", "prod_folds_whatever", "multiplies in the order of ranks",
        lambda usual, used, op, *given: reduced(op, given[-1], FOLD) if op == "prod" else usual(used, op, *given)),
    changed("RT-13-01", "mean_of_integers", "rounds means of integers", combining("mean", ["int", "bool"],
        lambda x, tree: Array(x.dtype, (x.values.sum(axis=0) // x.shape[0]).astype(x.dtype.carrier)))),
    at("graph.collectives.Reducing.infer")("COLL-02.1-04", "any_operator", "takes every operator for every dtype",
        lambda usual, self: self.result_type() if self.op in self.operators else usual(self)),
]  # fmt: skip
