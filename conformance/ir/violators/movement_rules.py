"""Wrong scatter sums, positions and constants; and rules of movement that are not enforced.

Language specification, 2, 3.1 to 3.3, 5.2 and 5.3.
"""

import numpy as np

from tessera_conformance.strength import replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import constant, movement
from tessera_reference.graph.constant import ConstTensor
from tessera_reference.graph.term import require_one_dtype
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.text import read_layout
from tessera_reference.ir.types import Layout
from tessera_reference.numerics import movement as moving
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast, round_exact

from .changes import changed
from .language_syntax import rewrites

# Literals beside operands

FRAMES = [
    replaced(clause, description, make, ("language.expressions.element_like", like), name=name)
    for clause, name, description, like in (
        ("LANG-02.3-42", "whole_frames_by_fp64", "reads an integer beside an operand by way of fp64",
         lambda operand, value, kind: operand if operand.kind == "float" else None),
        ("LANG-02.3-72", "float_frames_by_fp64", "rounds a number beside an operand to fp64 first",
         lambda operand, value, kind: operand if operand.kind == "int" else None),
    )
]  # fmt: skip


# Adding


def scattering(name, description, add):
    """Return a violation that adds updates differently; `add` takes the rows, indices, updates and dtype."""

    def scattered(x, indices, updates, axis):
        SCATTERED(x, indices, updates, axis)
        at, wide = axis % x.rank, x.dtype.accumulator
        rows = np.moveaxis(cast(x, wide).values, at, 0).copy()
        flat = cast(updates, wide).values.reshape(*x.shape[:at], indices.values.size, *x.shape[at + 1 :])
        with np.errstate(all="ignore"):
            total = add(rows, indices.values.reshape(-1), np.moveaxis(flat, at, 0), x.dtype)
        return cast(Array(wide, np.moveaxis(total.astype(wide.carrier), 0, at).copy()), x.dtype)

    return changed("LANG-10-01", name, description, ("numerics.movement.scattered", scattered), only=["scatter_add"])


SCATTERED = moving.scattered


def narrow_behind_the_first_axis(x, indices, updates, axis):
    at, wide = axis % x.rank, x.dtype.accumulator
    if not at:
        return SCATTERED(x, indices, updates, axis)
    SCATTERED(x, indices, updates, axis)  # for its refusals
    rows = np.moveaxis(x.values, at, 0).copy()
    flat = updates.values.reshape(*x.shape[:at], indices.values.size, *x.shape[at + 1 :])
    for index, update in zip(indices.values.reshape(-1), np.moveaxis(flat, at, 0), strict=True):
        total = np.asarray(rows[index].astype(wide.carrier) + update.astype(wide.carrier))
        rows[index] = cast(Array(wide, total), x.dtype).values
    return Array(x.dtype, np.moveaxis(rows, 0, at).copy())


def one_by_one(rows, indices, updates, order, round_):
    """Add the updates in some order, each sum rounded in some way."""
    for place in order:
        rows[indices[place]] = round_(rows[indices[place]] + updates[place])
    return rows


def unrounded(values):
    """Return values of the accumulator type unrounded."""
    return values


def replacing(rows, indices, updates, kind):
    rows[indices] = updates
    return rows


ADDING = [
    changed("LANG-10-01", "narrow_behind_the_first_axis", "adds in the narrow dtype, but along the first axis",
            ("numerics.movement.scattered", narrow_behind_the_first_axis), only=["scatter_add"]),
    scattering("updates_backwards", "adds updates from the last to the first", lambda rows, indices, updates, kind:
               one_by_one(rows, indices, updates, range(len(indices))[::-1], unrounded)),
]  # fmt: skip


# Generated elements


def counting(name, description, count):
    """Return a violation with other positions; `count` takes the shape, the axis and the dtype."""

    def positions(shape, axis, kind):
        return Array(kind, np.ascontiguousarray(np.broadcast_to(count(shape, axis, kind), tuple(shape))))

    return changed("LANG-05.3-01", name, description, ("numerics.movement.positions", positions), only=["iota"])


def along(shape, axis, start=0):
    """Integers along an axis."""
    extents = [extent if dimension == axis else 1 for dimension, extent in enumerate(shape)]
    return np.arange(start, start + shape[axis], dtype=np.int64).reshape(extents)


def held(values, kind):
    """Return integers in a dtype."""
    return cast(Array(dtype("int64"), np.asarray(values, np.int64)), kind).values


def truncated_positions(shape, axis, kind):
    exact, nearest = along(shape, axis), held(along(shape, axis), kind)
    if kind.kind != "float":
        return nearest
    last = np.frompyfunc(lambda number: max(n for n in range(number + 1) if round_exact(n, kind) == n), 1, 1)
    return np.where(nearest > exact, last(exact).astype(kind.carrier), nearest)


def constants(name, description, change, clause="LANG-05.2-01"):
    """Return a violation that changes the numbers of constants; `change` takes and returns an array."""
    usual = ConstTensor.execute

    def execute(self, env):
        found = usual(self, env)
        return Array(found.dtype, np.asarray(change(found.values), found.values.dtype).reshape(found.shape))

    return changed(clause, name, description, ("graph.constant.ConstTensor.execute", execute), only=["const_tensor"])


OUT_OF_NOTHING = [
    counting("iota_along_the_last", "counts along the last axis", lambda shape, axis, kind:
             held(along(shape, len(shape) - 1), kind)),
    counting("iota_along_the_first", "counts along the first axis", lambda shape, axis, kind:
             held(along(shape, 0), kind)),
    counting("iota_truncated", "rounds positions towards zero", truncated_positions),
    constants("whole_constants", "loses the fraction of a constant", np.trunc, "LANG-02.3-57"),
    changed("LANG-03.3-01", "cast_moves_elements", "moves elements when a layout is cast",
        ("graph.constant.LayoutCast.execute",
        lambda self, x, env: Array(x.dtype, x.values.T.reshape(x.shape)) if self.to == "col_major" else x),
        only=["layout_cast"]),
]  # fmt: skip


# Refusals


def lenient(name, description, *phrases, clause="LANG-03.2-01", module=movement):
    """Return a violation in which a module skips the refusals whose source has one of the phrases."""
    passed = without_refusals(module, lambda source: any(phrase in source for phrase in phrases))
    return replaced(clause, description, make, *passed, name=name)


def comparing(chosen):
    """Return a comparison of two dtypes that checks the chosen requirements only."""

    def compare(a, b, requirement):
        if chosen(requirement):
            require_one_dtype(a, b, requirement)

    return compare


def any_axis(axis, rank, clause=""):
    """Accept every axis."""


def any_extents(name, extents, least=0, remedy=""):
    """Accept every extent."""


def any_layout(text):
    """Return the layout of a word, whether there is one or not."""
    try:
        return read_layout(text)
    except Refusal:
        return Layout(text)


LENIENT = [
    lenient("shapes_not_compared", "lets reshape and broadcast take any shape",
            "does not become", "does not broadcast"),
    lenient("joints_not_compared", "lets concat and pad take any shapes",
            "one rank", "equal extents", "for rank {x.rank}"),
    lenient("updates_not_compared", "lets scatter_add take any shapes", "the updates are"),
    lenient("any_permutation", "lets transpose take any list", "is no permutation"),
    lenient("slices_not_compared", "lets slices lie outside", "'shapes'", clause="LANG-14.2-07"),
    replaced("LANG-03.1-05", "joins and frames whatever dtype", make,
             ("graph.movement.require_one_dtype", comparing(lambda requirement: "updates" in requirement)),
             *without_refusals(movement, lambda source: "a value of" in source), name="any_joint"),
    lenient("any_index", "gathers at indices of any dtype", "the indices are", clause="LANG-11-01"),
    replaced("LANG-03.1-05", "adds updates of any dtype", make,
             ("graph.movement.require_one_dtype", comparing(lambda requirement: "updates" not in requirement)),
             name="any_update"),
    lenient("any_count", "takes constants of too many and too few numbers", "'shapes'",
            clause="LANG-05.2-01", module=constant),
    replaced("LANG-02.3-39", "takes any word for a layout", make,
             ("graph.constant.read_layout", any_layout), name="any_layout"),
    replaced("LANG-03.2-01", "takes axes out of range", make, ("graph.movement.require_axis", any_axis),
        name="any_axis"),
    replaced("LANG-05.3-01", "takes negative extents", make,
        *((module, "require_extents", any_extents) for module in (movement, constant)), name="negative_extents"),
    rewrites("surplus_operands", "LANG-11-01", "takes no notice of an operand too many",
             r"op\.(transpose|abs)\((\w), \w\)", r"op.\1(\2)"),
    rewrites("default_shape", "LANG-11-01", "reshapes to a vector unless told otherwise", r"op\.reshape\(A\)",
             "op.reshape(A, shape=[-1])"),
]  # fmt: skip


# Counts of elements

Counting = movement.Count
COUNTS = [
    replaced("LANG-03.1-03", "reshapes to as many elements only as are known before the run", make,
             (Counting, "may_be", lambda self, number: self.number == number), name="unknown_count_is_one"),
    replaced("LANG-03.1-03", "counts an unknown dimension as 1 where an extent is left open", make,
             (Counting, "without", lambda self, number: None if self.number % number else self.number // number),
             name="open_count_is_one"),
]  # fmt: skip
