"""Plans that run wrongly: stale buffers, early units, lost tails, confused parts and folds (collectives 2, 4, 8)."""

from dataclasses import replace

from tessera_reference.abi.status import unsupported
from tessera_reference.collectives.programs import Compute
from tessera_reference.graph.collectives import AllReduce
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed
from .changes import at, result_of

# Buffers and order


def half_the_buffers(usual, unit, step):
    where, buffer = usual(unit, step)
    return where, buffer if unit.buffer is None else buffer // 2


def last_chunk_missing(usual, module, function, plan, *given):
    lacking = [unit.op == "tessera.await" and len(unit.after) > 1 for unit in plan.units]
    units = [
        replace(unit, after=tuple(unit.after[: len(unit.after) - lacks]))
        for unit, lacks in zip(plan.units, lacking, strict=True)
    ]
    return usual(module, function, replace(plan, units=units), *given)


def undrawn(usual, self):
    for step in self.program.steps:
        if isinstance(step, Compute):
            object.__setattr__(step, "draws", False)
    return usual(self)


# Chunks, fusion and folding


def as_they_come(usual, self, type_, first, chunk):
    turned = [*chunk[1:], *chunk[:1]] if first and isinstance(self.plain, AllReduce) else chunk
    return usual(self, type_, first, turned)


def split_early(usual, self, unit, step, group):
    parts = step.parts
    if len(parts) > 1:
        step.__dict__["parts"] = (parts[0], replace(parts[1], first=parts[1].first - 1), *parts[2:])
    usual(self, unit, step, group)
    step.__dict__["parts"] = parts


# Times


def in_a_row(usual, units, *given):
    earlier = [tuple(other.id for other in units[:place]) for place in range(len(units))]
    return usual([replace(unit, after=after) for unit, after in zip(units, earlier, strict=True)], *given)


def waits_take_time(usual, units, *given):
    most = max(getattr(unit, "picoseconds", 0) for unit in units)
    return usual([replace(unit, picoseconds=most) if hasattr(unit, "picoseconds") else unit for unit in units], *given)


def two_devices_at_least(usual, units, topology, devices, *given):
    if len(devices) < 2:
        raise unsupported("simulate", "one rank", "two ranks or more")
    return usual(units, topology, devices, *given)


timed = at("collectives.programs.simulate")

VIOLATIONS = [
    *(
        at("collectives.programs._slot")(clause, f"half_the_buffers_{clause[5:]}",
            "lays two buffers over each other", half_the_buffers)
        for clause in ("COLL-02.3-04", "COLL-02.3-05")
    ),
    at("adapter.collectives.run_plan")("COLL-02.1-02", "last_chunk_missing", "waits for all chunks but the last",
        last_chunk_missing),
    at("collectives.planner._Emitter.units")("COLL-08-10", "draws_as_they_run", "numbers draws as they run", undrawn),
    result_of("collectives.programs.Exchange.results")("COLL-02.3-01", "in_rows", "lands columns as rows",
        lambda found: [(marks.T.reshape(marks.shape), given) for marks, given in found]),
    at("collectives.programs.Exchange.results")("COLL-08-09", "another_order",
        "adds ranks in another order from the second chunk on", as_they_come),
    result_of("adapter.collectives.groups_of")("COLL-02.2-03", "run_sorted_ranks", "sorts the ranks of a group",
        lambda found: {step: tuple(tuple(sorted(group)) for group in groups) for step, groups in found.items()}),
    at("collectives.programs._Run._exchange")("COLL-02.4-01", "run_split_early",
        "splits a tensor an element too early", split_early),
    *(
        at("collectives.programs._folded")("COLL-02.4-02", f"not_scaled_{side}", f"scales nothing {side} it",
            lambda usual, folds, at, *more, side=side: usual(
                [fold for fold in folds if (fold.kind, fold.at) != ("scale", side)], at, *more))
        for side in ("before", "after")
    ),
    changed("COLL-02.4-04", "not_rounded", "casts to the dtype that travels without rounding",
            ("collectives.programs.cast", lambda given, dtype: Array(dtype, given.values.astype(dtype.carrier)))),
    timed("COLL-02.1-02", "timed_without_waits", "runs units before what they wait for",
        lambda usual, units, *given: usual([replace(unit, after=()) for unit in units], *given)),
    timed("COLL-01-02", "timed_in_a_row", "runs one unit after another", in_a_row),
    timed("COLL-04.1-02", "timed_one_in_flight", "has one chunk in flight whatever the buffers",
        lambda usual, *given: usual(*given[:3], 1)),
    timed("COLL-04.1-01", "timed_ranks", "has no times of a plan on one rank", two_devices_at_least),
    timed("COLL-04.1-01", "timed_waits", "keeps the compute queue busy with waits", waits_take_time),
]  # fmt: skip
