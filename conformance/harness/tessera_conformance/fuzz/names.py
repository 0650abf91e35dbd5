"""Names for what a program declares: plain ones first, then those that resemble keywords, dtypes and literals."""

from __future__ import annotations

from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.fuzz.choices import Chooser

VALUES = ("v", "a", "T", "x", "_", "e", "x2x", "E1", "letter", "in_", "If", "opx", "axes", "shape", "X_x", "_9", "fp")
FUNCTIONS = ("f", "g", "step", "_f", "modules", "func_", "x", "Tensor", "e5")
TYPES = ("Row", "T", "x_t", "typed", "Matrix", "fp_32")
MODULES = ("m", "demo", "_", "x", "module_")
MESHES = ("g", "grid", "mesh_", "x")
AXES = ("dp", "tp", "rows", "x", "axis")
DIMENSIONS = ("N", "M", "K", "n_1", "rows")
"""A dimension's name holds no lower-case x (AMB-LANG-121)."""

FORBIDDEN = frozenset(
    {*RESERVED, *DTYPES, "true", "false", "assert", "tensor", "memref", "fragment", "fn", "addrspace"}
)
"""Reserved words, and those whose reading as a name depends on what follows."""


class Names:
    """Names that have not been given yet; equal names never stand for two things, unless asked for."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._taken: set[str] = set(FORBIDDEN)

    def fresh(self, stems: tuple[str, ...]) -> str:
        """A new name: a stem, and a number where the stem is taken."""
        stem = self._chooser.pick(stems)
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._taken.add(name)
        return name


def renaming(names: list[str], chooser: Chooser) -> dict[str, str]:
    """Another name for each of these, no two the same, none with an x, so that dimensions can take them too."""
    numbers = chooser.shuffled(range(len(names)))
    stem = chooser.pick(("r", "q_", "V", "e"))
    return {name: f"{stem}{number}" for name, number in zip(names, numbers, strict=True)}
