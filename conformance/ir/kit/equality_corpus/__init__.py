"""The equality corpus: programs whose bits are the same at every level of IR (language spec, 8.2; AMB-LANG-78).

The frozen bits of a golden vector are right, and for compositions the result of Graph IR. Extents are small and no
multiples of tiles.
"""

from __future__ import annotations

from .control import CONTROL, DIRECTED
from .elements import ELEMENTWISE, MOVEMENT, ROWS
from .golden import VECTORS, of_vectors
from .model import SCHEDULES, Program
from .products import PRODUCTS

__all__ = ["PROGRAMS", "SCHEDULES", "Program"]

PROGRAMS: tuple[Program, ...] = (
    *PRODUCTS,
    *ELEMENTWISE,
    *ROWS,
    *MOVEMENT,
    *CONTROL,
    *DIRECTED,
    *(program for topic, names in VECTORS.items() for program in of_vectors(topic, names)),
)
"""All of the corpus."""
