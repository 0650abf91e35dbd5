"""Operations that move elements to other positions, twice or not at all (language specification, 2 and 3.2)."""

from dataclasses import replace

import numpy as np

from tessera_reference.numerics import arithmetic
from tessera_reference.numerics import movement as moving
from tessera_reference.numerics.array import Array

from .changes import changed

PLACES, BROADCASTING, CALLS = "LANG-03.2-01", "LANG-03.2-02", "LANG-02-04"


def moves(name, operation, function, description, wrong, clause=PLACES):
    """Return a violation that replaces one function of `numerics.movement`."""
    return changed(clause, name, description, (moving, function, wrong), only=[operation])


def of_values(function):
    """Return a function of the values of its first operand and of its other arguments."""

    def compute(x, *others):
        return Array(x.dtype, np.ascontiguousarray(function(x.values, *others)))

    return compute


# Shapes


def known(shape, count):
    """Return a shape with its open extent filled in."""
    rest = int(np.prod([extent for extent in shape if extent != -1], dtype=int))
    return [count // rest if extent == -1 else extent for extent in shape]


def spread_behind(x, shape):
    padded = x.shape + (1,) * (len(shape) - x.ndim)
    fits = all(have in (1, want) for have, want in zip(padded, shape, strict=True))
    return np.broadcast_to(x.reshape(padded) if fits else x, tuple(shape))


def transposing(name, description, order):
    """Return a violation that permutes elements differently, with the right shape."""
    usual = arithmetic.transpose

    def execute(self, x, env):
        shape = [x.shape[axis] for axis in self.perm]
        return Array(x.dtype, usual(x, order(self.perm)).values.reshape(shape))

    return changed(PLACES, name, description, ("graph.movement.Transpose.execute", execute), only=["transpose"])


SHAPES = [
    moves("column_major_reshape", "reshape", "reshaped", "reshapes in column-major order",
        of_values(lambda x, shape: x.reshape(known(shape, x.size), order="F"))),
    moves("axes_behind", "broadcast", "broadcast", "broadcasts to axes behind", of_values(spread_behind), BROADCASTING),
    moves("tiled_broadcast", "broadcast", "broadcast", "broadcasts by tiling",
        of_values(lambda x, shape: np.resize(x, tuple(shape)) if x.size else np.zeros(tuple(shape), x.dtype)),
        BROADCASTING),
    transposing("inverse_permutation", "permutes axes the other way round",
        lambda perm: tuple(list(perm).index(axis) for axis in range(len(perm)))),
]  # fmt: skip


# Parts


def clamped(x, indices, axis):
    """Read the nearest index inside in place of one outside."""
    inside = np.clip(indices.values, 0, max(x.shape[axis] - 1, 0))
    return GATHERED(x, Array(indices.dtype, np.asarray(inside, indices.values.dtype)), axis)


def from_the_end(x, indices, axis):
    extent = x.shape[axis]
    counted = np.where((indices.values < 0) & (indices.values >= -extent), indices.values + extent, indices.values)
    return GATHERED(x, Array(indices.dtype, np.asarray(counted, indices.values.dtype)), axis)


def filled(x, indices, axis):
    outside = (indices.values < 0) | (indices.values >= x.shape[axis])
    found = clamped(x, indices, axis).values
    at = axis % x.rank
    shape = (1,) * at + outside.shape + (1,) * (x.rank - at - 1)
    return Array(x.dtype, np.where(outside.reshape(shape), found.dtype.type(0), found))


def indices_in_front(x, indices, axis):
    found = GATHERED(x, indices, axis)
    front = np.moveaxis(np.take(x.values, indices.values, axis), axis % x.rank, 0)
    return Array(x.dtype, np.ascontiguousarray(front).reshape(found.shape))


GATHERED, SLICED = moving.gathered, moving.sliced


def including_the_stop(x, selection):
    found = SLICED(x, selection)
    shifted = tuple(
        replace(part, start=part.start + 1, stop=part.stop + 1)
        if isinstance(part, moving.Stretch) and part.step == 1 and part.start is not None and part.stop is not None
        and part.stop < extent
        else part
        for part, extent in zip(selection, x.shape, strict=False)
    )  # fmt: skip
    moved = SLICED(x, shifted)
    return moved if moved.shape == found.shape else found


def without_steps(x, selection):
    found = SLICED(x, selection)
    starts = [part.start if isinstance(part, moving.Stretch) else None for part in selection]
    if None in starts or any(part.step < 0 for part in selection):
        return found
    places = tuple(slice(start, start + extent) for start, extent in zip(starts, found.shape, strict=False))
    return Array(x.dtype, x.values[places].copy())


def never_down(x, selection):
    found = SLICED(x, selection).values
    steps = [part.step if isinstance(part, moving.Stretch) else 1 for part in selection][: found.ndim]
    return Array(x.dtype, found[tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)].copy())


def by_low_bits(x, indices, axis):
    if indices.dtype.bits == 64:
        indices = Array(indices.dtype, (indices.values & 0xFFFFFFFF).astype(np.int64))
    return GATHERED(x, indices, axis)


PARTS = [
    moves("by_low_bits", "gather", "gathered", "gathers by the low 32 bits of an index", by_low_bits, "LANG-12-01"),
    moves("gather_counts_from_the_end", "gather", "gathered", "counts indices from the end", from_the_end, CALLS),
    moves("gather_in_front", "gather", "gathered", "puts the dimensions of indices in front", indices_in_front),
    moves("slice_shifted", "slice", "sliced", "includes the stop of a slice", including_the_stop),
    moves("slice_without_steps", "slice", "sliced", "takes the elements of a step together", without_steps),
    moves("slice_never_down", "slice", "sliced", "takes elements upwards where a slice goes down", never_down),
]


# Joining


def joined_flat(parts, axis):
    shape = CONCATENATED(parts, axis).shape
    return Array(parts[0].dtype, np.concatenate([part.values.reshape(-1) for part in parts]).reshape(shape))


def fifth_before_fourth(parts, axis):
    alike = len(parts) > 4 and parts[-1].shape == parts[-2].shape
    return CONCATENATED([*parts[:-2], parts[-1], parts[-2]] if alike else parts, axis)


CONCATENATED, PADDED = moving.concatenated, moving.padded


def third_padded_in_front(x, low, high, value):
    both = [before + behind for before, behind in zip(low, high, strict=True)]
    return PADDED(x, (*low[:2], *both[2:]), (*high[:2], *[0] * len(both[2:])), value)


def matrix_last_first(x, indices, updates, axis):
    if indices.rank < 2:
        return SCATTERED(x, indices, updates, axis)
    at = axis % x.rank
    flat = updates.values.reshape(*x.shape[:at], -1, *x.shape[at + 1 :])
    order = Array(indices.dtype, indices.values.reshape(-1)[::-1].copy())
    return SCATTERED(x, order, Array(updates.dtype, np.flip(flat, at).copy()), axis)


def first_of_new_rows(x, shape):
    if x.rank == 2 and len(shape) == 4 and x.shape[0] == 1:
        return BROADCAST(Array(x.dtype, x.values[:, :1]), shape)
    return BROADCAST(x, shape)


def whole_third_axis(x, value, selection):
    if len(selection) == 3 and not isinstance(selection[2], int) and not value.shape:
        selection = selection[:2]
    return UPDATED(x, value, selection)


SCATTERED, BROADCAST, UPDATED = moving.scattered, moving.broadcast, moving.updated
FAMILIES = [
    moves("matrix_last_first", "scatter_add", "scattered", "adds by a matrix from its end", matrix_last_first, CALLS),
    moves("first_of_new_rows", "broadcast", "broadcast", "repeats one element of a row in four axes", first_of_new_rows,
          BROADCASTING),
    moves("whole_third_axis", "update", "updated", "assigns to all of a third axis", whole_third_axis, "LANG-02.3-20"),
]  # fmt: skip
JOINING = [
    moves("concat_flat", "concat", "concatenated", "joins along the first axis always", joined_flat),
    moves("fifth_before_fourth", "concat", "concatenated", "exchanges the last two of five parts or more",
          fifth_before_fourth),
    moves("third_padded_in_front", "pad", "padded", "pads the third dimension in front alone", third_padded_in_front),
]  # fmt: skip
