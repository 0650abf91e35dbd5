"""Explanations of modules that are incomplete or wrong (runtime spec 17; AMB-RT-36)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make

Found = dict[str, Any]
EXPLAIN = ReferenceAdapter.runtime_tessxExplain


def explaining(clause: str, name: str, description: str, change: Callable[[Found], Found]) -> Violation:
    """Return a violation that changes the explanation."""

    def explain(self: ReferenceAdapter, *, module: Any) -> Found:
        found = EXPLAIN(self, module=module)
        return found | {"explanation": change(found["explanation"])}

    return replaced(clause, description, make, ("adapter.ReferenceAdapter.runtime_tessxExplain", explain), name=name)


def telling(clause: str, name: str, description: str, change: Callable[[str], str]) -> Violation:
    """Return a violation that changes the text."""

    def explain(self: ReferenceAdapter, *, module: Any) -> Found:
        found = EXPLAIN(self, module=module)
        return found | {"text": change(found["text"])}

    return replaced(clause, description, make, ("adapter.ReferenceAdapter.runtime_tessxExplain", explain), name=name)


def tiles(change: Callable[[Found], Found]) -> Callable[[Found], Found]:
    """Return a change of every tile shape."""
    return lambda found: found | {"tile_shapes": [change(tile_shape) for tile_shape in found["tile_shapes"]]}


PHANTOM = {"collective": "all_reduce", "axis": "dp", "algorithm": "ring"}


def one_group(found: Found) -> Found:
    kernels = " ".join(fusion_group["kernel"] for fusion_group in found["fusion_groups"])
    operations = [name for fusion_group in found["fusion_groups"] for name in fusion_group["operations"]]
    return found | {"fusion_groups": [{"kernel": kernels, "operations": operations}]}


EXPLAINED = [
    explaining("RT-17-03", "one_group", "tells all kernels as one group", one_group),
    explaining("RT-17-08", "first_tile", "tells the first tile shape alone",
        lambda found: found | {"tile_shapes": found["tile_shapes"][:1]}),
    explaining("RT-17-08", "extents_in_bytes", "tells extents in bits",
        tiles(lambda tile: tile | {"extents": {name: 32 * extent for name, extent in tile["extents"].items()}})),
    explaining("RT-17-09", "first_collective", "tells one plan of each collective", lambda found: found | {
        "collective_plans": list({plan["collective"]: plan for plan in found["collective_plans"]}.values())
    }),
    explaining("RT-17-09", "always_a_plan", "tells a plan of a program without collectives",
        lambda found: found | {"collective_plans": found["collective_plans"] or [PHANTOM]}),
]  # fmt: skip


@violates("RT-17-03", "explains the module that was loaded last")
class LastModule(ReferenceAdapter):
    def runtime_tessxExplain(self, *, module: Any) -> Found:  # noqa: N802
        return super().runtime_tessxExplain(module=max(handle for handle, _ in self.runtime.handles.live("module")))
