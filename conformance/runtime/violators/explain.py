"""Explanations of modules that leave out what they are for, or tell of something else (runtime spec 17; AMB-RT-36)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make

Told = dict[str, Any]
EXPLAIN = ReferenceAdapter.runtime_tessxExplain


def explaining(clause: str, name: str, description: str, change: Callable[[Told], Told]) -> Violation:
    """The explanation changed."""

    def explain(self: ReferenceAdapter, *, module: Any) -> Told:
        told = EXPLAIN(self, module=module)
        return told | {"explanation": change(told["explanation"])}

    return replaced(clause, description, make, (ReferenceAdapter, "runtime_tessxExplain", explain), name=name)


def telling(clause: str, name: str, description: str, change: Callable[[str], str]) -> Violation:
    """The text changed."""

    def explain(self: ReferenceAdapter, *, module: Any) -> Told:
        told = EXPLAIN(self, module=module)
        return told | {"text": change(told["text"])}

    return replaced(clause, description, make, (ReferenceAdapter, "runtime_tessxExplain", explain), name=name)


def tiles(change: Callable[[Told], Told]) -> Callable[[Told], Told]:
    """Every tile shape changed."""
    return lambda told: told | {"tile_shapes": [change(each) for each in told["tile_shapes"]]}


def one_group(told: Told) -> Told:
    """One group of everything."""
    kernels = " ".join(each["kernel"] for each in told["fusion_groups"])
    operations = [name for each in told["fusion_groups"] for name in each["operations"]]
    return told | {"fusion_groups": [{"kernel": kernels, "operations": operations}]}


EXPLAINED = [
    explaining("RT-17-03", "no_groups", "tells no fusion groups", lambda told: told | {"fusion_groups": []}),
    explaining("RT-17-03", "first_group", "tells the first fusion group alone", lambda told: told | {
        "fusion_groups": told["fusion_groups"][:1]
    }),
    explaining("RT-17-03", "one_group", "tells all kernels as one group", one_group),
    explaining("RT-17-03", "empty_groups", "tells groups without operations", lambda told: told | {
        "fusion_groups": [each | {"operations": []} for each in told["fusion_groups"]]
    }),
    telling("RT-17-03", "no_text", "tells nothing in words", lambda text: ""),
    telling("RT-17-03", "no_names", "names no kernels in words", lambda text: text.replace("kernel ", "")
            .replace("product", "it").replace("twice", "it")),
    explaining("RT-17-08", "no_tiles", "tells no tile shapes", lambda told: told | {"tile_shapes": []}),
    explaining("RT-17-08", "first_tile", "tells the first tile shape alone", lambda told: told | {
        "tile_shapes": told["tile_shapes"][:1]
    }),
    explaining("RT-17-08", "no_extents", "tells tile shapes without extents", tiles(lambda each: each | {
        "extents": {}
    })),
    explaining("RT-17-08", "extents_of_zero", "tells extents of 0", tiles(lambda each: each | {
        "extents": dict.fromkeys(each["extents"], 0)
    })),
    explaining("RT-17-08", "extents_in_bytes", "tells extents in bits", tiles(lambda each: each | {
        "extents": {name: 32 * extent for name, extent in each["extents"].items()}
    })),
    explaining("RT-17-08", "no_k", "tells no extent of a contraction", tiles(lambda each: each | {
        "extents": {name: extent for name, extent in each["extents"].items() if name != "k"}
    })),
    telling("RT-17-08", "no_numbers", "tells no numbers in words",
            lambda text: "".join("n" if each.isdigit() else each for each in text)),
    explaining("RT-17-09", "no_plans", "tells no collective plans", lambda told: told | {"collective_plans": []}),
    explaining("RT-17-09", "first_plan", "tells the first plan alone", lambda told: told | {
        "collective_plans": told["collective_plans"][:1]
    }),
    explaining("RT-17-09", "plans_without_axis", "tells every plan along dp", lambda told: told | {
        "collective_plans": [each | {"axis": "dp"} for each in told["collective_plans"]]
    }),
    telling("RT-17-09", "plans_not_in_words", "tells no plans in words", lambda text: "\n".join(
        line for line in text.split("\n") if not line.startswith("collective")
    )),
]  # fmt: skip


@violates("RT-17-03", "explains the module that was loaded last")
class LastModule(ReferenceAdapter):
    """Whatever module is asked for."""

    def runtime_tessxExplain(self, *, module: Any) -> Told:  # noqa: N802
        """The last one."""
        return super().runtime_tessxExplain(module=max(handle for handle, _ in self.runtime.handles.live("module")))
