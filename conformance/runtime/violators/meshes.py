"""Wrong meshes (runtime specification, 2, 4.2 and 18)."""

from math import prod

from tessera_conformance.adapter import Refusal

from .changes import INVALID, accepting, answering, grouping, refusing, without_waiting

AXES = ("tp", "pp", "dp", "ep")


def exchanged(adapter, call, given):
    axes = given["axes"]
    return call(**(given | {"axes": axes | {"tp": axes["dp"], "dp": axes["tp"]}}))


def transposed(axes, axis, function="mesh"):
    sizes, place = axes.sizes, AXES.index(axis)
    stride = prod(sizes[:place])
    first = [rank for rank in range(axes.ranks) if rank // stride % sizes[place] == 0]
    return tuple(tuple(rank + stride * step for step in range(sizes[place])) for rank in first)


def all_ids(given):
    ids = given["deviceIds"]
    if len(ids) != given["nDevices"]:
        raise Refusal(INVALID, "call", "tessMeshCreate: too many ids")
    return given


def freeing_within(adapter, call, given):
    live = dict(adapter.runtime.handles.live("mesh"))
    for handle, mesh in live.items():
        if given["mesh"] in live and set(mesh.devices) < set(live[given["mesh"]].devices):
            adapter.runtime.machine.memory.release(handle)
    return call(**given)


VIOLATORS = [
    answering("RT-02-07", "exchanged", "exchanges tp and dp", "tessMeshCreate", exchanged),
    refusing("RT-02-07", "no_ep", "knows no axis ep", "tessMeshCreate", lambda given: given["axes"]["ep"] > 1),
    refusing("RT-02-07", "no_pp", "knows no axis pp", "tessMeshCreate", lambda given: given["axes"]["pp"] > 1),
    grouping("RT-02-07", "column_major", "counts tp fastest", transposed),
    accepting("RT-04.2-04", "all_ids", "reads ids beyond nDevices", "tessMeshCreate",
        lambda given: "nDevices" in given and given["nDevices"] > 0, all_ids),
    refusing("RT-04.2-04", "ascending", "wants ids that ascend", "tessMeshCreate",
        lambda given: given["deviceIds"] and given["deviceIds"] != sorted(given["deviceIds"]), INVALID),
    refusing("RT-04.2-04", "from_the_first", "wants the first device", "tessMeshCreate",
        lambda given: given["deviceIds"] and 0 not in given["deviceIds"], INVALID),
    *(refusing("RT-04.2-04", f"refused_by_{function}", f"{function} refuses a live mesh", function, status=INVALID)
        for function in ("tessBroadcast", "tessFree", "tessMeshDestroy")),
    refusing("RT-18-02", "at_most_four", "makes meshes of at most four devices", "tessMeshCreate",
        lambda given: len(given["deviceIds"] or ()) > 4, INVALID),
    answering("RT-04.2-05", "frees_within", "frees memory of smaller meshes too", "tessMeshDestroy", freeing_within),
    answering("RT-04.2-05", "unfinished", "leaves queued work undone", "tessMeshDestroy", without_waiting),
]  # fmt: skip
