"""Other choices of lowering, where the program leaves them open (language specification, 6 and 7; AMB-LANG-216)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.schedule import choices, fusion
from tessera_reference.tile.lowering import contractions, maps, rows

LOWERED = ("ir/levels/*", "ir/schedule/*", "ir/tile/*", "ir/target/*", "ir/directives/*", "ir/kernels/*", "ir/fuzz/*")

TILES = {"tile": [5, 3, 7], "depth": 3}


@varies("AMB-LANG-216", "takes odd tiles and three stages where the program leaves them open", *LOWERED)
class OddTiles(ReferenceAdapter):
    """Its choices divide nothing."""

    def language_lower(self, *, schedule: Any = None, **arguments: Any) -> dict[str, Any]:
        """The IR at a level."""
        return super().language_lower(schedule=TILES if schedule is None else schedule, **arguments)

    def language_execute(self, *, schedule: Any = None, **arguments: Any) -> dict[str, Any]:
        """The results at a level."""
        return super().language_execute(schedule=TILES if schedule is None else schedule, **arguments)


SMALL = altered(
    "AMB-LANG-216",
    "has tiles of a few elements and one buffer, and takes rows one by one",
    LOWERED,
    ReferenceAdapter,
    (choices, "CONTRACTION", 8),
    (choices, "DEPTH_BYTES", 32),
    (choices, "MAP", (3, 5)),
    (choices, "DEFAULT_ROWS", 1),
    (choices, "DEPTH", 1),
    name="small_tiles",
)

LARGE = altered(
    "AMB-LANG-216",
    "has the largest tiles that fit, three buffers, and many rows together",
    LOWERED,
    ReferenceAdapter,
    (choices, "CONTRACTION", 512),
    (choices, "DEPTH_BYTES", 512),
    (choices, "MAP", (64, 64)),
    (choices, "DEFAULT_ROWS", 32),
    (choices, "DEPTH", 3),
    name="large_tiles",
)

PAIRS = altered(
    "AMB-LANG-216",
    "fuses at most two operations where the program says nothing",
    LOWERED,
    ReferenceAdapter,
    (fusion, "LARGEST", 2),
    name="pairs",
)

NARROW = altered(
    "AMB-LANG-216",
    "has one warp in most blocks",
    LOWERED,
    ReferenceAdapter,
    (contractions, "MOST_WARPS", 1),
    (contractions, "MOST_LANES", 32),
    (maps, "MOST_LANES", 32),
    (rows, "MOST_LANES", 32),
    name="narrow_blocks",
)
