"""Wrong arguments that are accepted (runtime specification, Appendix A)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, violates

from .changes import BuildsOnce, accepting

COLLECTIVES = ("tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast")


def taking(name: str, description: str, function: str, when: Any, instead: Any) -> Violation:
    """A wrong argument is replaced by a valid one."""
    return accepting("RT-19.A-01", name, description, function, when, instead)


def configured(name: str, description: str, when: Any, instead: Any) -> Violation:
    """A wrong launch configuration is replaced by a valid one."""
    return taking(
        name,
        description,
        "tessLaunch",
        lambda given: when(given["cfg"]),
        lambda given: {"cfg": given["cfg"] | instead(given["cfg"])},
    )


def at_least(least: int, values: list[int]) -> list[int]:
    """Numbers that are none of them less."""
    return [max(value, least) for value in values]


TAKEN = [
    taking(
        "any_count_of_devices",
        "counts the ids itself",
        "tessMeshCreate",
        lambda given: given.get("nDevices", 1) < 1,
        lambda given: {"nDevices": len(given["deviceIds"])},
    ),
    taking(
        "devices_twice",
        "takes a device twice",
        "tessMeshCreate",
        lambda given: len(set(given["deviceIds"] or ())) == 1 and len(given["deviceIds"]) == 2,
        lambda given: {"deviceIds": [0, 1]},
    ),
    taking(
        "devices_twice_apart",
        "compares a device with the one before alone",
        "tessMeshCreate",
        lambda given: len(given["deviceIds"] or ()) == 3 and given["deviceIds"][0] == given["deviceIds"][2],
        lambda given: {"deviceIds": [0, 1, 2]},
    ),
    taking(
        "unknown_devices",
        "takes unknown devices for the first",
        "tessMeshCreate",
        lambda given: max(given["deviceIds"] or [0]) > 7,
        lambda given: {"deviceIds": [0, 1]},
    ),
    taking(
        "negative_devices",
        "takes a negative id",
        "tessMeshCreate",
        lambda given: min(given["deviceIds"] or [0]) < 0,
        lambda given: {"deviceIds": [0, 1]},
    ),
    taking(
        "negative_axes",
        "takes negative axes for absent ones",
        "tessMeshCreate",
        lambda given: min(given["axes"].values()) < 0,
        lambda given: {"axes": {"tp": 2, "pp": 1, "dp": 1, "ep": 1}},
    ),
    taking(
        "overflowing_axes",
        "multiplies axes in 32 bits",
        "tessMeshCreate",
        lambda given: max(given["axes"].values()) > 1 << 20,
        lambda given: {"axes": {"tp": 2, "pp": 1, "dp": 1, "ep": 1}},
    ),
    taking(
        "any_memory_kind",
        "takes unknown kinds of memory",
        "tessHostAlloc",
        lambda given: given["kind"] not in (0, 1),
        lambda given: {"kind": 1},
    ),
    taking(
        "any_copy_kind",
        "takes unknown kinds of copies",
        "tessMemcpyAsync",
        lambda given: given["kind"] not in (0, 1, 2),
        lambda given: {"kind": 2},
    ),
    taking(
        "short_arguments",
        "reads arguments that are not there",
        "tessLaunch",
        lambda given: 8 <= given.get("argSize", 16) < 16 and given["argBuffer"] is not None,
        lambda given: {"argSize": 16},
    ),
    *(
        taking(
            f"{function}_dtype",
            "takes dtype 14 for 9",
            function,
            lambda given: given["dtype"] == 14,
            lambda given: {"dtype": 9},
        )
        for function in COLLECTIVES
    ),
    *(
        taking(
            f"{function}_op", "takes op 3 for a sum", function, lambda given: given["op"] == 3, lambda given: {"op": 0}
        )
        for function in COLLECTIVES[:2]
    ),
    *(
        taking(
            f"{function}_axis",
            "takes DP for dp",
            function,
            lambda given: given["axis"] == "DP",
            lambda given: {"axis": "dp"},
        )
        for function in COLLECTIVES[:3]
    ),
    *(
        taking(
            f"{function}_uneven",
            "rounds counts down",
            function,
            lambda given: given["count"] in (63, 1),
            lambda given: {"count": given["count"] // 2 * 2},
        )
        for function in COLLECTIVES[1:3]
    ),
    taking(
        "root_behind",
        "takes a root behind the last rank",
        "tessBroadcast",
        lambda given: given["root"] > 0,
        lambda given: {"root": 0},
    ),
    taking(
        "negative_root",
        "takes a negative root",
        "tessBroadcast",
        lambda given: given["root"] < 0,
        lambda given: {"root": 0},
    ),
    configured(
        "no_grid", "launches no grid", lambda cfg: min(cfg["grid"]) == 0, lambda cfg: {"grid": at_least(1, cfg["grid"])}
    ),
    configured(
        "negative_grid",
        "takes negative grids",
        lambda cfg: min(cfg["grid"]) < 0,
        lambda cfg: {"grid": at_least(1, cfg["grid"])},
    ),
    configured(
        "negative_block",
        "takes negative blocks",
        lambda cfg: min(cfg["block"]) < 0,
        lambda cfg: {"block": at_least(0, cfg["block"])},
    ),
    configured(
        "large_block", "takes blocks of any size", lambda cfg: max(cfg["block"]) > 100, lambda cfg: {"block": [1, 1, 1]}
    ),
    configured(
        "large_memory",
        "takes shared memory of any size",
        lambda cfg: cfg["shmemBytes"] > 1 << 30,
        lambda cfg: {"shmemBytes": 0},
    ),
]


class ActsFirst(BuildsOnce):
    """A runtime that does the work of a call on the stream that it used last, and then refuses the call."""

    last = 0

    def runtime_tessMemcpyAsync(self, *, stream: int, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """A copy."""
        return self.acting(super().runtime_tessMemcpyAsync, stream=stream, **arguments)

    def runtime_tessLaunch(self, *, stream: int, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """A launch."""
        return self.acting(super().runtime_tessLaunch, stream=stream, **arguments)

    def acting(self, call: Any, **arguments: Any) -> dict[str, Any]:
        """Do what the call asks, whatever its stream is."""
        try:
            answer: dict[str, Any] = call(**arguments)
        except Refusal:
            with suppress(Refusal):
                call(**(arguments | {"stream": self.last}))
            raise
        self.last = arguments["stream"]
        return answer


@violates("RT-19.A-01", "copies before it looks at the stream, which it then refuses")
class CopiesFirst(ActsFirst):
    def runtime_tessLaunch(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        return BuildsOnce.runtime_tessLaunch(self, **arguments)


@violates("RT-19.A-01", "launches before it looks at the stream, which it then refuses")
class LaunchesFirst(ActsFirst):
    def runtime_tessMemcpyAsync(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        answer: dict[str, Any] = BuildsOnce.runtime_tessMemcpyAsync(self, **arguments)
        self.last = arguments["stream"]
        return answer
