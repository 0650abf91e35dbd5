"""Copies that move other bytes, or at another time (runtime specification, 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.runtime.streams import CopyWork

from .changes import UNSUPPORTED, BuildsOnce, Call, Given, accepting, answering, refusing

H2D, D2H, D2D = 0, 1, 2
CLAUSES = {H2D: "RT-04.4-18", D2H: "RT-04.4-19", D2D: "RT-04.4-20"}
NAMES = {H2D: "h2d", D2H: "d2h", D2D: "d2d"}


def of_kind(kind: int, change: Callable[[Given], dict[str, Any]]) -> Callable[[int], Any]:
    """A change of copies of one kind that do move something."""
    return lambda given: change(given) if given["kind"] == kind and 0 < given["bytes"] < 1 << 32 else {}


CHANGES: dict[str, tuple[str, Callable[[Given], dict[str, Any]]]] = {
    "one_less": ("leaves the last byte out", lambda given: {"bytes": given["bytes"] - 1}),
    "words": ("copies whole words", lambda given: {"bytes": given["bytes"] // 4 * 4}),
    "first_page": ("copies at most 1,024 bytes", lambda given: {"bytes": min(given["bytes"], 1024)}),
    "first_mib": ("copies at most 1 MiB", lambda given: {"bytes": min(given["bytes"], 1 << 20)}),
    "source_rounded": ("rounds the source down to a word", lambda given: {"src": given["src"] // 4 * 4}),
    "target_rounded": ("rounds the target down to a word", lambda given: {"dst": given["dst"] // 4 * 4}),
    "nothing": ("copies nothing", lambda given: {"bytes": 0}),
}

LARGE = 4096
"""The number of bytes above which a copy is a large one."""

LARGE_CHANGES: dict[str, tuple[str, Callable[[Given], dict[str, Any]]]] = {
    "large_source_rounded": (
        "rounds the source of a large copy down to a word",
        lambda given: {"src": given["src"] // 4 * 4} if given["bytes"] > LARGE else {},
    ),
    "large_target_rounded": (
        "rounds the target of a large copy down to a word",
        lambda given: {"dst": given["dst"] // 4 * 4} if given["bytes"] > LARGE else {},
    ),
}
CHANGES |= LARGE_CHANGES

CHANGED: list[Violation] = [
    accepting(
        CLAUSES[kind],
        f"{NAMES[kind]}_{name}",
        f"{description} in copies of kind {NAMES[kind].upper()}",
        "tessMemcpyAsync",
        lambda given: True,
        of_kind(kind, change),
    )
    for kind in (H2D, D2H, D2D)
    for name, (description, change) in CHANGES.items()
]


def longer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    rounded = given | {"bytes": -(-given["bytes"] // 4) * 4}
    try:
        return call(**rounded)
    except Refusal:
        return call(**given)


def exchanged(given: Given) -> dict[str, Any]:
    return {"dst": given["src"], "src": given["dst"]} if given["kind"] == D2D else {}


OTHERS = [
    *(
        answering(CLAUSES[kind], f"{NAMES[kind]}_longer", "copies whole words", "tessMemcpyAsync", longer)
        for kind in CLAUSES
    ),
    accepting(
        "RT-04.4-20",
        "exchanged",
        "copies on the device the other way round",
        "tessMemcpyAsync",
        lambda given: True,
        exchanged,
    ),
    *(
        refusing(
            CLAUSES[kind],
            f"{NAMES[kind]}_never",
            "has no copies of this kind",
            "tessMemcpyAsync",
            lambda given, kind=kind: given["kind"] == kind,
            UNSUPPORTED,
        )
        for kind in CLAUSES
    ),
]


EVERY_RANK = replaced("RT-04.4-19", "copies to the host from one rank after the other", BuildsOnce,
                      (CopyWork, "run", CopyWork._copied), name="every_rank")  # fmt: skip


@violates("RT-04.4-20", "copies on the device on rank 0 only")
class FirstRankOnly(BuildsOnce):
    def runtime_tessMemcpyAsync(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        if arguments["kind"] != D2D or arguments["bytes"] == 0 or not self._many_ranks():
            return super().runtime_tessMemcpyAsync(**arguments)
        mesh = self.runtime.handles.live("mesh")[-1][0]
        memory = self.runtime_tessxPeek(mesh=mesh, rank=0, devPtr=arguments["src"], bytes=arguments["bytes"])
        return self.runtime_tessxPoke(mesh=mesh, rank=0, devPtr=arguments["dst"], data=memory["data"])

    def _many_ranks(self) -> bool:
        return any(len(mesh.devices) > 1 for _, mesh in self.runtime.handles.live("mesh"))


class Overtaking(BuildsOnce):
    """Copies of one kind run on a stream of their own."""

    kinds: tuple[int, ...] = ()
    waits = False

    def runtime_tessMemcpyAsync(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Queue the copy beside the stream."""
        found = [mesh for _, mesh in self.runtime.handles.live("mesh") if arguments["stream"] in mesh.streams]
        if arguments["kind"] not in self.kinds or not found:
            return super().runtime_tessMemcpyAsync(**arguments)
        stream = self.runtime_tessStreamCreate(mesh=found[0].handle, priority=0)["stream"]
        answer = super().runtime_tessMemcpyAsync(**(arguments | {"stream": stream}))
        if self.waits:
            self.runtime_tessStreamSynchronize(stream=stream)
        return answer


@violates("RT-04.4-11", "lets copies to the device overtake queued work")
class CopiesInAtOnce(Overtaking):
    kinds = (H2D,)
    waits = True


@violates("RT-04.4-11", "lets copies on the device overtake queued work")
class CopiesWithinAtOnce(Overtaking):
    kinds = (D2D,)
    waits = True


@violates("RT-04.4-11", "runs copies beside their stream")
class CopiesBeside(Overtaking):
    kinds = (H2D, D2H, D2D)
