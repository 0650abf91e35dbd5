"""Wrong scatter sums, positions and constants; and rules of movement that are not enforced.

Language specification, 2, 3.1 to 3.3, 5.2 and 5.3.
"""

from functools import cache

import numpy as np

from tessera_conformance.strength import replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import constant, movement
from tessera_reference.ir.types import Layout
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import round_exact

from .changes import after, around, changed, instead, nothing, where_refused, wrapped
from .language_syntax import rewrites
from .movement import backwards, moves


def narrow_behind_the_first_axis(usual, x, indices, updates, axis):
    found, at = usual(x, indices, updates, axis), axis % x.rank
    if not at:
        return found
    flat = updates.values.reshape(*x.shape[:at], indices.values.size, *x.shape[at + 1 :])
    for place in range(indices.values.size):
        index = Array(indices.dtype, indices.values.reshape(-1)[place : place + 1])
        x = usual(x, index, Array(updates.dtype, flat.take([place], at)), axis)
    return x


def truncated(usual, shape, axis, kind):
    nearest, exact = usual(shape, axis, kind), usual(shape, axis, dtype("int64")).values
    if kind.kind != "float":
        return nearest
    last = cache(lambda number: max(below for below in range(number + 1) if round_exact(below, kind) == below))
    kept = np.frompyfunc(last, 1, 1)(exact).astype(kind.carrier)
    return Array(kind, np.where(nearest.values > exact, kept, nearest.values))


def lenient(name, description, *phrases, clause="LANG-03.2-01", module=movement):
    """Return a violation in which a module skips the refusals whose source has one of the phrases."""
    passed = without_refusals(module, lambda source: any(phrase in source for phrase in phrases))
    return replaced(clause, description, make, *passed, name=name)


ONE_DTYPE = "graph.movement.require_one_dtype"
VIOLATIONS = [
    instead("LANG-02.3-42", "whole_frames_by_fp64", "reads an integer beside an operand by way of fp64",
        "language.expressions.element_like", lambda operand, *_: operand if operand.kind == "float" else None),
    instead("LANG-02.3-72", "float_frames_by_fp64", "rounds a number beside an operand to fp64 first",
        "language.expressions.element_like", lambda operand, *_: operand if operand.kind == "int" else None),
    moves("narrow_behind_the_first_axis", "scatter_add", "scattered",
        "adds in the narrow dtype, but along the first axis", narrow_behind_the_first_axis, "LANG-10-01"),
    moves("updates_backwards", "scatter_add", "scattered", "adds updates from the last to the first", backwards,
        "LANG-10-01"),
    moves("iota_along_the_last", "iota", "positions", "counts along the last axis",
        lambda usual, shape, axis, kind: usual(shape, len(shape) - 1, kind), "LANG-05.3-01"),
    moves("iota_along_the_first", "iota", "positions", "counts along the first axis",
        lambda usual, shape, axis, kind: usual(shape, 0, kind), "LANG-05.3-01"),
    moves("iota_truncated", "iota", "positions", "rounds positions towards zero", truncated, "LANG-05.3-01"),
    changed("LANG-02.3-57", "whole_constants", "loses the fraction of a constant",
        ("graph.constant.ConstTensor.execute", after(lambda found:
            Array(found.dtype, np.asarray(np.trunc(found.values), found.values.dtype)))), only=["const_tensor"]),
    changed("LANG-03.3-01", "cast_moves_elements", "moves elements when a layout is cast",
        ("graph.constant.LayoutCast.execute",
        lambda self, x, env: Array(x.dtype, x.values.T.reshape(x.shape)) if self.to == "col_major" else x),
        only=["layout_cast"]),
    lenient("shapes_not_compared", "lets reshape and broadcast take any shape", "does not become",
        "does not broadcast"),
    lenient("joints_not_compared", "lets concat and pad take any shapes", "one rank", "equal extents",
        "for rank {x.rank}"),
    lenient("updates_not_compared", "lets scatter_add take any shapes", "the updates are"),
    lenient("any_permutation", "lets transpose take any list", "is no permutation"),
    lenient("slices_not_compared", "lets slices lie outside", "'shapes'", clause="LANG-14.2-07"),
    instead("LANG-03.1-05", "any_joint", "joins and frames whatever dtype", ONE_DTYPE,
        around(lambda usual, a, b, rule: usual(a, b, rule) if "updates" in rule else None),
        *without_refusals(movement, lambda source: "a value of" in source)),
    lenient("any_index", "gathers at indices of any dtype", "the indices are", clause="LANG-11-01"),
    wrapped("LANG-03.1-05", "any_update", "adds updates of any dtype", ONE_DTYPE, lambda usual, a, b, rule:
        None if "updates" in rule else usual(a, b, rule)),
    lenient("any_count", "takes constants of too many and too few numbers", "'shapes'", clause="LANG-05.2-01",
        module=constant),
    instead("LANG-02.3-39", "any_layout", "takes any word for a layout", "graph.constant.read_layout",
        where_refused(Layout)),
    instead("LANG-03.2-01", "any_axis", "takes axes out of range", "graph.movement.require_axis", nothing),
    instead("LANG-05.3-01", "negative_extents", "takes negative extents",
        ("graph.movement.require_extents", "graph.constant.require_extents"), nothing),
    rewrites("LANG-11-01", "surplus_operands", "takes no notice of an operand too many",
        r"op\.(transpose|abs)\((\w), \w\)", r"op.\1(\2)"),
    rewrites("LANG-11-01", "default_shape", "reshapes to a vector unless told otherwise", r"op\.reshape\(A\)",
        "op.reshape(A, shape=[-1])"),
    instead("LANG-03.1-03", "unknown_count_is_one", "reshapes to as many elements only as are known before the run",
        "graph.movement.Count.may_be", lambda self, number: self.number == number),
    instead("LANG-03.1-03", "open_count_is_one", "counts an unknown dimension as 1 where an extent is left open",
        "graph.movement.Count.without", lambda self, number: None if self.number % number else self.number // number),
]  # fmt: skip
