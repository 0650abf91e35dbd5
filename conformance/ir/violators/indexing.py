"""Implementations that read or assign other elements than those of an index or a slice (sections 2.3 and 14.2)."""

import numpy as np

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.movement import Stretch

from .changes import around, instead, wrapped
from .language_syntax import refuses, rewrites


def selecting(clause, name, description, choose):
    """Return a violation that selects by other parts, to read and to assign; `choose` takes one and the extent."""

    def chosen(x, selection):
        return tuple(choose(part, extent) for part, extent in zip(selection, x.shape, strict=False))

    reads = around(lambda usual, x, selection: usual(x, chosen(x, selection)))
    assigns = around(lambda usual, x, value, selection: usual(x, value, chosen(x, selection)))
    updated = ("numerics.movement.updated", assigns)
    return instead(clause, name, description, "numerics.movement.sliced", reads, updated)


def clipped(part, extent):
    if not isinstance(part, Stretch):
        return part
    start, stop = (None if end is None else min(max(end, 0), extent) for end in (part.start, part.stop))
    return Stretch(start, stop, part.step)


def with_the_end(usual, self, extent):
    taken = usual(self, extent)
    if taken is None or self.stop is None:
        return taken
    beyond = taken.stop + (1 if taken.step > 0 else -1)
    return range(taken.start, max(min(beyond, beyond if extent is None else extent), -1), taken.step)


def as_a_whole(usual, x, value, selection):
    last = selection[-1]
    return usual(x, value, (*selection[:-1], Stretch(last)) if isinstance(last, int) else selection)


INDICES = [
    selecting("LANG-14.2-07", "from_the_end", "counts a negative index from the end",
        lambda part, extent: part + extent if isinstance(part, int) and part < 0 else part),
    wrapped("LANG-14.2-07", "with_the_end", "counts the end of a slice in", "numerics.movement.Stretch.over",
        with_the_end),
    rewrites("LANG-14.2-07", "loose_index", "binds an index looser than a binary operator",
        r"return (\w) ([-+*/@<>=!]+) (\w)\[", r"return (\1 \2 \3)["),
    refuses("LANG-14.2-07", "indexed_names", "indexes names only", r"[)\]]\["),
    selecting("LANG-02.3-20", "clipped", "ends a slice where the tensor ends", clipped),
    selecting("LANG-02.3-20", "clamped_target", "brings the index of an assignment into range",
        lambda part, extent: min(max(part, 0), extent - 1) if isinstance(part, int) else part),
    wrapped("LANG-02.3-20", "flipped", "assigns the elements last to first", "numerics.movement.updated",
        lambda usual, x, value, selection: usual(x, Array(value.dtype, np.flip(value.values).copy()), selection)),
    wrapped("LANG-02.3-20", "as_a_whole", "assigns all elements from an index on", "numerics.movement.updated",
        as_a_whole),
]  # fmt: skip
