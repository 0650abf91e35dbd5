"""Implementations that read or assign other elements than those of an index or a slice (sections 2.3 and 14.2)."""

import numpy as np

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.movement import Stretch

from .changes import around, instead
from .language_syntax import refuses, rewrites


def selecting(name, clause, description, choose):
    """Return a violation that selects by other parts, to read and to assign; `choose` takes one and the extent."""

    def chosen(x, selection):
        return tuple(choose(part, extent) for part, extent in zip(selection, x.shape, strict=False))

    reads = around(lambda usual, x, selection: usual(x, chosen(x, selection)))
    assigns = around(lambda usual, x, value, selection: usual(x, value, chosen(x, selection)))
    updated = ("numerics.movement.updated", assigns)
    return instead(name, clause, description, "numerics.movement.sliced", reads, updated)


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
    selecting("from_the_end", "LANG-14.2-07", "counts a negative index from the end",
        lambda part, extent: part + extent if isinstance(part, int) and part < 0 else part),
    instead("with_the_end", "LANG-14.2-07", "counts the end of a slice in", "numerics.movement.Stretch.over",
        around(with_the_end)),
    rewrites("loose_index", "LANG-14.2-07", "binds an index looser than a binary operator",
        r"return (\w) ([-+*/@<>=!]+) (\w)\[", r"return (\1 \2 \3)["),
    refuses("indexed_names", "LANG-14.2-07", "indexes names only", r"[)\]]\["),
    selecting("clipped", "LANG-02.3-20", "ends a slice where the tensor ends", clipped),
    selecting("clamped_target", "LANG-02.3-20", "brings the index of an assignment into range",
        lambda part, extent: min(max(part, 0), extent - 1) if isinstance(part, int) else part),
    instead("flipped", "LANG-02.3-20", "assigns the elements last to first", "numerics.movement.updated",
        around(lambda usual, x, value, selection:
            usual(x, Array(value.dtype, np.flip(value.values).copy()), selection))),
    instead("as_a_whole", "LANG-02.3-20", "assigns all elements from an index on", "numerics.movement.updated",
        around(as_a_whole)),
]  # fmt: skip
