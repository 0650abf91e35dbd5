"""Products and means over ranks in another order or arithmetic, or of dtypes that lack them (AMB-COLL-31)."""

import numpy as np

from tessera_reference.collectives import programs
from tessera_reference.graph.collectives import Reducing
from tessera_reference.numerics import collectives, reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import Reduction, reduced
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import FOLD

from ...ir.violators.changes import changed

USUAL = {
    "prod": lambda x, tree: reductions.prod(x, 0, tree=tree),
    "mean": lambda x, tree: reductions.mean(x, 0, tree=tree),
}
MEAN, PROD, COMBINED = USUAL["mean"], USUAL["prod"], programs.combined


def of_sum(x, tree):
    """The sum over ranks."""
    return reductions.sum(x, 0, tree=tree)


def divided(total, count):
    """A tensor divided by a number."""
    with np.errstate(all="ignore"):
        return Array(total.dtype, np.asarray(total.values / total.values.dtype.type(count)))


def rounds_the_sum(x, tree):
    """The sum is rounded to the data's dtype before it is divided."""
    if x.dtype.kind == "complex":
        return MEAN(x, tree)
    wide = divided(cast(of_sum(x, tree), x.dtype.accumulator), x.shape[0])
    return cast(wide, x.dtype)


def by_reciprocal(x, tree):
    """The sum times the rounded reciprocal of the number of ranks."""
    if x.dtype.kind == "complex":
        return MEAN(x, tree)
    total = of_sum(cast(x, x.dtype.accumulator), tree)
    share = total.values.dtype.type(1) / total.values.dtype.type(x.shape[0])
    with np.errstate(all="ignore"):
        return cast(Array(total.dtype, np.asarray(total.values * share)), x.dtype)


def divides_first(x, tree):
    """Contributions are divided before they are added."""
    if x.dtype.kind == "complex":
        return MEAN(x, tree)
    return cast(of_sum(divided(cast(x, x.dtype.accumulator), x.shape[0]), tree), x.dtype)


def truncates(x, tree):
    if x.dtype.kind in ("int", "bool"):
        return Array(x.dtype, (x.values.sum(axis=0) // x.shape[0]).astype(x.dtype.carrier))
    return MEAN(x, tree)


def in_a_fold(x, tree):
    """Whatever the tree is, a product goes from rank to rank."""
    return PROD(x, FOLD)


def backwards(x, tree):
    """A product begins with the last rank."""
    return PROD(Array(x.dtype, np.ascontiguousarray(x.values[::-1])), tree)


def narrow(x, tree):
    """Every factor is rounded to the data's dtype."""
    if x.dtype.kind != "float":
        return PROD(x, tree)
    found = Array(x.dtype, x.values[0])
    for values in x.values[1:]:
        found = PROD(Array(x.dtype, np.stack([found.values, values])), None)
    return found


def flushes(x, tree):
    """Subnormal products are zeros."""
    found = PROD(x, tree)
    if x.dtype.kind != "float":
        return found
    small = np.abs(found.values) < float(x.dtype.min_normal)
    return Array(found.dtype, np.where(small, np.copysign(np.zeros_like(found.values), found.values), found.values))


def without_signs_of_zeros(x, tree):
    """A product of -0 is +0."""
    found = PROD(x, tree)
    return (
        found if x.dtype.kind != "float" else Array(found.dtype, np.asarray(found.values + 0.0 * (found.values == 0)))
    )


def saturates(x, tree):
    """Products of integers stop at the ends of their range."""
    if x.dtype.kind != "int":
        return PROD(x, tree)
    high = (1 << (x.dtype.bits - 1)) - 1
    exact = np.prod(x.values.astype(object), axis=0)
    return Array(x.dtype, np.clip(exact, -high - 1, high).astype(x.dtype.carrier))


def by_component(x, tree):
    """Real parts are multiplied with real parts."""
    if x.dtype.kind != "complex":
        return PROD(x, tree)
    real, imaginary = (PROD(Array(x.dtype.component, part), tree) for part in (x.values.real, x.values.imag))
    return Array(x.dtype, (real.values + 1j * imaginary.values).astype(x.dtype.carrier))


def of_real_parts(x, tree):
    """The real part alone is divided by the number of ranks."""
    found = MEAN(x, tree)
    if x.dtype.kind != "complex":
        return found
    return Array(x.dtype, (found.values.real + 1j * of_sum(x, tree).values.imag).astype(x.dtype.carrier))


def combining(op, reduce, kinds=None):
    """Return the substitution of an operator."""
    usual = collectives.REDUCTIONS[op]
    other = Reduction(kinds or usual.kinds, reduce)
    return "numerics.collectives.REDUCTIONS", {**collectives.REDUCTIONS, op: other}


def folding_products(used, op, level, partials, inputs):
    return reduced(op, inputs, FOLD) if op == "prod" else COMBINED(used, op, level, partials, inputs)


WRONG = {
    "mean_rounds_sum": ("mean", rounds_the_sum),
    "mean_by_reciprocal": ("mean", by_reciprocal),
    "mean_divides_first": ("mean", divides_first),
    "mean_of_real_parts": ("mean", of_real_parts),
    "prod_folds": ("prod", in_a_fold),
    "prod_backwards": ("prod", backwards),
    "prod_narrow": ("prod", narrow),
    "prod_flushes": ("prod", flushes),
    "prod_loses_signs": ("prod", without_signs_of_zeros),
    "prod_saturates": ("prod", saturates),
    "prod_by_component": ("prod", by_component),
}

INFER = Reducing.infer
ANY = ("float", "complex", "int", "bool")


VIOLATIONS = [
    *(
        changed("RT-13-01", f"{name}_over_ranks", str(reduce.__doc__), combining(op, reduce))
        for name, (op, reduce) in WRONG.items()
    ),
    *(
        changed("COLL-02.1-05", f"{name}_in_programs", str(reduce.__doc__), combining(op, reduce))
        for name, (op, reduce) in WRONG.items()
    ),
    changed("LANG-09-05", "prod_folds_whatever", "multiplies in the order of ranks",
        ("collectives.programs.combined", folding_products)),
    changed("RT-13-01", "mean_of_integers", "rounds means of integers", combining("mean", truncates, ANY)),
    changed("COLL-02.1-04", "any_operator", "takes every operator for every dtype",
        ("graph.collectives.Reducing.infer",
        lambda self: self.result_type() if self.op in self.operators else INFER(self))),
]  # fmt: skip
