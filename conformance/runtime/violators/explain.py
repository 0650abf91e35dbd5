"""Explanations of modules that are incomplete or wrong (runtime spec 17; AMB-RT-36)."""

from .changes import answering, broken, result


def explaining(clause, name, description, change):
    """Return a violation that changes the explanation."""
    return broken(clause, name, description, "adapter.ReferenceAdapter.runtime_tessxExplain",
        result(lambda found: found | {"explanation": change(found["explanation"])}))  # fmt: skip


def one_group(found):
    kernels = " ".join(group["kernel"] for group in found["fusion_groups"])
    operations = [name for group in found["fusion_groups"] for name in group["operations"]]
    return found | {"fusion_groups": [{"kernel": kernels, "operations": operations}]}


EXPLAINED = [
    explaining("RT-17-03", "one_group", "tells all kernels as one group", one_group),
    explaining("RT-17-08", "first_tile", "tells the first tile shape alone",
        lambda found: found | {"tile_shapes": found["tile_shapes"][:1]}),
    explaining("RT-17-08", "extents_in_bytes", "tells extents in bits", lambda found: found | {"tile_shapes": [
        tile | {"extents": {name: 32 * extent for name, extent in tile["extents"].items()}}
        for tile in found["tile_shapes"]]}),
    explaining("RT-17-09", "first_collective", "tells one plan of each collective", lambda found: found | {
        "collective_plans": list({plan["collective"]: plan for plan in found["collective_plans"]}.values())}),
    explaining("RT-17-09", "always_a_plan", "tells a plan of a program without collectives",
        lambda found: found | {"collective_plans": found["collective_plans"] or [
            {"collective": "all_reduce", "axis": "dp", "algorithm": "ring"}]}),
    answering("RT-17-03", "LastModule", "explains the module that was loaded last", "tessxExplain",
        lambda adapter, call, given: call(module=max(handle for handle, _ in adapter.runtime.handles.live("module")))),
]  # fmt: skip
