"""Wrong meshes (runtime specification, 2, 4.2 and 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_reference.mesh.topology import MeshAxes

from .changes import INVALID, Call, Given, accepting, answering, grouping, refusing, without_waiting

AXES = ("tp", "pp", "dp", "ep")


def renamed(**other: str) -> Any:
    """Return a call with axes under other names."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        axes: Mapping[str, int] = given["axes"]
        return call(**(given | {"axes": {name: axes[other.get(name, name)] for name in AXES}}))

    return answer


def transposed(axes: MeshAxes, axis: str, function: str = "mesh") -> tuple[tuple[int, ...], ...]:
    sizes, place = axes.sizes, AXES.index(axis)
    stride = 1
    for size in sizes[:place]:
        stride *= size
    first = [rank for rank in range(axes.ranks) if rank // stride % sizes[place] == 0]
    return tuple(tuple(rank + stride * step for step in range(sizes[place])) for rank in first)


ARRANGED = [
    answering("RT-02-07", "exchanged", "exchanges tp and dp", "tessMeshCreate", renamed(tp="dp", dp="tp")),
    refusing("RT-02-07", "no_ep", "knows no axis ep", "tessMeshCreate", lambda given: given["axes"]["ep"] > 1),
    refusing("RT-02-07", "no_pp", "knows no axis pp", "tessMeshCreate", lambda given: given["axes"]["pp"] > 1),
    grouping("RT-02-07", "column_major", "counts tp fastest", transposed),
]


def in_use(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    used = {device for _, mesh in adapter.runtime.handles.live("mesh") for device in mesh.devices}
    if used & set(given["deviceIds"] or ()):
        raise Refusal(INVALID, "call", "tessMeshCreate: a device is in use")
    return call(**given)


def all_ids(given: Given) -> dict[str, Any]:
    ids = given["deviceIds"]
    if len(ids) != given["nDevices"]:
        raise Refusal(INVALID, "call", "tessMeshCreate: too many ids")
    return given


def descends(given: Given) -> bool:
    ids = given["deviceIds"] or []
    return ids != sorted(ids)


CREATED = [
    accepting("RT-04.2-04", "all_ids", "reads ids beyond nDevices", "tessMeshCreate",
        lambda given: "nDevices" in given and given["nDevices"] > 0, all_ids),
    refusing("RT-04.2-04", "ascending", "wants ids that ascend", "tessMeshCreate", descends, INVALID),
    refusing("RT-04.2-04", "from_the_first", "wants the first device", "tessMeshCreate",
        lambda given: bool(given["deviceIds"]) and 0 not in given["deviceIds"], INVALID),
    *(
        refusing("RT-04.2-04", f"refused_by_{function}", f"{function} refuses a live mesh", function, status=INVALID)
        for function in ("tessBroadcast", "tessFree", "tessMeshDestroy")
    ),
    refusing("RT-18-02", "at_most_four", "makes meshes of at most four devices", "tessMeshCreate",
        lambda given: len(given["deviceIds"] or ()) > 4, INVALID),
]  # fmt: skip


def freeing_within(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    live = dict(adapter.runtime.handles.live("mesh"))
    for handle, mesh in live.items():
        if given["mesh"] in live and set(mesh.devices) < set(live[given["mesh"]].devices):
            adapter.runtime.machine.memory.release(handle)
    return call(**given)


DESTROYED = [
    answering("RT-04.2-05", "frees_within", "frees memory of smaller meshes too", "tessMeshDestroy", freeing_within),
    answering("RT-04.2-05", "unfinished", "leaves queued work undone", "tessMeshDestroy", without_waiting),
]
