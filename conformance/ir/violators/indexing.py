"""Implementations that read or assign other elements than those of an index or a slice (sections 2.3 and 14.2)."""

import numpy as np

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.numerics import movement
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.movement import Stretch

from .language_syntax import refuses, rewrites


def clamped(x, selection):
    """Return a selection whose indices are limited to the range."""
    return tuple(
        min(max(part, 0), extent - 1) if isinstance(part, int) else part
        for part, extent in zip(selection, x.shape, strict=False)
    )


def from_the_end(x, selection):
    return tuple(
        part + extent if isinstance(part, int) and part < 0 else part
        for part, extent in zip(selection, x.shape, strict=False)
    )


def clipped(x, selection):
    return tuple(
        _clipped(part, extent) if isinstance(part, Stretch) else part
        for part, extent in zip(selection, x.shape, strict=False)
    )


def _clipped(stretch, extent):
    start, stop = (None if end is None else min(max(end, 0), extent) for end in (stretch.start, stretch.stop))
    return Stretch(start, stop, stretch.step)


def _with_the_end(self, extent):
    taken = _over(self, extent)
    if taken is None or self.stop is None:
        return taken
    beyond = taken.stop + (1 if taken.step > 0 else -1)
    return range(taken.start, max(min(beyond, beyond if extent is None else extent), -1), taken.step)


def _as_a_whole(x, value, selection):
    last = selection[-1]
    return _updated(x, value, (*selection[:-1], Stretch(last)) if isinstance(last, int) else selection)


_over, _sliced, _updated = Stretch.over, movement.sliced, movement.updated


def selecting(name, clause, description, choose):
    """Return a violation that selects other elements, to read and to assign."""
    return replaced(
        clause,
        description,
        make,
        ("numerics.movement.sliced", lambda x, selection: _sliced(x, choose(x, selection))),
        ("numerics.movement.updated", lambda x, value, selection: _updated(x, value, choose(x, selection))),
        name=name,
    )


READING = [
    selecting("from_the_end", "LANG-14.2-07", "counts a negative index from the end", from_the_end),
    replaced("LANG-14.2-07", "counts the end of a slice in", make, ("numerics.movement.Stretch.over", _with_the_end),
        name="with_the_end"),
    rewrites("loose_index", "LANG-14.2-07", "binds an index looser than a binary operator",
        r"return (\w) ([-+*/@<>=!]+) (\w)\[", r"return (\1 \2 \3)["),
    refuses("indexed_names", "LANG-14.2-07", "indexes names only", r"[)\]]\["),
]  # fmt: skip

ASSIGNING = [
    selecting("clipped", "LANG-02.3-20", "ends a slice where the tensor ends", clipped),
    selecting("clamped_target", "LANG-02.3-20", "brings the index of an assignment into range", clamped),
    replaced("LANG-02.3-20", "assigns the elements last to first", make, ("numerics.movement.updated",
        lambda x, value, selection: _updated(x, Array(value.dtype, np.flip(value.values).copy()), selection)),
        name="flipped"),
    replaced("LANG-02.3-20", "assigns all elements from an index on", make, ("numerics.movement.updated", _as_a_whole),
        name="as_a_whole"),
]  # fmt: skip
