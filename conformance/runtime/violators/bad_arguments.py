"""Wrong arguments that are accepted (runtime specification, Appendix A)."""

from contextlib import suppress

from tessera_conformance.adapter import Refusal

from .changes import accepting, answering

COLLECTIVES = ("tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast")


def taking(name, description, function, when, **instead):
    """Return a violation that replaces wrong arguments by valid ones, or by the results of functions of them."""

    def valid(given):
        return {key: value(given[key]) if callable(value) else value for key, value in instead.items()}

    return accepting("RT-19.A-01", name, description, function, when, valid)


def launching(name, description, member, wrong, instead):
    """Return a violation that replaces one wrong member of a launch configuration by a valid one."""
    return taking(name, description, "tessLaunch", lambda given: wrong(given["cfg"][member]),
        cfg=lambda cfg: cfg | {member: instead(cfg[member])})  # fmt: skip


def ids(given):
    return given["deviceIds"] or [0]


def positive(extents):
    return [max(extent, 1) for extent in extents]


TWO_ALONG_TP = {"tp": 2, "pp": 1, "dp": 1, "ep": 1}


def acting_first(name, description, function):
    """Return a violation that carries out a call on the last stream of each mesh, and then refuses the call."""

    def answer(adapter, call, given):
        try:
            return call(**given)
        except Refusal:
            for _, mesh in adapter.runtime.handles.live("mesh"):
                with suppress(Refusal):
                    call(**(given | {"stream": list(mesh.streams)[-1]} if mesh.streams else given))
            raise

    return answering("RT-19.A-01", name, description, function, answer)


VIOLATORS = [
    accepting("RT-19.A-01", "any_count_of_devices", "counts the ids itself", "tessMeshCreate",
        lambda given: given.get("nDevices", 1) < 1, lambda given: {"nDevices": len(given["deviceIds"])}),
    taking("devices_twice", "takes a device twice", "tessMeshCreate",
        lambda given: len(ids(given)) == 2 and len(set(ids(given))) == 1, deviceIds=[0, 1]),
    taking("devices_twice_apart", "compares a device with the one before alone", "tessMeshCreate",
        lambda given: len(ids(given)) == 3 and ids(given)[0] == ids(given)[2], deviceIds=[0, 1, 2]),
    taking("unknown_devices", "takes unknown devices for the first", "tessMeshCreate",
        lambda given: max(ids(given)) > 7, deviceIds=[0, 1]),
    taking("negative_devices", "takes a negative id", "tessMeshCreate",
        lambda given: min(ids(given)) < 0, deviceIds=[0, 1]),
    taking("negative_axes", "takes negative axes for absent ones", "tessMeshCreate",
        lambda given: min(given["axes"].values()) < 0, axes=TWO_ALONG_TP),
    *(taking(f"{axis}_not_counted", f"leaves {axis} out of the product", "tessMeshCreate",
        lambda given, axis=axis: given["axes"][axis] > 1 == min(given["axes"].values()),
        axes=lambda axes, axis=axis: axes | {axis: 1}) for axis in ("pp", "ep")),
    taking("overflowing_axes", "multiplies axes in 32 bits", "tessMeshCreate",
        lambda given: max(given["axes"].values()) > 1 << 20, axes=TWO_ALONG_TP),
    taking("any_memory_kind", "takes unknown kinds of memory", "tessHostAlloc",
        lambda given: given["kind"] not in (0, 1), kind=1),
    taking("any_copy_kind", "takes unknown kinds of copies", "tessMemcpyAsync",
        lambda given: given["kind"] not in (0, 1, 2), kind=2),
    *(taking(f"{function}_dtype", "takes dtype 14 for 9", function, lambda given: given["dtype"] == 14, dtype=9)
        for function in COLLECTIVES),
    *(taking(f"{function}_op", "takes op 3 for a sum", function, lambda given: given["op"] == 3, op=0)
        for function in COLLECTIVES[:2]),
    *(taking(f"{function}_axis", "takes DP for dp", function, lambda given: given["axis"] == "DP", axis="dp")
        for function in COLLECTIVES[:3]),
    *(taking(f"{function}_uneven", "rounds counts down", function, lambda given: given["count"] in (63, 1),
        count=lambda count: count // 2 * 2) for function in COLLECTIVES[1:3]),
    taking("root_behind", "takes a root behind the last rank", "tessBroadcast",
        lambda given: given["root"] > 0, root=0),
    taking("negative_root", "takes a negative root", "tessBroadcast", lambda given: given["root"] < 0, root=0),
    accepting("RT-19.A-01", "short_arguments", "reads arguments that are not there", "tessLaunch",
        lambda given: 8 <= given.get("argSize", 16) < 16 and given["argBuffer"] is not None,
        lambda given: {"argSize": 16}),
    launching("no_grid", "launches no grid", "grid", lambda grid: min(grid) == 0, positive),
    *(launching(f"negative_grid_{name}", f"takes a negative {name} of a grid", "grid",
        lambda grid, place=place: grid[place] < 0, positive) for place, name in enumerate("xyz")),
    *(launching(f"negative_block_{name}", f"takes a negative {name} of a block", "block",
        lambda block, place=place: block[place] < 0, lambda block: [max(extent, 0) for extent in block])
        for place, name in enumerate("xyz")),
    launching("large_memory", "takes shared memory of any size", "shmemBytes", lambda size: size > 1 << 30,
        lambda size: 0),
    acting_first("CopiesFirst", "copies before it looks at the stream, which it then refuses", "tessMemcpyAsync"),
    acting_first("LaunchesFirst", "launches before it looks at the stream, which it then refuses", "tessLaunch"),
]  # fmt: skip
