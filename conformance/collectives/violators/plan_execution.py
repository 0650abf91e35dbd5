"""Plans that run wrongly: stale buffers, early units, lost tails, confused parts and folds (collectives 2, 4, 8)."""

from dataclasses import replace

from tessera_reference.abi.status import unsupported
from tessera_reference.adapter import collectives
from tessera_reference.collectives import plan_execution
from tessera_reference.collectives.plan_execution import Exchange
from tessera_reference.collectives.plan_execution import _Run as Run
from tessera_reference.graph.collectives import AllReduce
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed
from .plans import Emitter

START, EXCHANGE, COMPUTE = Run._start, Run._exchange, Run._compute
SLOT, FOLDED = plan_execution._slot, plan_execution._folded
RESULTS, UNITS = Exchange.results, Emitter.units
GROUPS, RUN_PLAN, SIMULATE = collectives.groups_of, collectives.run_plan, plan_execution.simulate


def running(clause, name, description, method, change):
    """Return a violation that changes a method of a run."""
    return changed(clause, name, description, (Run, method, change))


# Buffers


def half_the_buffers(unit, step):
    """Let two buffers overlap."""
    where, buffer = SLOT(unit, step)
    return where, buffer if unit.buffer is None else buffer // 2


def shared_by_ranks(self, unit, step, rank):
    self.ranks[rank].buffers = self.ranks[0].buffers
    START(self, unit, step, rank)


BUFFERS = [
    changed(clause, f"half_the_buffers_{clause[5:]}", "lays two buffers over each other",
            ("collectives.plan_execution._slot", half_the_buffers))
    for clause in ("COLL-02.3-04", "COLL-02.3-05")
] + [
    running("COLL-02.3-04", "shared_by_ranks", "has one buffer for all ranks", "_start", shared_by_ranks),
]  # fmt: skip


# Order


def running_after(clause, name, description, after):
    """Return a violation that runs another plan than the reported one: `after` changes what each unit waits for."""

    def run_plan(module, function, plan, *arguments):
        units = [replace(unit, after=after(unit, plan.units)) for unit in plan.units]
        return RUN_PLAN(module, function, replace(plan, units=units), *arguments)

    return changed(clause, name, description, ("adapter.collectives.run_plan", run_plan))


def not_waited(unit, units):
    return tuple(unit.after[:-1] if unit.op == "tessera.await" and len(unit.after) > 1 else unit.after)


def undrawn(self, *arguments):
    for step in self.program.steps:
        if isinstance(step, plan_execution.Compute):
            object.__setattr__(step, "draws", False)
    return UNITS(self, *arguments)


ORDER = [
    running_after("COLL-02.1-02", "last_chunk_missing", "waits for all chunks but the last", not_waited),
    changed("COLL-08-10", "draws_as_they_run", "numbers draws as they run", (Emitter, "units", undrawn)),
]


# Chunks


def in_rows(self, type_, first, chunk):
    return [(marks.T.reshape(marks.shape), given) for marks, given in RESULTS(self, type_, first, chunk)]


def as_they_come(self, type_, first, chunk):
    turned = [*chunk[1:], *chunk[:1]] if first and isinstance(self.plain, AllReduce) else chunk
    return RESULTS(self, type_, first, turned)


def sorted_ranks(plan, module, function, mesh):
    found = GROUPS(plan, module, function, mesh)
    return {step: tuple(tuple(sorted(group)) for group in groups) for step, groups in found.items()}


CHUNKS = [
    changed("COLL-02.3-01", "in_rows", "lands columns as rows",
        ("collectives.plan_execution.Exchange.results", in_rows)),
    changed("COLL-08-09", "another_order", "adds ranks in another order from the second chunk on",
            ("collectives.plan_execution.Exchange.results", as_they_come)),
    changed("COLL-02.2-03", "run_sorted_ranks", "sorts the ranks of a group",
        ("adapter.collectives.groups_of", sorted_ranks)),
]  # fmt: skip


# Fusion and folding


def whole_each(self, unit, step, group):
    usual = step.parts
    if len(usual) > 1:
        step.__dict__["parts"] = (usual[0], replace(usual[1], first=usual[1].first - 1), *usual[2:])
    EXCHANGE(self, unit, step, group)
    step.__dict__["parts"] = usual


def never(side, kind):
    """Return a fold function that skips folds of a kind on one side."""

    def folded(folds, at, *more):
        return FOLDED([fold for fold in folds if (fold.kind, fold.at) != (kind, side)], at, *more)

    return folded


FUSED = [
    running("COLL-02.4-01", "run_split_early", "splits a tensor an element too early", "_exchange", whole_each),
    *(changed("COLL-02.4-02", f"not_scaled_{side}", f"scales nothing {side} it",
              ("collectives.plan_execution._folded", never(side, "scale")))
      for side in ("before", "after")),
    changed("COLL-02.4-04", "not_rounded", "casts to the dtype that travels without rounding",
            ("collectives.plan_execution.cast", lambda given, dtype: Array(dtype, given.values.astype(dtype.carrier)))),
]  # fmt: skip


# Times


def in_a_row(units, *arguments):
    earlier = [tuple(other.id for other in units[:place]) for place in range(len(units))]
    return SIMULATE([replace(unit, after=after) for unit, after in zip(units, earlier, strict=True)], *arguments)


def waits_take_time(units, *arguments):
    most = max(getattr(unit, "picoseconds", 0) for unit in units)
    longer = [replace(unit, picoseconds=most) if hasattr(unit, "picoseconds") else unit for unit in units]
    return SIMULATE(longer, *arguments)


def two_devices_at_least(units, topology, devices, *arguments):
    if len(devices) < 2:
        raise unsupported("simulate", "one rank", "two ranks or more")
    return SIMULATE(units, topology, devices, *arguments)


def timed(clause, name, description, change):
    """Return a violation with other times."""
    return changed(clause, name, description, ("collectives.plan_execution.simulate", change))


TIMES = [
    timed("COLL-02.1-02", "timed_without_waits", "runs units before what they wait for",
        lambda units, *arguments: SIMULATE([replace(unit, after=()) for unit in units], *arguments)),
    timed("COLL-01-02", "timed_in_a_row", "runs one unit after another", in_a_row),
    timed("COLL-04.1-02", "timed_one_in_flight", "has one chunk in flight whatever the buffers",
        lambda *arguments: SIMULATE(*arguments[:3], 1)),
    timed("COLL-04.1-01", "timed_ranks", "has no times of a plan on one rank", two_devices_at_least),
    timed("COLL-04.1-01", "timed_waits", "keeps the compute queue busy with waits", waits_take_time),
]  # fmt: skip
