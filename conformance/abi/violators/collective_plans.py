"""Modules whose plans are not those of their collectives (runtime spec 8.1; AMB-COLL-85, -86)."""

from tessera_reference.abi.fatbin import CollectivePlan

from ...ir.violators.changes import breaks, changed, wrapped
from .images import said


def carried(name, description, change):
    plans = "collective_plans"
    return said("RT-08.1-10", name, description, lambda found, _: {plans: change(found[plans])})


def of_all(member):
    """Return a violation that reports a member of the first plan for all."""
    return carried(
        f"{member}_of_all",
        f"has one {member} for all plans",
        lambda plans: [plan | ({member: plans[0][member]} if member in plans[0] else {}) for plan in plans],
    )


@breaks("RT-08.1-10", "asks the table for what a rank brings", "compilation.images._by_size")
def size_of_a_share(usual, collective, size):
    parts = 8 if collective == "all_gather" else 1
    return usual(collective, None if size is None else size // parts)


PLANS = [
    carried("no_subgroup", "loses subgroup",
        lambda plans: [{name: plan[name] for name in plan if name != "subgroup"} for plan in plans]),
    *map(of_all, ("algorithm", "chunk_bytes", "path", "scope", "priority", "overlap", "qos", "wire")),
    wrapped("RT-08.1-10", "phantom", "has a plan for a program without collectives", "compilation.images.plans_of",
        lambda usual, modules: usual(modules) or (CollectivePlan("all_reduce", "dp", "ring"),)),
    changed("COLL-03.1-04", "no_table", "plans rings where nothing is said",
            ("compilation.images._by_size", lambda *arguments: "ring")),
    changed("COLL-03.1-01", "no_ring", "plans direct sends where nothing is said",
            ("compilation.images._by_size", lambda *arguments: "direct")),
    wrapped("RT-08.1-10", "size_guessed", "takes a size that is not known for small",
            "compilation.images._by_size", lambda usual, name, size: usual(name, size or 0)),
]  # fmt: skip
