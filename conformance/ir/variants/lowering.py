"""Other choices of lowering, where the program leaves them open (language specification, 6 and 7; AMB-LANG-216)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter

LOWERED = ("ir/levels/*", "ir/schedule/*", "ir/tile/*", "ir/target/*", "ir/directives/*", "ir/kernels/*", "ir/fuzz/*")

TILES = {"tile": [5, 3, 7], "depth": 3}


@varies("AMB-LANG-216", "takes odd tiles and three stages where the program leaves them open", *LOWERED)
class OddTiles(ReferenceAdapter):
    """Its choices divide nothing."""

    def language_lower(self, *, schedule: Any = None, **given: Any) -> dict[str, Any]:
        """The IR at a level."""
        return super().language_lower(schedule=TILES if schedule is None else schedule, **given)

    def language_execute(self, *, schedule: Any = None, **given: Any) -> dict[str, Any]:
        """The results at a level."""
        return super().language_execute(schedule=TILES if schedule is None else schedule, **given)
