"""Fault plans: which launch fails, hangs or is slow, which allocation fails, which link is cut or fails midway.

AMB-RT-81, AMB-RT-182.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..collectives.argument_checks import require_known
from ..collectives.travel import Cut
from ..numerics.errors import shown
from .arguments import SIZE, integer, invalid

__all__ = ["Fault", "FaultPlan", "read_faults"]

Kind = Literal["kernel_trap", "kernel_hang", "kernel_slow", "out_of_memory", "link_down", "link_cut"]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "kernel_trap": ("kernel", "nth", "rank"),
    "kernel_hang": ("kernel", "nth", "rank"),
    "kernel_slow": ("kernel", "nth", "rank", "nanoseconds"),
    "out_of_memory": ("nth",),
    "link_down": ("mesh", "ranks"),
    "link_cut": ("link", "nanoseconds"),
}


@dataclass(frozen=True)
class Fault:
    """One fault: of the `nth` launch or allocation from now on; `rank` None is every rank.

    A link is cut so many `nanoseconds` after the plan was set, and stays cut.
    """

    kind: Kind
    kernel: str | None = None
    nth: int = 1
    rank: int | None = None
    nanoseconds: int = 0
    mesh: int = 0
    ranks: tuple[int, ...] = ()
    link: str = ""


@dataclass(eq=False)
class FaultPlan:
    """The faults of a context, and how often each kernel and tessMalloc were called since they were set, at `since`."""

    faults: Sequence[Fault] = ()
    since: int = 0
    launches: dict[str, int] = field(default_factory=dict)
    allocations: int = 0

    def of_launch(self, kernel: str) -> tuple[Fault, ...]:
        """Count a launch; returns its faults."""
        if not self.faults:
            return ()
        self.launches[kernel] = count = self.launches.get(kernel, 0) + 1
        found = [each for each in self.faults if each.kind.startswith("kernel_") and each.nth == count]
        return tuple(each for each in found if each.kernel in (None, kernel))

    def of_allocation(self) -> bool:
        """Count an allocation; returns whether it is to fail."""
        self.allocations += 1
        return any(each.kind == "out_of_memory" and each.nth == self.allocations for each in self.faults)

    def cut(self, mesh: int) -> tuple[tuple[int, int], ...]:
        """The pairs of ranks of a mesh between which nothing passes."""
        return tuple(
            (each.ranks[0], each.ranks[1]) for each in self.faults if each.kind == "link_down" and each.mesh == mesh
        )

    def link_cuts(self, now: int) -> tuple[Cut, ...]:
        """The links that are cut, and when, in picoseconds from now on; 0 where it was before."""
        cuts = (each for each in self.faults if each.kind == "link_cut")
        return tuple(Cut(max(0, self.since + 1000 * each.nanoseconds - now), each.link) for each in cuts)


def read_faults(described: Sequence[Mapping[str, Any]], links: Sequence[str] = (), since: int = 0) -> FaultPlan:
    """A plan from its description, on a machine with these links, from this time on.

    Raises `Failure` with TESS_ERR_INVALID_VALUE.
    """
    if not isinstance(described, Sequence) or not all(isinstance(each, Mapping) for each in described):
        raise invalid(f"faults is {shown(described)}", "a list of faults, each with its kind")
    return FaultPlan(tuple(_fault(f"faults[{i}]", each, links) for i, each in enumerate(described)), since)


def _fault(name: str, described: Mapping[str, Any], links: Sequence[str]) -> Fault:
    kind: Any = described.get("kind")
    if kind not in get_args(Kind):
        raise invalid(f"{name}.kind is {kind!r}", " or ".join(get_args(Kind)))
    for each in described:
        if each != "kind" and each not in FIELDS[kind]:
            raise invalid(f"{name} has {each!r}", f"{', '.join(FIELDS[kind])} of a {kind}")
    kernel = described.get("kernel")
    if kernel is not None and not isinstance(kernel, str):
        raise invalid(f"{name}.kernel is {kernel!r}", "the name of a kernel")
    link = described.get("link", "")
    if kind == "link_cut":
        require_known("tessxSetFaults", f"{name}.link", link, links)
    ranks = described.get("ranks", ())
    if kind == "link_down" and (not isinstance(ranks, list | tuple) or len(ranks) != 2):
        raise invalid(f"{name}.ranks is {ranks!r}", "a list of two ranks")
    numbers = {
        each: integer(f"{name}.{each}", described[each], SIZE)
        for each in ("nth", "nanoseconds", "mesh")
        if each in described
    }
    rank = None if described.get("rank") is None else integer(f"{name}.rank", described["rank"], SIZE)
    pair = tuple(integer(f"{name}.ranks[{i}]", each, SIZE) for i, each in enumerate(ranks))
    return Fault(kind, kernel=kernel, rank=rank, ranks=pair, link=link, **numbers)
