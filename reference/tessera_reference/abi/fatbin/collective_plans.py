"""The plans of a module for its collectives, which are hints (runtime spec 8.1; RT-08.1-10, -11; AMB-COLL-85)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ...numerics.formats import DTYPES
from .checks import is_whole_number, require, require_text

__all__ = ["PLANNED_ALGORITHMS", "PLANNED_COLLECTIVES", "CollectivePlan"]

PLANNED_COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
PLANNED_ALGORITHMS = ("auto", "ring", "tree", "halving_doubling", "hierarchical", "direct")
SOURCES = ("hint", "default")
_TEXTS = ("function", "subgroup", "path", "scope")
_KEPT = ("priority", "overlap", "qos")


@dataclass(frozen=True)
class CollectivePlan:
    """How a collective along an axis, or, `axis` None and without a subgroup, over the whole mesh, would best run.

    `source` says who chose the algorithm: the program (hint), or the table by size (default), which leaves it to the
    runtime (auto) where the size is not known. Everything after it is left out where the program does not say it.
    """

    collective: str
    axis: str | None
    algorithm: str
    source: str = "hint"
    function: str | None = None
    """The function that it is in."""
    subgroup: str | None = None
    """The ranks that meet, where they are neither those of an axis nor the whole mesh."""
    bytes: int | None = None
    """Of the full buffer, where its extents are known."""
    chunk_bytes: int | None = None
    wire: str | None = None
    """The dtype that travels, where it is not that of the data."""
    path: str | None = None
    scope: str | None = None
    priority: int | str | None = None
    overlap: int | str | None = None
    qos: int | str | None = None

    def __post_init__(self) -> None:
        allowed = ", ".join(PLANNED_COLLECTIVES)
        require(self.collective in PLANNED_COLLECTIVES, "the collective of a plan", self.collective, allowed)
        if self.axis is not None:
            require_text("the axis of a plan", self.axis)
            require(self.subgroup is None, "the subgroup of a plan along an axis", self.subgroup, "none")
        allowed = ", ".join(PLANNED_ALGORITHMS)
        require(self.algorithm in PLANNED_ALGORITHMS, "the algorithm of a plan", self.algorithm, allowed)
        require(self.source in SOURCES, "the source of a plan", self.source, " or ".join(SOURCES))
        for name in _TEXTS:
            if getattr(self, name) is not None:
                require_text(f"the {name} of a plan", getattr(self, name))
        for name, least in (("bytes", 0), ("chunk_bytes", 1)):
            given = getattr(self, name)
            require(given is None or is_whole_number(given, least), f"{name} of a plan", given, f"{least} or more")
        wire = self.wire is None or (isinstance(self.wire, str) and self.wire in DTYPES)
        require(wire, "the wire of a plan", self.wire, "one of " + ", ".join(DTYPES))
        for name in _KEPT:
            given = getattr(self, name)
            if not is_whole_number(given, -(1 << 63)) and given is not None:
                require_text(f"the {name} of a plan", given)

    @property
    def members(self) -> Mapping[str, object]:
        """What it says, by name; the axis, too, where it is None."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None or name == "axis"}

    def __str__(self) -> str:
        where = f"along {self.axis}" if self.axis else f"in {self.subgroup}" if self.subgroup else "over the whole mesh"
        of = f" of @{self.function}" if self.function else ""
        chosen = "a hint" if self.source == "hint" else "by size"
        more = [f"{name} {value}" for name, value in self.members.items() if name not in _SAID]
        return f"{self.collective}{of} {where}: {', '.join((self.algorithm, chosen, *more))}"


_SAID = ("collective", "axis", "algorithm", "source", "function", "subgroup")
