"""Operations that move elements to other positions, twice or not at all (language specification, 2 and 3.2)."""

from dataclasses import replace
from functools import partial

import numpy as np

from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.movement import Stretch

from .changes import around, changed

PLACES, BROADCASTING, CALLS = "LANG-03.2-01", "LANG-03.2-02", "LANG-02-04"


def moves(name, operation, function, description, wrong, clause=PLACES):
    """Return a violation with another function of `numerics.movement`; `wrong` takes the usual one, then arguments."""
    return changed(clause, name, description, (f"numerics.movement.{function}", around(wrong)), only=[operation])


def spread_behind(usual, x, shape):
    padded = x.shape + (1,) * (len(shape) - x.rank)
    fits = all(have in (1, want) for have, want in zip(padded, shape, strict=True))
    return usual(Array(x.dtype, x.values.reshape(padded)) if fits else x, shape)


def inversely(self, x, env):
    inverse = tuple(list(self.perm).index(axis) for axis in range(len(self.perm)))
    shape = [x.shape[axis] for axis in self.perm]
    return Array(x.dtype, arithmetic.transpose(x, inverse).values.reshape(shape))


def from_the_end(usual, x, indices, axis):
    values, extent = indices.values, x.shape[axis]
    counted = np.where((values < 0) & (values >= -extent), values + extent, values)
    return usual(x, Array(indices.dtype, np.asarray(counted, values.dtype)), axis)


def indices_in_front(usual, x, indices, axis):
    found = usual(x, indices, axis)
    front = np.moveaxis(np.take(x.values, indices.values, axis), axis % x.rank, 0)
    return Array(x.dtype, np.ascontiguousarray(front).reshape(found.shape))


def by_low_bits(usual, x, indices, axis):
    if indices.dtype.bits == 64:
        indices = Array(indices.dtype, (indices.values & 0xFFFFFFFF).astype(np.int64))
    return usual(x, indices, axis)


def shifted(part, extent):
    bounded = isinstance(part, Stretch) and part.step == 1 and part.start is not None and part.stop is not None
    return replace(part, start=part.start + 1, stop=part.stop + 1) if bounded and part.stop < extent else part


def including_the_stop(usual, x, selection):
    found = usual(x, selection)
    moved = usual(x, tuple(shifted(part, extent) for part, extent in zip(selection, x.shape, strict=False)))
    return moved if moved.shape == found.shape else found


def without_steps(usual, x, selection):
    found = usual(x, selection)
    starts = [part.start if isinstance(part, Stretch) else None for part in selection]
    if None in starts or any(part.step < 0 for part in selection):
        return found
    places = tuple(slice(start, start + extent) for start, extent in zip(starts, found.shape, strict=False))
    return Array(x.dtype, x.values[places].copy())


def never_down(usual, x, selection):
    found = usual(x, selection).values
    steps = [part.step if isinstance(part, Stretch) else 1 for part in selection][: found.ndim]
    return Array(x.dtype, found[tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)].copy())


def whole_third_axis(usual, x, value, selection):
    whole = len(selection) == 3 and not isinstance(selection[2], int) and not value.shape
    return usual(x, value, selection[:2] if whole else selection)


def joined_flat(usual, parts, axis):
    flat = np.concatenate([part.values.reshape(-1) for part in parts])
    return Array(parts[0].dtype, flat.reshape(usual(parts, axis).shape))


def fifth_before_fourth(usual, parts, axis):
    alike = len(parts) > 4 and parts[-1].shape == parts[-2].shape
    return usual([*parts[:-2], parts[-1], parts[-2]] if alike else parts, axis)


def third_padded_in_front(usual, x, low, high, value):
    both = [before + behind for before, behind in zip(low, high, strict=True)]
    return usual(x, (*low[:2], *both[2:]), (*high[:2], *[0] * len(both[2:])), value)


def backwards(usual, x, indices, updates, axis):
    usual(x, indices, updates, axis)  # for its refusals
    at = axis % x.rank
    flat = updates.values.reshape(*x.shape[:at], indices.values.size, *x.shape[at + 1 :])
    order = Array(indices.dtype, indices.values.reshape(-1)[::-1].copy())
    return usual(x, order, Array(updates.dtype, np.flip(flat, at).copy()), axis)


VIOLATIONS = [
    moves("column_major_reshape", "reshape", "reshaped", "reshapes in column-major order", lambda usual, x, shape:
        Array(x.dtype, np.ascontiguousarray(x.values.reshape(usual(x, shape).shape, order="F")))),
    moves("axes_behind", "broadcast", "broadcast", "broadcasts to axes behind", spread_behind, BROADCASTING),
    moves("tiled_broadcast", "broadcast", "broadcast", "broadcasts by tiling", lambda usual, x, shape:
        Array(x.dtype, np.resize(x.values, tuple(shape)) if x.values.size else usual(x, shape).values), BROADCASTING),
    moves("first_of_new_rows", "broadcast", "broadcast", "repeats one element of a row in four axes",
        lambda usual, x, shape:
            usual(Array(x.dtype, x.values[:, :1]) if x.rank == 2 and len(shape) == 4 and x.shape[0] == 1 else x, shape),
        BROADCASTING),
    changed(PLACES, "inverse_permutation", "permutes axes the other way round",
        ("graph.movement.Transpose.execute", inversely), only=["transpose"]),
    moves("by_low_bits", "gather", "gathered", "gathers by the low 32 bits of an index", by_low_bits, "LANG-12-01"),
    moves("gather_counts_from_the_end", "gather", "gathered", "counts indices from the end", from_the_end, CALLS),
    moves("gather_in_front", "gather", "gathered", "puts the dimensions of indices in front", indices_in_front),
    moves("slice_shifted", "slice", "sliced", "includes the stop of a slice", including_the_stop),
    moves("slice_without_steps", "slice", "sliced", "takes the elements of a step together", without_steps),
    moves("slice_never_down", "slice", "sliced", "takes elements upwards where a slice goes down", never_down),
    moves("whole_third_axis", "update", "updated", "assigns to all of a third axis", whole_third_axis, "LANG-02.3-20"),
    moves("concat_flat", "concat", "concatenated", "joins along the first axis always", joined_flat),
    moves("fifth_before_fourth", "concat", "concatenated", "exchanges the last two of five parts or more",
        fifth_before_fourth),
    moves("third_padded_in_front", "pad", "padded", "pads the third dimension in front alone", third_padded_in_front),
    moves("matrix_last_first", "scatter_add", "scattered", "adds by a matrix from its end",
        lambda usual, x, indices, updates, axis:
            (usual if indices.rank < 2 else partial(backwards, usual))(x, indices, updates, axis), CALLS),
]  # fmt: skip
