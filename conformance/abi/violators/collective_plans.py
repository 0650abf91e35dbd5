"""Modules whose plans are not those of their collectives (runtime spec 8.1; AMB-COLL-85, -86)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.abi.fatbin import CollectivePlan
from tessera_reference.compilation import images as collective_plans

from ...ir.violators.changes import changed
from .images import Said, said

Plans = tuple[CollectivePlan, ...]

PLANS_OF = collective_plans.plans_of


def carried(name: str, description: str, change: Callable[[list[Said]], list[Said]]) -> Violation:
    """Return a violation that reports other plans."""
    return said(
        "RT-08.1-10", name, description, lambda found, _: {"collective_plans": change(found["collective_plans"])}
    )


def derived(name: str, description: str, plans_of: Callable[[Any], Plans]) -> Violation:
    """Return a violation that derives other plans."""
    return changed("RT-08.1-10", name, description, ("compilation.images.plans_of", plans_of))


def without_subgroup(plan: Said) -> Said:
    return {name: value for name, value in plan.items() if name != "subgroup"}


def of_all(member: str) -> Violation:
    """Return a violation that reports a member of the first plan for all."""
    return carried(
        f"{member}_of_all",
        f"has one {member} for all plans",
        lambda plans: [plan | ({member: plans[0][member]} if member in plans[0] else {}) for plan in plans],
    )


def phantom(modules: Any) -> Plans:
    return PLANS_OF(modules) or (CollectivePlan("all_reduce", "dp", "ring"),)


def by_message(collective: str, size: int | None) -> str:
    parts = 8 if collective == "all_gather" else 1
    return BY_SIZE(collective, None if size is None else size // parts)


BY_SIZE = collective_plans._by_size

PLANS = [
    carried("no_subgroup", "loses subgroup", lambda plans: [*map(without_subgroup, plans)]),
    *map(of_all, ("algorithm", "chunk_bytes", "path", "scope", "priority", "overlap", "qos", "wire")),
    derived("phantom", "has a plan for a program without collectives", phantom),
    changed("COLL-03.1-04", "no_table", "plans rings where nothing is said",
            ("compilation.images._by_size", lambda *arguments: "ring")),
    changed("COLL-03.1-01", "no_ring", "plans direct sends where nothing is said",
            ("compilation.images._by_size", lambda *arguments: "direct")),
    changed("RT-08.1-10", "size_of_a_share", "asks the table for what a rank brings",
            ("compilation.images._by_size", by_message)),
    changed("RT-08.1-10", "size_guessed", "takes a size that is not known for small",
            ("compilation.images._by_size", lambda name, size: BY_SIZE(name, size or 0))),
]  # fmt: skip
